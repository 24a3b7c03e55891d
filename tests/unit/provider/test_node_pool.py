"""The resource NodePool, on an API server that keeps objects in memory."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kumulus.kube import ApiError
from kumulus.model.applied import posted_node, record_of
from kumulus.model.fault_effects import node_effects_from
from kumulus.model.identity import STACK_ID, Owner
from kumulus.model.pool_form import pool_to_properties
from kumulus.model.pools import Pool
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.faults import records
from kumulus.nodes.faults.records import Record
from kumulus.nodes.pools import record, scaled
from kumulus.provider.resources.base import Operation, Properties
from kumulus.provider.resources.diffing import PropertyDifference
from kumulus.provider.resources.node_pool import NodePool
from kumulus.provider.resources.pool_properties import owned_pool
from kumulus.stackfile.expand import pools
from kumulus.stackfile.model import ClusterSpec
from tests.support.object_store import MAPS, NODES, Store
from tests.unit.model.test_fault_changes import GROUP, NOW
from tests.unit.provider import stored
from tests.unit.provider.stored import messages

WITH_SLICES: dict[str, Any] = {
    **GROUP,
    "gpuProduct": "NVIDIA-H100-80GB-HBM3",
    "resourceSlices": {"driver": "gpu.nvidia.com"},
}


OLD, NEW = "a" * 32, "b" * 32


@dataclass
class Adopted:
    """A pool with the identity of the stack that made it, as an import records it; the stack's own is another one."""

    store: Store
    resource: NodePool
    outputs: Properties

    @property
    def wanted(self) -> Properties:
        return {**self.outputs, "stackId": NEW}

    @property
    def identities(self) -> set[str]:
        return {each["metadata"]["labels"][STACK_ID] for each in self.store.under(NODES)}

    async def cut_off(self) -> Properties:
        """Update it, while only some nodes can be changed; returns what is recorded."""
        self.store.refuse = lambda verb, path, _: 403 if verb == "PATCH" and path.endswith(("-2", "-5")) else None
        with pytest.raises(PartialFailure) as failure:
            await self.resource.update(operation(), "dev/a", self.outputs, self.wanted)
        self.store.refuse = lambda *_: None
        assert self.identities == {OLD, NEW}
        return failure.value.outputs


def operation(*, preview: bool = False, **inputs: Any) -> Operation:
    return stored.operation(NodePool.token, preview=preview, old_inputs=inputs)


@pytest.fixture
async def adopted(tmp_path: Path) -> AsyncIterator[Adopted]:
    (pool,) = pools(ClusterSpec.checked({"nodeGroups": [GROUP]}), "dev")
    place = {"clusterOutlivesStack": False, "stackId": OLD}
    async with stored.stored(tmp_path, **place) as cluster, cluster.store.client() as client:
        outputs = {**cluster.place, **pool_to_properties(pool)}
        there = owned_pool(outputs)
        await records.write_pool(client, there, Owner(OLD))
        for n in range(there.replicas):
            cluster.store.put(NODES, posted_node(there, n, NOW, record_of(there, n)))
        yield Adopted(cluster.store, NodePool(cluster.connections), outputs)


async def test_a_refresh_after_a_cut_off_change_of_identity_leaves_the_nodes_the_stacks_own(adopted: Adopted) -> None:
    left = await adopted.cut_off()
    found = await adopted.resource.read(operation(), "dev/a", left, adopted.wanted)
    assert found is not None
    assert (found.outputs["replicas"], "othersNodes" in found.outputs["drift"]) == (12, False)
    assert "stackId" in {each.path for each in adopted.resource.diff(found.outputs, adopted.wanted)}
    assert (await adopted.resource.update(operation(), "dev/a", found.outputs, adopted.wanted))["stackId"] == NEW
    assert adopted.identities == {NEW}


async def test_a_destroy_after_a_cut_off_change_of_identity_removes_the_nodes_of_both(adopted: Adopted) -> None:
    left = await adopted.cut_off()
    await adopted.resource.delete(operation(**adopted.wanted), "dev/a", left)
    assert adopted.store.under(NODES) == adopted.store.under(MAPS) == []


async def test_a_pool_with_slices_is_not_recorded_in_a_cluster_without_them(tmp_path: Path) -> None:
    (pool,) = pools(ClusterSpec.checked({"nodeGroups": [WITH_SLICES]}), "dev")
    async with stored.stored(tmp_path, clusterOutlivesStack=False) as cluster:
        resource = NodePool(cluster.connections)
        checked = resource.check({}, {**cluster.place, **pool_to_properties(pool)}, "/")
        assert checked.failures == []
        with pytest.raises(ProviderError, match=r"does not serve resource\.k8s\.io"):
            await resource.create(operation(), checked.inputs)
        assert cluster.store.under(MAPS) == []


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ((), None),
        ((3, 7), "drift to repair: missing 2: a100-use1-3, a100-use1-7"),
        (range(12), "drift to repair: missing all nodes"),
    ],
)
async def test_nodes_that_are_lost_are_a_difference_without_a_refresh(
    adopted: Adopted, lost: Sequence[int], said: str | None
) -> None:
    for ordinal in lost:
        del adopted.store.objects[f"{NODES}/a100-use1-{ordinal}"]
    resource, inputs = adopted.resource, adopted.outputs
    expected = [PropertyDifference("replicas", "update")] if lost else []
    assert await resource.compare(inputs, inputs) == expected
    previewed = operation(preview=True)
    await resource.update(previewed, "dev/a", inputs, inputs)
    assert (said or "") in "".join(messages(previewed))
    await resource.update(operation(), "dev/a", inputs, inputs)
    assert len(adopted.store.under(NODES)) == 12


