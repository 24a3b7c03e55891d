"""The page's server: who gets what, and where it listens."""

import http.client
import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from kumulus.extras.watch.console.page import Page
from kumulus.extras.watch.console.serving import PortInUse
from kumulus.extras.watch.live.model import Fleet
from kumulus.kube import Unreachable
from tests.support.fleets import node, pod
from tests.support.pages import ServedFleet, answered
from tests.unit.toolchain.sample import ROOT


def small(fleet: Fleet) -> None:
    fleet.set_node("n0", node("n0"))
    fleet.set_node("n1", node("n1", taints=("a=b:NoSchedule",)))
    fleet.set_pod("default/p", pod("p", "n0", 3))


@pytest.fixture
def served() -> Iterator[ServedFleet]:
    with ServedFleet(small) as found:
        yield found


def ask(served: ServedFleet, path: str, **headers: str) -> tuple[int, str, http.client.HTTPMessage]:
    with answered(served.address, path, headers=headers) as answer:
        return answer.status, answer.read().decode(), answer.headers


def events(served: ServedFleet) -> Iterator[tuple[str, Any]]:
    with answered(served.address, f"{urlsplit(served.address).path}events") as answer:
        name = ""
        for line in answer:
            key, _, value = line.decode().strip().partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                yield name, json.loads(value)


@pytest.mark.parametrize("path", ["/", "/events", "/app.js", "/nodes/n0", "/wrong/", "/wrong/events", "/%00/", "//"])
def test_without_the_token_everything_is_forbidden(served: ServedFleet, path: str) -> None:
    status, body, headers = ask(served, path)
    assert status == 403
    assert "kumulus ui" in body
    assert "test" not in body
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_a_question_about_the_server_itself_is_forbidden_too(served: ServedFleet) -> None:
    with answered(served.address, "*", "OPTIONS") as answer:
        assert answer.status == 403


def test_every_page_has_a_token_of_its_own() -> None:
    with ServedFleet(small) as one, ServedFleet(small) as other:
        assert one.page.token != other.page.token
        assert len(one.page.token) >= 32
        assert ask(one, f"/{other.page.token}/")[0] == 403


def test_a_name_that_was_made_to_lead_here_is_forbidden(served: ServedFleet) -> None:
    path, port = urlsplit(served.address).path, urlsplit(served.address).port
    assert ask(served, path, Host="evil.example")[0] == 403
    assert ask(served, path, Host=f"evil.example:{port}")[0] == 403
    assert ask(served, path, Host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize(
    ("asset", "kind"), [("", "text/html"), ("style.css", "text/css"), ("app.js", "text/javascript")]
)
def test_the_page_is_served_with_its_token(served: ServedFleet, asset: str, kind: str) -> None:
    status, body, headers = ask(served, urlsplit(served.address).path + asset)
    assert (status, headers.get_content_type()) == (200, kind)
    assert headers["Cache-Control"] == "no-store"
    assert "https://" not in body


def test_every_module_that_a_module_imports_is_served(served: ServedFleet) -> None:
    seen: set[str] = set()
    wanted = {"app.js"}
    while wanted - seen:
        name = min(wanted - seen)
        seen.add(name)
        status, body, _ = ask(served, urlsplit(served.address).path + name)
        assert status == 200, name
        wanted |= set(re.findall(r'from "\./([^"]+)"', body))
    # Those of recorded runs are not served one by one, but are in their page: test_bundle.py.
    assert seen <= {
        file.name for file in (ROOT / "src" / "kumulus" / "extras" / "watch" / "console" / "assets").glob("*.js")
    }


@pytest.mark.parametrize("asset", ["..", "../feed.py", "%2e%2e/feed.py", "x.js", "assets/app.js"])
def test_nothing_else_is_served(served: ServedFleet, asset: str) -> None:
    assert ask(served, urlsplit(served.address).path + asset)[0] in (403, 404)


def test_it_listens_on_this_machine_only(served: ServedFleet) -> None:
    port = urlsplit(served.address).port
    found = psutil.Process(os.getpid()).net_connections(kind="tcp")
    listening = {c.laddr.ip for c in found if c.status == psutil.CONN_LISTEN and c.laddr.port == port}
    assert listening == {"127.0.0.1"}


def test_a_node_is_told_with_its_pods_and_an_unknown_one_is_not_found(served: ServedFleet) -> None:
    path = urlsplit(served.address).path
    found = json.loads(ask(served, f"{path}nodes/n0")[1])
    assert [(each["name"], each["phase"], each["gpus"]) for each in found["pods"]] == [("p", "Running", 3)]
    assert json.loads(ask(served, f"{path}nodes/n1")[1])["taints"] == ["a=b:NoSchedule"]
    assert ask(served, f"{path}nodes/none")[0] == 404


def test_a_page_is_told_the_fleet_and_then_what_changes(served: ServedFleet) -> None:
    heard = events(served)
    name, whole = next(heard)
    assert (name, whole["stack"]) == ("fleet", "test")
    assert whole["remedy"] == "`pulumi up -s test --refresh` starts it"
    column = whole["columns"].index("gpusTaken")
    assert {row[0]: row[column] for row in whole["nodes"]} == {"n0": 3, "n1": 0}

    def change(live: Any) -> None:
        live.fleet.set_pod("default/q", pod("q", "n1", 2))
        live.fleet.set_node("n0", None)

    served.change(change)
    changes = next(data for name, data in heard if name == "changes")
    assert [(row[0], row[column]) for row in changes["changed"]] == [("n1", 2)]
    assert changes["gone"] == ["n0"]
    state = next(data for name, data in heard if name == "state")
    assert (state["summary"]["nodes"], state["lost"]) == (1, None)


def test_a_lost_cluster_is_told_to_the_page(served: ServedFleet) -> None:
    def lose(live: Any) -> None:
        live.lost = Unreachable("https://127.0.0.1:1", "connection refused")

    served.change(lose)
    states = (data for name, data in events(served) if name == "state")
    assert "connection refused" in next(states)["lost"]["why"]


async def test_a_port_in_use_is_told_with_what_to_do() -> None:
    page = ServedFleet(small).page
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} is in use\n  Choose another one"):
            async with page.served(port):
                pass


async def test_the_chosen_port_is_used() -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with Page("test", ServedFleet(small).live).served(port) as address:
        assert address.startswith(f"http://127.0.0.1:{port}/")
