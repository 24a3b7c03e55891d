"""The resource Fault, on an API server that keeps objects in memory: what Pulumi records when only part was done."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kumulus.model.applied import posted_node, record_of
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.faults import records
from kumulus.provider.resources.base import Operation, Properties
from kumulus.provider.resources.fault import FaultResource
from tests.support.object_store import MAPS, NODES, Store
from tests.unit.model.test_fault_changes import GPU, NOW, pool
from tests.unit.provider import stored
from tests.unit.provider.stored import StoredCluster

POOL = pool()
LOSS: dict[str, Any] = {"stackId": "a" * 32, "node": {"capacity": {GPU: "-1"}}}


def operation() -> Operation:
    return stored.operation(FaultResource.token)


@dataclass
class Place:
    """A cluster with a pool of twelve nodes, and the resource."""

    cluster: StoredCluster
    resource: FaultResource

    @property
    def store(self) -> Store:
        return self.cluster.store

    async def inputs(self, **own: Any) -> Properties:
        described = {"name": "xid", "kind": "", "nodes": {POOL.name: "0-3"}, "node": {"capacity": {GPU: "-1"}}}
        checked = self.resource.check({}, {**self.cluster.place, **described, **own}, "/")
        assert checked.failures == []
        await self.resource.declare(str(checked.inputs["name"]), {}, checked.inputs)
        return checked.inputs

    async def looked(self, inputs: Properties) -> str:
        found = await self.resource.read(operation(), "dev/xid", inputs, inputs)
        assert found is not None
        return str(found.outputs.get("drift", ""))


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with stored.stored(tmp_path, clusterOutlivesStack=False) as cluster, cluster.store.client() as client:
        await records.write_pool(client, POOL)
        for n in range(POOL.replicas):
            cluster.store.put(NODES, posted_node(POOL, n, NOW, record_of(POOL, n)))
        yield Place(cluster, FaultResource(cluster.connections))


def update(place: Place) -> FaultResource:
    """The resource in a plugin of its own, as each update has."""
    place.resource = FaultResource(place.cluster.connections)
    return place.resource


def gpus(place: Place) -> str:
    found = sorted(place.store.under(NODES), key=lambda each: int(each["metadata"]["name"].rpartition("-")[2]))
    return "".join(each["status"]["allocatable"][GPU] for each in found)


async def test_a_beginning_that_was_cut_off_is_drift_until_it_is_finished(place: Place) -> None:
    place.store.refuse = lambda verb, path, _: 403 if (verb, path.startswith(NODES)) == ("PATCH", True) else None
    inputs = await place.inputs()
    with pytest.raises(PartialFailure) as caught:
        await place.resource.create(operation(), inputs)
    assert caught.value.outputs["drift"].startswith("4 nodes left to do: ")
    assert "cut off" in await place.looked(inputs)
    place.store.refuse = lambda *_: None
    await place.resource.update(operation(), "dev/xid", caught.value.outputs, inputs)
    assert await place.looked(inputs) == ""
    assert gpus(place) == "777788888888"


async def test_a_fault_of_pods_that_cannot_begin_is_on_record_nowhere_and_the_remedies_are_named(place: Place) -> None:
    inputs = await place.inputs(nodes={}, node={}, pods={"action": "fail", "labels": {"app": "x"}})
    remedies = "stageObjects: true. in the stack file .*stage_objects=True .*kwokCharts.install: true"
    with pytest.raises(ProviderError, match=f"fault xid: this cluster takes no faults of pods, .*{remedies}"):
        await place.resource.create(operation(), inputs)
    assert not any("kumulus-fault" in path for path in place.store.objects)


async def test_a_server_that_is_gone_once_a_fault_is_recorded_leaves_it_in_the_state(place: Place) -> None:
    record = f"{MAPS}/kumulus-fault-xid"
    place.store.refuse = lambda _verb, _path, _body: 403 if record in place.store.objects else None
    with pytest.raises(PartialFailure) as caught:
        await place.resource.create(operation(), await place.inputs(node={"kubelet": "silent"}))
    assert (caught.value.resource_id, caught.value.outputs["name"]) == ("dev/xid", "xid")
    assert record in place.store.objects
    place.store.refuse = lambda *_: None
    await update(place).delete(operation(), "dev/xid", caught.value.outputs)
    assert record not in place.store.objects


async def test_a_cluster_that_does_not_answer_at_first_leaves_nothing_to_record(place: Place) -> None:
    place.store.refuse = lambda _verb, path, _body: 403 if path.startswith(MAPS) else None
    with pytest.raises(ProviderError, match="403"):
        await place.resource.create(operation(), await place.inputs())


async def test_a_fault_may_take_the_place_of_one_that_the_stack_declares_no_more(place: Place) -> None:
    old = await place.inputs(**LOSS)
    await update(place).create(operation(), await place.inputs(**LOSS))
    # Pulumi creates before it deletes.
    await update(place).create(
        operation(), await place.inputs(**{**LOSS, "name": "dbe", "node": {"capacity": {GPU: "-2"}}})
    )
    await place.resource.delete(operation(), "dev/xid", old)
    assert gpus(place) == "666688888888"


async def test_two_faults_may_change_places(place: Place) -> None:
    async def declared(**nodes: str) -> dict[str, Properties]:
        return {name: await place.inputs(**LOSS, name=name, nodes={POOL.name: on}) for name, on in nodes.items()}

    first = await declared(a="0-1", b="2-5")
    for inputs in first.values():
        await place.resource.create(operation(), inputs)
    update(place)
    for name, inputs in (await declared(a="2-5", b="0")).items():
        await place.resource.update(operation(), f"dev/{name}", first[name], inputs)
    assert gpus(place) == "787777888888"


async def test_two_faults_that_a_stack_declares_must_not_contradict_each_other(place: Place) -> None:
    one, two = await place.inputs(**LOSS), await place.inputs(**LOSS, name="dbe")
    await place.resource.create(operation(), one)
    with pytest.raises(ProviderError, match="the fault xid is already active and decides the capacity"):
        await place.resource.create(operation(), two)
    # Nor one of the stack and one that somebody has injected.
    async with place.store.client() as client:
        injected = records.record_from({"name": "brief", "nodes": {POOL.name: "8"}, "node": {"capacity": {GPU: "-1"}}})
        await records.write_fault(client, injected)
    with pytest.raises(ProviderError, match=r"the fault brief is already active .* kumulus fault clear brief"):
        await update(place).create(operation(), await place.inputs(**LOSS, name="new", nodes={POOL.name: "8"}))