async def test_lost_nodes_of_a_pool_are_not_said_of_another_clusters_of_that_name(adopted: Adopted) -> None:
    del adopted.store.objects[f"{NODES}/a100-use1-3"]
    assert await adopted.resource.compare(adopted.outputs, adopted.outputs)
    others, previewed = {**adopted.outputs, "clusterIdentity": "another"}, operation(preview=True)
    await adopted.resource.update(previewed, "dev/a", others, {**others, "replicas": 14})
    assert "+2 nodes" in "".join(messages(previewed))
    assert "drift" not in "".join(messages(previewed))


async def test_a_look_for_lost_nodes_takes_two_requests_for_all_pools(adopted: Adopted) -> None:
    await adopted.resource.compare(adopted.outputs, adopted.outputs)
    adopted.store.asked.clear()
    for _ in range(5):
        assert await adopted.resource.compare(adopted.outputs, adopted.outputs) == []
    assert adopted.store.asked == []


async def overdue(adopted: Adopted) -> str:
    """Have a fault be over that labels a node which is lost, and return the path of its record."""
    async with adopted.store.client() as client:
        effects = node_effects_from({"labels": {"example.com/sick": "yes"}})
        over = Record("brief", "", {"a100-use1": frozenset({3})}, effects, until="2026-01-01T00:00:00Z")
        await records.write_fault(client, replace(over, owner=Owner(OLD)))
    for ordinal in (3, 7):
        adopted.store.objects.pop(f"{NODES}/a100-use1-{ordinal}")
    adopted.store.asked.clear()
    return f"{MAPS}/kumulus-fault-brief"


async def test_faults_whose_time_is_up_end_once_the_nodes_are_as_wanted(adopted: Adopted) -> None:
    fault = await overdue(adopted)
    await adopted.resource.update(operation(), "dev/a", adopted.outputs, adopted.outputs)
    assert fault not in adopted.store.objects
    assert len(adopted.store.under(NODES)) == 12
    changes = [each for each in adopted.store.asked if each[0] != "GET"]
    posts = [at for at, each in enumerate(changes) if each == ("POST", NODES)]
    assert len(posts) == 2
    assert max(posts) < changes.index(("PATCH", fault))


async def test_a_pool_whose_faults_cannot_be_ended_is_recorded_and_ends_them_next_time(adopted: Adopted) -> None:
    fault = await overdue(adopted)
    adopted.store.refuse = lambda verb, path, _: 403 if (verb, path) == ("PATCH", fault) else None
    with pytest.raises(PartialFailure, match="403") as failure:
        await adopted.resource.update(operation(), "dev/a", adopted.outputs, adopted.outputs)
    assert failure.value.outputs == adopted.outputs
    assert len(adopted.store.under(NODES)) == 12
    adopted.store.refuse = lambda *_: None
    await adopted.resource.update(operation(), "dev/a", failure.value.outputs, adopted.outputs)
    assert fault not in adopted.store.objects


async def test_a_full_etcd_costs_an_autoscaled_pool_none_of_its_nodes(
    adopted: Adopted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise ApiError(500, "InternalError", "etcdserver: mvcc: database space exceeded", "POST", MAPS)

    monkeypatch.setattr(record, "write", full)
    bounded = {**adopted.outputs, "replicas": 3, "maxReplicas": 20}
    with pytest.raises(PartialFailure, match="space exceeded") as failure:
        await adopted.resource.update(operation(), "dev/a", bounded, bounded)
    assert len(adopted.store.under(NODES)) == 12
    # Fewer than there are may be declared to make room: the highest go.
    with pytest.raises(PartialFailure, match="space exceeded"):
        await adopted.resource.update(operation(), "dev/a", failure.value.outputs, {**bounded, "maxReplicas": 10})
    assert len(adopted.store.under(NODES)) == 10


async def test_a_node_that_an_autoscaler_makes_during_an_update_stays(
    adopted: Adopted, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_left, there = scaled.as_left, owned_pool(adopted.outputs)

    async def and_one_more(*arguments: Any, **more: Any) -> Pool:
        left = await as_left(*arguments, **more)
        adopted.store.put(NODES, posted_node(there, 12, NOW, record_of(there, 12)))
        return left

    monkeypatch.setattr(scaled, "as_left", and_one_more)
    bounded = {**adopted.outputs, "maxReplicas": 20}
    await adopted.resource.update(operation(), "dev/a", bounded, bounded)
    assert len(adopted.store.under(NODES)) == 13
    found = await adopted.resource.read(operation(), "dev/a", bounded, bounded)
    assert found is not None
    assert "drift" not in found.outputs


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("refreshed", [False, True])
async def test_a_damaged_record_is_reported_once(adopted: Adopted, fault: bool, refreshed: bool) -> None:
    name = "kumulus-fault-xid" if fault else f"kumulus-pool-{adopted.outputs['name']}"
    metadata = {"name": name, "labels": {records.RECORD_LABEL: "fault" if fault else "pool"}}
    adopted.store.objects.pop(f"{MAPS}/{name}", None)
    adopted.store.put(MAPS, {"metadata": metadata, "data": {"record": "{"}})
    op = operation()
    for _ in range(2 * refreshed):
        await adopted.resource.read(op, "dev/a", adopted.outputs, adopted.outputs)
    await adopted.resource.update(op, "dev/a", adopted.outputs, adopted.outputs)
    if fault or refreshed:
        (said,) = messages(op)
        assert said.startswith(f"the record {name} is damaged and ignored\n  `pulumi up --refresh` writes it again")
        assert (f"kubectl delete configmap -n kube-system {name}" in said) is fault
    async with adopted.store.client() as client:
        assert (await records.read(client)).damaged == ((name,) if fault else ())
