"""Pods that wait for nodes and are bound to new ones before KWOK has taken these are shown to it until they run."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from kumulus.kube import Client
from kumulus.nodes.faults import new_pods
from kumulus.nodes.faults.pods import RESUMED
from tests.support import object_store
from tests.support.object_store import LEASES, Object, Store, storing

NODES = ["n-0", "n-1", "n-2"]
PODS = "/api/v1/pods"


@dataclass
class Kwok:
    """Takes one node each time somebody looks, and passes over a pod the first times."""

    store: Store
    left: dict[str, int] = field(default_factory=dict)
    """How often a pod is passed over yet."""
    bound_late: str = ""
    """A pod that waits for a node until all have been taken."""
    shown: list[str] = field(default_factory=list)
    """The pods that were changed, in this order."""
    looks: int = 0
    """How often somebody has asked for leases."""

    def add(self, name: str, node: str = "", passed_over: int = 0) -> None:
        self.left[name] = passed_over
        metadata = {"name": name, "namespace": "default"}
        self.store.put(PODS, {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": "Pending"}})

    @property
    def leases(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.store.under(LEASES)]

    def act(self, verb: str, path: str, body: Object) -> int | None:
        name = path.rpartition("/")[2]
        if path.startswith(LEASES):
            self.looks += 1
            if len(self.leases) < len(NODES) and self.looks % 2:
                self.store.put(LEASES, {"metadata": {"name": NODES[len(self.leases)]}})
            if len(self.leases) == len(NODES) and self.bound_late:
                self.store.objects[f"{PODS}/{self.bound_late}"]["spec"]["nodeName"] = NODES[-1]
        elif verb == "PATCH":
            assert RESUMED in body["metadata"]["annotations"]
            self.shown.append(name)
            self.left[name] -= 1
            if self.left[name] < 0:
                # It runs, and so is not among the pending ones.
                del self.store.objects[f"{PODS}/{name}"]
            return 200
        return None


@pytest.fixture
async def cluster() -> AsyncIterator[Kwok]:
    async with storing() as store:
        for node in NODES:
            store.put(object_store.NODES, {"metadata": {"name": node}})
        made = Kwok(store)
        store.refuse = made.act
        yield made


@pytest.fixture
async def client(cluster: Kwok, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setattr(new_pods, "BEHIND_S", 0.01)
    async with cluster.store.client(patience=2.0) as found:
        yield found


async def test_a_pod_that_is_bound_after_the_nodes_were_made_is_shown_to_kwok(cluster: Kwok, client: Client) -> None:
    cluster.add("late")
    cluster.bound_late = "late"
    assert await new_pods.wait_until_managed(client, NODES) == ""
    assert cluster.leases == NODES
    assert cluster.shown == ["late"]


async def test_one_that_kwok_passes_over_again_is_shown_again(cluster: Kwok, client: Client) -> None:
    cluster.add("goes", "n-0", passed_over=1)
    cluster.add("never", "n-1", passed_over=99)
    cluster.add("elsewhere", "another", passed_over=0)
    assert await new_pods.wait_until_managed(client, NODES) == ""
    assert cluster.shown == ["goes", "never", "goes", *["never"] * 5]


async def test_a_kwok_that_acts_on_no_pod_is_given_longer(cluster: Kwok, client: Client) -> None:
    cluster.add("waits", "n-0", passed_over=4)
    assert await new_pods.wait_until_managed(client, NODES) == ""
    assert f"{PODS}/waits" not in cluster.store.objects
    cluster.add("never", "n-1", passed_over=99)
    assert await new_pods.wait_until_managed(client, NODES) == ""
    assert cluster.shown == ["waits"] * 5 + ["never"] * 5


async def test_where_no_pod_waits_a_pod_that_comes_next_finds_the_nodes_taken(cluster: Kwok, client: Client) -> None:
    assert await new_pods.wait_until_managed(client, NODES) == ""
    assert cluster.leases == NODES


async def test_where_nothing_says_that_there_is_a_kwok_the_wait_ends_soon_and_in_silence(
    cluster: Kwok, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_pods, "_STANDSTILL_WITHOUT_KWOK_S", 0.3)
    assert await new_pods.wait_until_managed(client, [*NODES, "n-9"]) == ""
    assert cluster.leases == NODES


async def test_nodes_that_kwok_does_not_take_are_said(
    cluster: Kwok, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_pods, "_STANDSTILL_S", 0.3)
    cluster.add("waits", "n-9", passed_over=0)
    said = await new_pods.wait_until_managed(client, [*NODES, "n-9"])
    assert said == "KWOK does not manage 1 of the nodes yet, n-9 among them"
    assert cluster.shown == []


async def test_all_nodes_are_waited_for_before_an_experiment(cluster: Kwok, client: Client) -> None:
    assert await new_pods.wait_until_all_are_managed(client, asyncio.Event()) == len(NODES) - 1
    assert cluster.leases == NODES
    looks = cluster.looks
    assert await new_pods.wait_until_all_are_managed(client, asyncio.Event()) == 0
    assert cluster.looks == looks + 1
