"""Faults on a real control plane: nodes show them, the scheduler heeds them, and afterwards all is as before."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from kumulus.kube import Client, load_kubeconfig
from kumulus.model.active_faults import FAULTS_ANNOTATION
from kumulus.model.fault_effects import PodEffects
from kumulus.nodes.catalog.faults import fault_kinds
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.faults import operations, records
from kumulus.nodes.faults.pods import count_affected
from kumulus.provider.resources.base import Properties
from tests.integration.conftest import JOBS, LEASES, NODES, PODS, Faults, Plane, Pools, conditions, job, operation, pod
from tests.support.api import Object
from tests.support.said import Said

pytestmark = pytest.mark.integration
Create = Callable[[str, Object], Object]
GPU = "nvidia.com/gpu"


def whole(nodes: dict[str, Object]) -> dict[str, Object]:
    """Nodes without what changes by itself: versions, owners of fields, and the times of conditions."""
    found = {}
    for name, node in nodes.items():
        meta = {
            key: value for key, value in node["metadata"].items() if key not in ("resourceVersion", "managedFields")
        }
        # In the order of their types: KWOK's heartbeat changes it.
        listed = [
            {key: value for key, value in each.items() if not key.endswith("Time")}
            for each in sorted(node["status"]["conditions"], key=lambda each: str(each["type"]))
        ]
        found[name] = {**node, "metadata": meta, "status": {**node["status"], "conditions": listed}}
    return found


async def settled(pools: Pools, count: int, **template: Any) -> tuple[Properties, dict[str, Object]]:
    """A pool whose nodes have everything that others add to new ones."""
    inputs = pools.inputs(count, **template)
    await pools.create(inputs)
    pools.plane.api.until(LEASES, lambda found: {f"{inputs['name']}-{n}" for n in range(count)} <= set(found))
    return inputs, whole(pools.nodes(inputs))


def kept_by(plane: Plane, node: str) -> str:
    """Who renews a node's lease: the kwok-controller, once it has taken it."""
    found = plane.api.until(LEASES, lambda leases: bool(leases[node]["spec"].get("holderIdentity")))
    return str(found[node]["spec"]["holderIdentity"])


async def as_before(pools: Pools, inputs: Properties, before: dict[str, Object]) -> None:
    """Kubernetes takes its own taints off a recovered node a moment later; all else is as before at once."""
    plane_says = pools.plane.api.until
    plane_says(NODES, lambda _: "node.kubernetes.io" not in str([n["spec"] for n in pools.nodes(inputs).values()]))
    assert whole(pools.nodes(inputs)) == before


async def test_a_gpu_that_fell_off_the_bus_is_not_allocatable_and_its_node_takes_no_pods(
    plane: Plane, pools: Pools, faults: Faults, workloads: Create
) -> None:
    inputs, before = await settled(pools, 3)
    name = inputs["name"]
    said = Said()
    fault = faults.inputs("xid79", {name: "0-1"}, "gpu-fell-off-bus")
    await faults.begin(fault, said, preview=True)
    assert f"gpu-fell-off-bus on 2 nodes ({name}-[0-1])" in said.messages[0]
    assert "0 running pods on them" in said.messages[0]
    assert whole(pools.nodes(inputs)) == before

    await faults.begin(fault)
    nodes = pools.nodes(inputs)
    for ordinal in (0, 1):
        node = nodes[f"{name}-{ordinal}"]
        assert node["status"]["capacity"][GPU] == "7"
        assert node["status"]["allocatable"][GPU] == "7"
        assert conditions(node)["SysLogsGPUFallenOff"] == "True"
        assert {"key": "nvidia.com/gpu-error", "value": "true", "effect": "NoSchedule"} in node["spec"]["taints"]
        assert node["metadata"]["annotations"][FAULTS_ANNOTATION] == "xid79"
    assert whole(nodes)[f"{name}-2"] == before[f"{name}-2"]

    # Neither drift of the pool's, nor overwritten by it.
    assert await pools.drift(inputs) == {}
    await pools.update(inputs, inputs)
    assert whole(pools.nodes(inputs)) == whole(nodes)
    relabelled = pools.inputs(3, name, labels={"team": "ads"})
    await pools.update(relabelled, inputs)
    assert pools.nodes(inputs)[f"{name}-0"]["status"]["allocatable"][GPU] == "7"
    await pools.update(inputs, relabelled)

    for number in range(3):
        workloads(PODS, pod(f"{name}-{number}", name))
    placed = plane.api.until(
        PODS, lambda found: all(p["spec"].get("nodeName") for p in found.values()), labelSelector=f"test={name}"
    )
    assert {p["spec"]["nodeName"] for p in placed.values()} == {f"{name}-2"}

    # The cluster knows its nodes, whatever became of the state.
    faults.made["xid79"] = {**fault, "nodes": {name: "edited by hand"}}
    await faults.end("xid79")
    assert whole(pools.nodes(inputs)) == before


