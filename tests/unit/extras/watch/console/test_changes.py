"""What the page may change, who may ask for it, and what is said before it is done."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from kumulus.extras.watch.console import changes
from kumulus.extras.watch.console.changes import ChangeRefused, ClusterChanges
from kumulus.extras.watch.live.fleet import Live
from kumulus.extras.watch.live.model import Fleet
from kumulus.extras.watch.live.node import NOWHERE
from kumulus.model.identity import NOBODY
from tests.support.fleets import node, pod
from tests.support.pages import ServedFleet, answered

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
            found.page._changes = ClusterChanges(found.live, NOBODY)
        yield found


@pytest.fixture
def ask(served: ServedFleet) -> Ask:
    place = urlsplit(served.address)

    def asked(step: str, body: Any, path: str = place.path, **headers: str | None) -> tuple[int, Any]:
        own = {"Origin": f"http://{place.netloc}", "Content-Type": "application/json"}
        told = {name: value for name, value in (own | headers).items() if value is not None}
        text = body if isinstance(body, str) else json.dumps(body)
        with answered(served.address, f"{path}changes/{step}", "POST", text, told) as answer:
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


class Answering:
    """In place of a client: notes what it is asked for."""

    connections = 4

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def delete(self, path: str) -> None:
        self.asked.append(f"DELETE {path}")

    async def merge_patch(self, path: str, body: Any) -> None:
        self.asked.append(f"PATCH {path}")


@pytest.fixture
def live() -> Live:
    found = Live(Answering(), NOWHERE)  # type: ignore[arg-type]
    fleet(found.fleet)
    return found


@pytest.mark.parametrize("asked", [CORDON, {"do": "delete", "pod": "default/p"}])
async def test_what_was_said_of_another_cluster_is_not_done(live: Live, asked: Any) -> None:
    made = ClusterChanges(live, NOBODY)
    ticket = (await made.plan(asked))["ticket"]
    # As when the stack was made again: the view has moved to the new cluster, whose names are the same.
    live._client = other = Answering()  # type: ignore[assignment]
    with pytest.raises(ChangeRefused, match="the cluster was made again since; ask again what it would do"):
        await made.do(ticket)
    assert other.asked == []
    assert (await made.do((await made.plan(asked))["ticket"]))["done"]
    assert other.asked


@pytest.mark.parametrize("change", [{"created": 200}, {"node": "n-1"}, None])
async def test_a_pod_that_is_another_one_since_stays(live: Live, change: dict[str, Any] | None) -> None:
    made, client = ClusterChanges(live, NOBODY), live.client
    was = live.fleet.pods["default/p"]
    ticket = (await made.plan({"do": "delete", "pod": "default/p"}))["ticket"]
    live.fleet.set_pod("default/p", None if change is None else replace(was, **change))
    with pytest.raises(ChangeRefused, match="default/p is not the same pod as before, or is gone; ask again"):
        await made.do(ticket)
    assert client.asked == []  # type: ignore[attr-defined]


async def test_a_pod_that_got_its_node_since_is_the_same(live: Live) -> None:
    made, client = ClusterChanges(live, NOBODY), live.client
    bound = live.fleet.pods["default/p"]
    live.fleet.set_pod("default/p", replace(bound, node="", phase="Pending"))
    ticket = (await made.plan({"do": "delete", "pod": "default/p"}))["ticket"]
    live.fleet.set_pod("default/p", bound)
    assert await made.do(ticket) == {"done": "deleted default/p"}
    assert client.asked == ["DELETE /api/v1/namespaces/default/pods/p"]  # type: ignore[attr-defined]


def test_a_change_of_many_nodes_is_read(ask: Ask) -> None:
    names = ["n-0", *(f"a-name-as-long-as-a-cloud-provider-gives-it-{number:07}" for number in range(40_000))]
    status, said = ask("plan", {"do": "cordon", "nodes": names})
    assert (status, said["refused"][:20]) == (409, "there is no node a-n")


@pytest.mark.parametrize("text", ["", "{", "\x00"])
def test_what_is_no_json_is_no_change(ask: Ask, text: str) -> None:
    assert ask("plan", text) == (400, {"refused": "that is no change"})


def test_only_kinds_that_nodes_can_have_are_offered() -> None:
    assert "gpu-fell-off-bus" in ClusterChanges.kinds()
    assert "out-of-memory" not in ClusterChanges.kinds()
