"""Pods that wait for nodes and are bound to new ones before KWOK has taken these are shown to it until they run."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from kumulus.kube import Client, Connection
from kumulus.nodes.faults import new_pods
from kumulus.nodes.faults.leases import LEASES
from kumulus.nodes.faults.pods import RESUMED
from tests.support.apiserver import listening

NODES = ["n-0", "n-1", "n-2"]


@dataclass
class Cluster:
    """An API server whose KWOK takes one node each time somebody looks, and passes over a pod the first times."""

    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: its node, whether it runs, and how often it is passed over yet."""
    bound_late: str = ""
    """A pod that waits for a node until all have been taken."""
    leases: list[str] = field(default_factory=list)
    """The nodes that are taken."""
    shown: list[str] = field(default_factory=list)
    """The pods that were changed, in this order."""
    looks: int = 0
    """How often somebody has asked for leases."""

    def add(self, name: str, node: str = "", passed_over: int = 0) -> None:
        self.pods[name] = {"node": node, "left": passed_over, "runs": False}

    def items(self, *, bound: bool) -> list[dict[str, Any]]:
        return [
            {
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"nodeName": pod["node"]} if pod["node"] else {},
                "status": {"phase": "Pending"},
            }
            for name, pod in self.pods.items()
            if not pod["runs"] and (pod["node"] or not bound)
        ]

    async def answer(self, request: web.Request) -> web.Response:
        path = request.path
        if path.startswith(LEASES):
            self.looks += 1
            if len(self.leases) < len(NODES) and self.looks % 2:
                self.leases.append(NODES[len(self.leases)])
            if len(self.leases) == len(NODES) and self.bound_late:
                self.pods[self.bound_late]["node"] = NODES[-1]
            if path == LEASES:
                items = [{"metadata": {"name": node}} for node in self.leases]
                return web.json_response({"metadata": {}, "items": items})
            if path.removeprefix(f"{LEASES}/") in self.leases:
                return web.json_response({"metadata": {"name": path.removeprefix(f"{LEASES}/")}})
        elif request.method == "PATCH":
            pod = self.pods[path.rpartition("/")[2]]
            assert RESUMED in (await request.json())["metadata"]["annotations"]
            self.shown.append(path.rpartition("/")[2])
            pod["left"] -= 1
            pod["runs"] = pod["left"] < 0
            return web.json_response({"metadata": {}})
        elif path == "/api/v1/nodes":
            return web.json_response({"metadata": {}, "items": [{"metadata": {"name": node}} for node in NODES]})
        elif path == "/api/v1/pods":
            bound = "spec.nodeName!=" in request.query["fieldSelector"]
            return web.json_response({"metadata": {}, "items": self.items(bound=bound)})
        return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def client(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setattr(new_pods, "BEHIND_S", 0.01)
    async with listening(cluster.answer) as address, Client(Connection(address, "test"), patience=2.0) as found:
        yield found


async def test_a_pod_that_is_bound_after_the_nodes_were_made_is_shown_to_kwok(cluster: Cluster, client: Client) -> None:
    cluster.add("late")
    cluster.bound_late = "late"
    assert await new_pods.wait_until_managed(client, NODES) == ""
    assert cluster.leases == NODES
    assert cluster.shown == ["late"]


async def test_one_that_kwok_passes_over_again_is_shown_again(cluster: Cluster, client: Client) -> None:
    cluster.add("once", "n-0", passed_over=1)
    cluster.add("never", "n-1", passed_over=99)
    cluster.add("elsewhere", "another", passed_over=0)
    assert await new_pods.wait_until_managed(client, NODES) == ""
    assert cluster.shown == ["once", "never", "once", *["never"] * 5]


async def test_a_kwok_that_acts_on_no_pod_is_given_longer(cluster: Cluster, client: Client) -> None:
    cluster.add("waits", "n-0", passed_over=4)
    assert await new_pods.wait_until_managed(client, NODES) == ""
    assert cluster.pods["waits"]["runs"]
    cluster.add("never", "n-1", passed_over=99)
    assert await new_pods.wait_until_managed(client, NODES) == ""
    assert cluster.shown == ["waits"] * 5 + ["never"] * 5


async def test_where_no_pod_waits_a_pod_that_comes_next_finds_the_nodes_taken(cluster: Cluster, client: Client) -> None:
    assert await new_pods.wait_until_managed(client, NODES) == ""
    assert cluster.leases == NODES


async def test_where_nothing_says_that_there_is_a_kwok_the_wait_ends_soon_and_in_silence(
    cluster: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_pods, "_MAYBE_S", 0.3)
    assert await new_pods.wait_until_managed(client, [*NODES, "n-9"]) == ""
    assert cluster.leases == NODES


async def test_nodes_that_kwok_does_not_take_are_said(
    cluster: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_pods, "_STANDSTILL", 0.3)
    cluster.add("waits", "n-9", passed_over=0)
    said = await new_pods.wait_until_managed(client, [*NODES, "n-9"])
    assert said == "KWOK does not manage 1 of the nodes yet, n-9 among them"
    assert cluster.shown == []


async def test_all_nodes_are_waited_for_before_an_experiment(cluster: Cluster, client: Client) -> None:
    assert await new_pods.wait_until_all_are_managed(client, asyncio.Event()) == len(NODES) - 1
    assert cluster.leases == NODES
    looks = cluster.looks
    assert await new_pods.wait_until_all_are_managed(client, asyncio.Event()) == 0
    assert cluster.looks == looks + 1