async def test_a_node_that_is_not_ready_is_tainted_by_kubernetes_and_recovers(
    plane: Plane, pools: Pools, faults: Faults
) -> None:
    inputs, before = await settled(pools, 2)
    name = inputs["name"]
    await faults.begin(faults.inputs("tired", {name: "1"}, "not-ready"))
    tainted = plane.api.until(
        NODES,
        lambda found: any(
            taint["key"] == "node.kubernetes.io/not-ready" for taint in found[f"{name}-1"]["spec"].get("taints", ())
        ),
        labelSelector=f"kumulus.io/pool={name}",
    )
    assert conditions(tainted[f"{name}-1"])["Ready"] == "False"
    assert conditions(tainted[f"{name}-0"])["Ready"] == "True"
    # KWOK makes every node Ready that is not; this one it leaves alone.
    await asyncio.sleep(2)
    assert conditions(pools.nodes(inputs)[f"{name}-1"])["Ready"] == "False"
    assert await pools.drift(inputs) == {}
    await faults.end("tired")
    await as_before(pools, inputs, before)


async def test_a_reboot_ends_by_itself_with_another_boot_id(plane: Plane, pools: Pools, faults: Faults) -> None:
    inputs, before = await settled(pools, 2)
    name = f"{inputs['name']}-0"
    started = time.monotonic()
    await faults.begin(faults.inputs("patching", {inputs["name"]: "0"}, "reboot", down=20.0))
    assert conditions(pools.nodes(inputs)[name])["Ready"] == "False"
    back = plane.api.until(NODES, lambda found: conditions(found[name])["Ready"] == "True")
    # Its end is noted in whole seconds.
    assert time.monotonic() - started > 19
    assert back[name]["status"]["nodeInfo"]["bootID"] != before[name]["status"]["nodeInfo"]["bootID"]
    assert await pools.drift(inputs) == {}
    await faults.end("patching")
    await as_before(pools, inputs, before)


async def test_a_silent_nodes_lease_is_taken_from_its_keeper_until_it_is_given_back(
    plane: Plane, pools: Pools, faults: Faults, workloads: Create
) -> None:
    inputs, before = await settled(pools, 1)
    name = inputs["name"]
    keeper = kept_by(plane, f"{name}-0")
    fault = faults.inputs("dead", {name: "0"}, "unreachable")
    await faults.begin(fault)
    # That it is renewed no more, test_slow_and_stuck.py shows, where leases are renewed more often.
    assert plane.api.get(f"{LEASES}/{name}-0")["spec"]["holderIdentity"] == "kumulus-fault"
    found = await faults.resource.read(operation(), "id", fault, fault)
    assert found is not None
    assert "drift" not in found.outputs

    await faults.end("dead")
    assert kept_by(plane, f"{name}-0") == keeper
    workloads(PODS, pod(name, name))
    plane.api.until(PODS, lambda found: found[name]["status"]["phase"] == "Running")
    assert whole(pools.nodes(inputs)) == before


async def test_reclaimed_nodes_go_with_their_pods_and_are_not_made_again_while_the_fault_holds(
    plane: Plane, pools: Pools, faults: Faults, workloads: Create
) -> None:
    inputs, before = await settled(pools, 3)
    name = inputs["name"]
    # Not one of the Job's: while pods of it run, the API server refuses its status for the back-off of 10 s and more.
    survivor = pod(f"{name}-stays", name, cpu="3")
    survivor["spec"]["nodeName"] = f"{name}-1"
    workloads(PODS, survivor)
    workloads(JOBS, job(name, name, "1h", parallelism=2, cpu="3"))
    plane.api.until(
        PODS,
        lambda found: sum(p["status"]["phase"] == "Running" for p in found.values()) == 3,
        labelSelector=f"test={name}",
    )
    # What a fault of pods would hit is counted by the kind of workload too.
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        labels = {"test": name}
        assert await count_affected(client, {}, PodEffects("stuck", labels=labels), {}) == 3
        assert (
            await count_affected(client, {}, PodEffects("stuck", labels=labels, owner_kinds=("JobSet", "Job")), {}) == 2
        )
    said = Said()
    fault = faults.inputs("reclaim", {name: "0,2"}, "spot-reclaim")
    await faults.begin(fault, said, preview=True)
    assert "2 running pods on them" in said.messages[0]
    await faults.begin(fault)
    # At once: Kubernetes' garbage collector would come to them a minute later.
    reclaimed = [
        each["status"]["phase"]
        for each in plane.api.list(PODS, labelSelector=f"test={name}")
        if each["spec"].get("nodeName") in (f"{name}-0", f"{name}-2")
    ]
    assert set(reclaimed) <= {"Failed"}
    assert set(pools.nodes(inputs)) == {f"{name}-1"}
    assert await pools.drift(inputs) == {}
    assert await pools.update(inputs, inputs) == inputs
    assert set(pools.nodes(inputs)) == {f"{name}-1"}
    # The Job counts the disruption and makes other pods, for which there is no room now.
    plane.api.until(JOBS, lambda found: found[name]["status"].get("failed") == 2)

    await faults.end("reclaim")
    after = whole(pools.nodes(inputs))
    for node in (*after.values(), *before.values()):
        for key in ("uid", "creationTimestamp"):
            node["metadata"].pop(key)
    assert after == before


