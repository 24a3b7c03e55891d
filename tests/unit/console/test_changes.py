"""What the page may change, who may ask for it, and what is said before it is done."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from kumulus.cluster.live.model import Fleet
from kumulus.console import changes
from kumulus.console.changes import Changes
from kumulus.model.identity import NOBODY
from tests.support.fleets import node, pod
from tests.support.pages import ServedFleet

CORDON = {"do": "cordon", "nodes": ["n-0", "n-1"]}
Ask = Callable[..., tuple[int, Any]]


def fleet(found: Fleet) -> None:
    for name in ("n-0", "n-1"):
        found.set_node(name, node(name))
    found.set_pod("default/p", pod("p", "n-0", 8))


@pytest.fixture(params=[True])
def served(request: pytest.FixtureRequest) -> Iterator[ServedFleet]:
    with ServedFleet(fleet) as found:
        if request.param:
            found.page._changes = Changes(found.live, NOBODY)
        yield found


@pytest.fixture
def ask(served: ServedFleet) -> Ask:
    place = urlsplit(served.address)

    def asked(step: str, body: Any, path: str = place.path, **headers: str | None) -> tuple[int, Any]:
        own = {"Origin": f"http://{place.netloc}", "Content-Type": "application/json"}
        told = {name: value for name, value in (own | headers).items() if value is not None}
        text = body if isinstance(body, str) else json.dumps(body)
        with closing(http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)) as connection:
            connection.request("POST", f"{path}changes/{step}", text, told)
            answer = connection.getresponse()
            raw = answer.read().decode()
            return answer.status, json.loads(raw) if answer.status != 403 else raw

    return asked


@pytest.mark.parametrize("served", [False], indirect=True)
@pytest.mark.parametrize("step", ["plan", "do"])
def test_without_leave_nothing_is_changed(ask: Ask, step: str) -> None:
    status, said = ask(step, CORDON)
    assert status == 403
    assert "--allow-changes" in said


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": None},
        {"Host": "evil.example"},
    ],
)
def test_another_page_cannot_ask(ask: Ask, headers: dict[str, str | None]) -> None:
    for step in ("plan", "do"):
        assert ask(step, CORDON, **headers)[0] == 403


def test_without_the_token_nobody_can_ask(ask: Ask) -> None:
    assert ask("plan", CORDON, path="/")[0] == 403
    assert ask("plan", CORDON, path="/wrong/")[0] == 403


def test_it_is_said_first_what_would_be_done(ask: Ask) -> None:
    status, said = ask("plan", CORDON)
    assert status == 200
    assert said["says"] == "cordon 2 nodes (n-0, n-1): they take no new pods; what is on them stays (1 pod)"
    says = ask("plan", {"do": "delete", "pod": "default/p"})[1]["says"]
    assert says == "delete the pod default/p, Running on n-0; Job/train may make another one"


def test_what_was_said_is_tried_once(ask: Ask) -> None:
    ticket = ask("plan", CORDON)[1]["ticket"]
    status, said = ask("do", {"ticket": ticket})
    # There is no cluster here: that it is asked is what there is to see.
    assert status == 409
    assert "127.0.0.1:1" in said["refused"]
    status, said = ask("do", {"ticket": ticket})
    assert (status, said["refused"]) == (
        409,
        "this was done already, or was said too long ago; ask again what it would do",
    )


def test_what_was_said_too_long_ago_is_not_done(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "LASTS", -1.0)
    ticket = ask("plan", CORDON)[1]["ticket"]
    assert "too long ago" in ask("do", {"ticket": ticket})[1]["refused"]


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ({"do": "format", "nodes": ["n-0"]}, "there is no such change"),
        ({"do": "cordon", "nodes": []}, "no nodes are chosen"),
        ({"do": "cordon", "nodes": "n-0"}, "no nodes are chosen"),
        ({"do": "cordon", "nodes": ["n-0", "../pods"]}, "there is no node ../pods"),
        ({"do": "cordon", "nodes": [["n-0"]]}, "there is no node"),
        ({"do": "delete", "pod": "default/other"}, "there is no pod default/other"),
        ({"do": "inject", "nodes": ["n-9"], "kind": "unreachable", "name": "x"}, "there is no node n-9"),
        ({}, "there is no such change"),
        ([], "that is no change"),
        ({"do": "cordon", "nodes": ["x" * 10_000]}, "there is no node"),
    ],
)
def test_what_cannot_be_is_refused_with_why(ask: Ask, asked: Any, refused: str) -> None:
    status, said = ask("plan", asked)
    assert status == 409
    assert refused in said["refused"]
    assert len(said["refused"]) < 400


@pytest.mark.parametrize("text", ["", "{", "\x00"])
def test_what_is_no_json_is_no_change(ask: Ask, text: str) -> None:
    assert ask("plan", text) == (400, {"refused": "that is no change"})


def test_only_kinds_that_nodes_can_have_are_offered() -> None:
    assert "gpu-fell-off-bus" in Changes.kinds()
    assert "out-of-memory" not in Changes.kinds()