async def test_a_fault_moves_in_place_and_one_that_clashes_is_refused(pools: Pools, faults: Faults) -> None:
    inputs, before = await settled(pools, 4)
    name = inputs["name"]
    first = faults.inputs("one", {name: "0-1"}, capacity={GPU: "-1"}, labels={"example.com/state": "broken"})
    await faults.begin(first)
    moved = faults.inputs("one", {name: "1-2"}, capacity={GPU: "-2"}, labels={"example.com/state": "broken"})
    await faults.change(first, moved)
    nodes = pools.nodes(inputs)
    assert [nodes[f"{name}-{n}"]["status"]["allocatable"][GPU] for n in range(4)] == ["8", "6", "6", "8"]
    assert whole(nodes)[f"{name}-0"] == before[f"{name}-0"]

    with pytest.raises(ProviderError, match=rf"the capacity of nvidia.com/gpu of {name}-2; remove it from the stack"):
        await faults.begin(faults.inputs("two", {name: "2-3"}, capacity={GPU: "0"}))
    faults.made.pop("two")
    cluster_owner = faults.inputs("three", {name: "2-3"}, labels={"example.com/other": "x"})
    await faults.begin(cluster_owner)
    assert pools.nodes(inputs)[f"{name}-2"]["metadata"]["annotations"][FAULTS_ANNOTATION] == "one,three"
    await faults.end("one")
    left = pools.nodes(inputs)[f"{name}-2"]["metadata"]
    assert left["annotations"][FAULTS_ANNOTATION] == "three"
    assert "example.com/state" not in left["labels"]
    await faults.end("three")
    assert whole(pools.nodes(inputs)) == before


async def test_a_fault_whose_time_is_up_or_whose_ending_was_cut_short_is_ended_by_the_next_operation(
    plane: Plane, pools: Pools, faults: Faults
) -> None:
    inputs, before = await settled(pools, 3)
    name = inputs["name"]
    keeper = kept_by(plane, f"{name}-0")
    client = await faults.resource.client(faults.inputs("x", {}, "not-ready"), 5)
    brief = records.Record("brief", nodes={name: frozenset({0})}, node=fault_kinds()["unreachable"].node)
    await operations.begin(client, brief)
    until = records.Record(
        "brief", nodes=brief.nodes, node=brief.node, since="2026-01-01T00:00:00Z", until="2026-01-01T00:00:01Z"
    )
    await records.write_fault(client, until)
    cut = records.Record("cut", nodes={name: frozenset({1})}, node=fault_kinds()["xid-48"].node)
    await operations.begin(client, cut)
    await records.write_fault(client, records.Record("cut", nodes=cut.nodes, node=cut.node, ending=True))
    assert await pools.drift(inputs) != {}
    await pools.update(inputs, inputs)
    assert whole(pools.nodes(inputs)) == before
    assert kept_by(plane, f"{name}-0") == keeper
    assert {"brief", "cut"}.isdisjoint((await records.read(client)).faults)


async def test_a_resized_pool_keeps_its_faults(pools: Pools, faults: Faults) -> None:
    inputs, _ = await settled(pools, 3)
    name = inputs["name"]
    await faults.begin(faults.inputs("wide", {name: "0-9"}, capacity={GPU: "-3"}))
    more = pools.inputs(6, name)
    await pools.update(more, inputs)
    assert {n["status"]["allocatable"][GPU] for n in pools.nodes(inputs).values()} == {"5"}
    assert await pools.drift(more) == {}
    fewer = pools.inputs(2, name)
    await pools.update(fewer, more)
    await faults.end("wide")
    assert {n["status"]["allocatable"][GPU] for n in pools.nodes(inputs).values()} == {"8"}
    assert len(pools.nodes(inputs)) == 2
