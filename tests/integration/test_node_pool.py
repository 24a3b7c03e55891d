"""Node pools on a real control plane: made, resized, changed, drifted, interrupted, removed."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import certifi
import pytest
import yaml

from kumulus.kube import Client, Unreachable, load_kubeconfig
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.kube.messages import MessageCodec
from kumulus.model.applied import APPLIED
from kumulus.model.pool_form import POOL_KEYS, pool_from_properties
from kumulus.model.pools import POOL_LABEL
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.pools import converge as converging
from kumulus.nodes.pools import observe as observing
from kumulus.nodes.pools.live import listed_node, live_node
from kumulus.nodes.pools.observe import observe
from kumulus.nodes.pools.single import change_node
from kumulus.nodes.pools.slices import publish
from kumulus.runtimes.kwok.storage import OwnEtcd
from tests.integration.conftest import (
    JOBS,
    KWOK_TAINT,
    LEASES,
    NODES,
    PODS,
    Plane,
    Pools,
    conditions,
    job,
    operation,
    pod,
    ready,
)
from tests.support import versions
from tests.support.api import Object
from tests.support.said import Said

pytestmark = pytest.mark.integration
Create = Callable[[str, Object], Object]
OLDEST = versions.on_offer()[-1]


def names(inputs: dict[str, Any], *ordinals: int) -> set[str]:
    return {f"{inputs['name']}-{ordinal}" for ordinal in ordinals}


# --- made and resized ------------------------------------------------------------------------------------------------


async def test_fifty_nodes_are_ready_at_once_and_stay_ready(plane: Plane, pools: Pools) -> None:
    inputs, said = pools.inputs(50), Said()
    outputs = await pools.create(inputs, said)
    made = pools.nodes(inputs)
    assert outputs == inputs
    assert set(made) == names(inputs, *range(50))
    assert all(map(ready, made.values()))
    assert sum(int(node["status"]["allocatable"]["nvidia.com/gpu"]) for node in made.values()) == 400
    assert said.statuses[-1].startswith("nodes 50/50 · ")
    # Once KWOK holds their leases it plays their kubelets.
    plane.api.until(LEASES, lambda leases: set(made) <= set(leases))
    assert all(map(ready, pools.nodes(inputs).values()))
    # The API server gives every new node a taint that the controller manager takes off a Ready one.
    plane.api.until(
        NODES,
        lambda found: all(node["spec"]["taints"] == [KWOK_TAINT] for node in found.values()),
        labelSelector=f"{POOL_LABEL}={inputs['name']}",
    )


async def test_making_what_is_there_already_does_nothing(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(20)
    await pools.create(inputs)
    # The controller manager adds this label to every new node; after that nobody writes to them for minutes.
    plane.api.until(
        NODES,
        lambda found: all("beta.kubernetes.io/os" in node["metadata"]["labels"] for node in found.values()),
        labelSelector=f"{POOL_LABEL}={inputs['name']}",
    )
    before = {name: node["metadata"]["resourceVersion"] for name, node in pools.nodes(inputs).items()}
    assert await pools.update(inputs, inputs) == inputs
    assert await pools.create(inputs) == inputs
    assert {name: node["metadata"]["resourceVersion"] for name, node in pools.nodes(inputs).items()} == before


async def test_growing_creates_only_the_missing_nodes(pools: Pools) -> None:
    inputs = pools.inputs(3)
    outputs = await pools.create(inputs)
    before = pools.uids(inputs)
    more = pools.inputs(6, inputs["name"])
    assert (await pools.update(more, outputs))["replicas"] == 6
    after = pools.uids(inputs)
    assert set(after) == names(inputs, *range(6))
    assert after.items() >= before.items()


async def test_named_nodes_are_made_mended_and_exchanged_by_name(plane: Plane, pools: Pools) -> None:
    own = pools.name()
    called = [f"ip-{own}-{each}" for each in "abc"]
    nodes = [{"name": called[0], "labels": {"rack": "r3"}}, {"name": called[1], "unschedulable": True}]
    inputs = pools.inputs(2, own, nodes=nodes)
    outputs = await pools.create(inputs)
    made = pools.nodes(inputs)
    assert set(made) == set(called[:2])
    assert [made[name]["metadata"]["labels"].get("rack") for name in called[:2]] == ["r3", None]
    assert [made[name]["spec"].get("unschedulable", False) for name in called[:2]] == [False, True]
    assert await pools.drift(inputs) == {}
    # Whoever uncordons it is right to.
    plane.api.merge(f"{NODES}/{called[1]}", {"spec": {"unschedulable": None}})
    plane.api.merge(f"{NODES}/{called[0]}", {"metadata": {"labels": {"rack": "r9"}}})
    assert list((await pools.drift(inputs))["altered"]) == [called[0]]

    uids = pools.uids(inputs)
    other = pools.inputs(2, own, nodes=[nodes[0], {"name": called[2]}])
    await pools.update(other, outputs)
    assert set(pools.uids(other)) == {called[0], called[2]}
    assert pools.uids(other)[called[0]] == uids[called[0]]
    assert pools.nodes(other)[called[0]]["metadata"]["labels"]["rack"] == "r3"
    assert await pools.drift(other) == {}


async def test_shrinking_removes_the_highest_ordinals_and_their_pods(
    plane: Plane, pools: Pools, workloads: Create
) -> None:
    inputs = pools.inputs(6)
    pool, selector = inputs["name"], f"test={inputs['name']}"
    outputs = await pools.create(inputs)
    # Each node has room for one of these.
    workloads(JOBS, job(f"{pool}-job", pool, "1h", parallelism=5, cpu="3"))
    workloads(PODS, pod(pool, pool, cpu="3"))
    bound = plane.api.until(
        PODS,
        lambda found: sum(p["status"]["phase"] == "Running" for p in found.values()) == 6,
        labelSelector=selector,
    )
    assert len({p["spec"]["nodeName"] for p in bound.values()}) == 6
    uids, fewer = pools.uids(inputs), pools.inputs(2, pool)

    said = Said()
    await pools.update(fewer, outputs, said, preview=True)
    assert "−4 nodes (6 → 2)" in said.messages[0]
    assert "4 running pods would go" in said.messages[0]
    assert pools.uids(inputs) == uids

    assert (await pools.update(fewer, outputs))["replicas"] == 2
    assert pools.uids(inputs) == {name: uids[name] for name in names(inputs, 0, 1)}
    stayed = {name: p for name, p in bound.items() if p["spec"]["nodeName"] in names(inputs, 0, 1)}
    left = {p["metadata"]["name"]: p for p in plane.api.list(PODS, labelSelector=selector)}
    assert {name for name, p in left.items() if p["spec"].get("nodeName")} == set(stayed)
    assert all(left[name]["metadata"]["uid"] == p["metadata"]["uid"] for name, p in stayed.items())
    # The Job wants as many pods as before and holds nothing against them.
    replaced = plane.api.until(PODS, lambda found: len(found) == 5, labelSelector=f"job={pool}-job")
    assert sum("nodeName" not in p["spec"] for p in replaced.values()) >= 3
    assert plane.api.get(f"{JOBS}/{pool}-job")["status"].get("failed", 0) == 0


async def test_shrinking_takes_nodes_along_that_lost_the_pools_label(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(6)
    await pools.create(inputs)
    pool = inputs["name"]
    plane.api.merge(f"{NODES}/{pool}-5", {"metadata": {"labels": {POOL_LABEL: None}}})
    plane.api.delete(f"{NODES}/{pool}-0")
    found = await pools.read(inputs)
    assert found is not None
    assert found.outputs["replicas"] == 5, "of which the one that lost its label is not within the first five"
    fewer = pools.inputs(3, pool)
    await pools.resource.update(operation(old_inputs=inputs), "id", found.outputs, fewer)
    left = {node["name"] for node in plane.api.metadata(NODES)}
    assert {name for name in left if name.startswith(f"{pool}-")} == names(inputs, 0, 1, 2)


async def test_nodes_that_have_changed_their_pool_stay_when_the_old_one_is_gone(pools: Pools) -> None:
    called = [{"name": f"{pools.name()}-own-{index}"} for index in range(2)]
    before = pools.inputs(2, pools.name(), nodes=called)
    outputs = await pools.create(before)
    now = pools.inputs(2, pools.name(), nodes=called)
    await pools.create(now)
    uids = pools.uids(now)
    assert uids.keys() == {each["name"] for each in called}
    await pools.resource.delete(operation(old_inputs=before), "id", outputs)
    assert pools.uids(now) == uids


async def test_a_node_that_is_called_as_a_number_beyond_the_last_one_stays(pools: Pools) -> None:
    own = pools.name()
    inputs = pools.inputs(3, own, nodes=[{"name": f"{own}-{index}"} for index in range(3)])
    outputs = await pools.create(inputs)
    fewer = pools.inputs(2, own, nodes=[{"name": f"{own}-0"}, {"name": f"{own}-2"}])
    await pools.resource.update(operation(old_inputs=inputs), "id", outputs, fewer)
    assert pools.uids(fewer).keys() == {f"{own}-0", f"{own}-2"}


async def test_a_pool_may_be_empty(pools: Pools) -> None:
    inputs = pools.inputs(2)
    outputs = await pools.create(inputs)
    none = pools.inputs(0, inputs["name"])
    assert (await pools.update(none, outputs))["replicas"] == 0
    assert pools.nodes(inputs) == {}
    assert await pools.drift(none) == {}


async def test_deleting_a_pool_removes_its_nodes_and_pods_and_nobody_elses(
    plane: Plane, pools: Pools, workloads: Create
) -> None:
    inputs, others = pools.inputs(3), pools.inputs(2)
    await pools.create(inputs)
    await pools.create(others)
    pool = inputs["name"]
    workloads(PODS, pod(pool, pool))
    plane.api.until(PODS, lambda found: pool in found and "nodeName" in found[pool]["spec"])
    # Somebody took the pool's label off one of them: it is the pool's all the same.
    plane.api.merge(f"{NODES}/{pool}-1", {"metadata": {"labels": {POOL_LABEL: None}}})
    kept = pools.uids(others)
    await pools.delete(inputs)
    left = {node["name"] for node in plane.api.metadata(NODES)}
    assert not left & names(inputs, 0, 1, 2)
    assert plane.api.list(PODS, labelSelector=f"test={pool}") == []
    assert pools.uids(others) == kept
    await pools.delete(inputs)


# --- changed in place ------------------------------------------------------------------------------------------------


async def test_a_changed_template_is_applied_in_place(pools: Pools) -> None:
    inputs = pools.inputs(3)
    outputs = await pools.create(inputs)
    before = pools.uids(inputs)
    changed = pools.inputs(
        3,
        inputs["name"],
        labels={"team": "ads", "rack": "r1"},
        annotations={"example.com/note": "second"},
        taints=[{**KWOK_TAINT, "value": "still"}, {"key": "dedicated", "effect": "PreferNoSchedule"}],
        capacity={"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "4", "example.com/nic": "2"},
        allocatable={"cpu": "7"},
        nodeInfo={"kubeletVersion": "v1.35.4"},
    )
    said = Said()
    outputs = await pools.update(changed, outputs, said)
    assert outputs == changed
    assert pools.uids(inputs) == before
    for node in pools.nodes(inputs).values():
        labels, annotations, status = node["metadata"]["labels"], node["metadata"]["annotations"], node["status"]
        assert (labels["team"], labels["rack"], annotations["example.com/note"]) == ("ads", "r1", "second")
        assert node["spec"]["taints"] == [
            {**KWOK_TAINT, "value": "still"},
            {"key": "dedicated", "effect": "PreferNoSchedule"},
        ]
        assert status["capacity"] == changed["capacity"]
        assert status["allocatable"] == {**changed["capacity"], "cpu": "7"}
        assert status["nodeInfo"]["kubeletVersion"] == "v1.35.4"
    assert await pools.drift(changed) == {}


async def test_declared_features_are_kept_as_the_template_names_them(plane: Plane, pools: Pools) -> None:
    info = {"kubeletVersion": plane.wanted.kubernetes_version}

    def declared() -> list[list[str]]:
        return [node["status"].get("declaredFeatures", []) for node in pools.nodes(inputs).values()]

    # Enough to be written to the storage, too.
    inputs = pools.inputs(25, nodeInfo=info, declaredFeatures=["RestartAllContainersOnContainerExits", "Own/feature"])
    outputs = await pools.create(inputs)
    assert declared() == [["Own/feature", "RestartAllContainersOnContainerExits"]] * 25
    name = f"{inputs['name']}-7"
    plane.api.request("PATCH", f"{NODES}/{name}/status", {"status": {"declaredFeatures": ["Other"]}}, MERGE_PATCH)
    assert "declaredFeatures" in str((await pools.drift(inputs))["altered"])
    outputs = await pools.update(inputs, outputs)
    assert await pools.drift(inputs) == {}
    none = pools.inputs(25, inputs["name"], nodeInfo=info, declaredFeatures=[])
    outputs = await pools.update(none, outputs)
    assert declared() == [[]] * 25
    await pools.update(pools.inputs(25, inputs["name"], nodeInfo=info), outputs)
    assert all("ExtendWebSocketsToKubelet" in each and "Own/feature" not in each for each in declared())


@pytest.mark.parametrize("plane", [pytest.param(OLDEST, marks=versions.needs(OLDEST))], indirect=True, scope="session")
async def test_a_version_that_drops_declared_features_is_told_of(plane: Plane, pools: Pools) -> None:
    with pytest.raises(ProviderError, match="drops declaredFeatures of nodes: switch the feature gate"):
        await pools.create(inputs := pools.inputs(1, declaredFeatures=["Own"]))
    assert not pools.nodes(inputs)
    await pools.create(pools.inputs(1, declaredFeatures=[]))


async def test_what_the_template_drops_is_removed(pools: Pools) -> None:
    inputs = pools.inputs(2)
    outputs = await pools.create(inputs)
    before = pools.uids(inputs)
    without = pools.inputs(
        2, inputs["name"], labels={}, annotations={}, taints=[], capacity={"cpu": "4", "memory": "16Gi", "pods": "110"}
    )
    await pools.update(without, outputs)
    assert pools.uids(inputs) == before
    for node in pools.nodes(inputs).values():
        assert "team" not in node["metadata"]["labels"]
        assert "example.com/note" not in node["metadata"]["annotations"]
        assert "taints" not in node["spec"]
        assert "nvidia.com/gpu" not in node["status"]["capacity"]
        assert "nvidia.com/gpu" not in node["status"]["allocatable"]


@pytest.mark.parametrize("taints", [[KWOK_TAINT], []], ids=["same-taints", "other-taints"])
async def test_what_the_template_drops_is_removed_after_a_run_that_was_cut_off_at_a_node(
    plane: Plane, pools: Pools, monkeypatch: pytest.MonkeyPatch, taints: list[dict[str, str]]
) -> None:
    inputs = pools.inputs(1, taints=[KWOK_TAINT])
    outputs = await pools.create(inputs)
    node = f"{NODES}/{inputs['name']}-0"
    assert "nvidia.com/gpu" in plane.api.get(node)["status"]["capacity"]
    without = pools.inputs(1, inputs["name"], taints=taints, capacity={"cpu": "4", "memory": "16Gi", "pods": "110"})
    pool = pool_from_properties({key: without[key] for key in POOL_KEYS if key in without})
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        send = client.request

        async def cut_off(verb: str, path: str, **how: Any) -> Any:
            await send(verb, path, **how)
            raise asyncio.CancelledError

        stale = live_node(plane.api.get(node))
        monkeypatch.setattr(client, "request", cut_off)
        with pytest.raises(asyncio.CancelledError):
            await change_node(client, pool, 0, stale)
    await pools.update(without, outputs)
    status = plane.api.get(node)["status"]
    assert "nvidia.com/gpu" not in status["capacity"]
    assert "nvidia.com/gpu" not in status["allocatable"]
    assert await pools.drift(without) == {}


async def test_a_taint_that_appears_meanwhile_survives(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(1)
    await pools.create(inputs)
    node = f"{inputs['name']}-0"
    stale = live_node(plane.api.get(f"{NODES}/{node}"))
    fault = {"key": "fault.example.com/gpu", "value": "xid-79", "effect": "NoExecute"}
    plane.api.merge(f"{NODES}/{node}", {"spec": {"taints": [KWOK_TAINT, fault]}})
    changed = pools.inputs(1, inputs["name"], taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    pool = pool_from_properties({key: changed[key] for key in POOL_KEYS if key in changed})
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        await change_node(client, pool, 0, stale)
    assert plane.api.get(f"{NODES}/{node}")["spec"]["taints"] == [{"key": "dedicated", "effect": "NoSchedule"}, fault]


async def test_a_listed_node_is_read_as_the_same_node_alone_and_others_taints_are_written_back_whole(
    plane: Plane, pools: Pools
) -> None:
    inputs = pools.inputs(1, annotations={"example.com/note": "fast ⚡"})
    await pools.create(inputs)
    path = f"{NODES}/{inputs['name']}-0"
    lost = {"key": "node.kubernetes.io/out", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    plane.api.merge(path, {"spec": {"taints": [KWOK_TAINT, lost, {"key": "a", "value": "b", "effect": "NoSchedule"}]}})
    alone = live_node(plane.api.get(path))
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        only = {"fieldSelector": f"metadata.name={inputs['name']}-0"}
        pages = [page async for page in client.listed(NODES, MessageCodec("Node"), only)]
    (listed,) = (listed_node(message) for page in pages for message in page)
    assert replace(listed, version="") == replace(alone, version="")
    assert len(listed.labels) > 5
    assert listed.capacity

    changed = pools.inputs(1, inputs["name"], taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    await pools.update(changed, inputs)
    others = [{"key": "a", "value": "b", "effect": "NoSchedule"}, lost]
    taints = plane.api.get(path)["spec"]["taints"]
    assert taints[0] == {"key": "dedicated", "effect": "NoSchedule"}
    assert sorted(taints[1:], key=lambda taint: taint["key"]) == others


# --- drift -----------------------------------------------------------------------------------------------------------


async def test_drift_of_every_kind_is_named_and_repaired(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(9)
    await pools.create(inputs)
    pool, api = inputs["name"], plane.api
    before = pools.uids(inputs)
    api.delete(f"{NODES}/{pool}-7")
    api.delete(f"{NODES}/{pool}-8")
    api.merge(f"{NODES}/{pool}-0", {"metadata": {"labels": {"team": "ads"}}})
    api.merge(f"{NODES}/{pool}-1", {"spec": {"taints": []}})
    api.merge(f"{NODES}/{pool}-2/status", {"status": {"capacity": {"nvidia.com/gpu": "4"}}})
    api.merge(f"{NODES}/{pool}-3", {"metadata": {"labels": {POOL_LABEL: None}}})
    api.merge(f"{NODES}/{pool}-4", {"metadata": {"annotations": {APPLIED: "spoiled"}}})
    intruder = {"metadata": {"name": f"{pool}-intruder", "labels": {POOL_LABEL: pool}}}
    api.create(NODES, intruder)

    found = await pools.read(inputs)
    assert found is not None
    assert found.inputs == inputs
    assert found.outputs["replicas"] == 7
    assert found.outputs["drift"] == {
        "missing": f"2: {pool}-7, {pool}-8",
        "extra": f"1: {pool}-intruder",
        "altered": {
            f"{pool}-0": 'labels["team"]: "ads" instead of "search"',
            f"{pool}-1": 'taints["kwok.x-k8s.io/node:NoSchedule"]: missing instead of "fake"',
            f"{pool}-2": 'capacity["nvidia.com/gpu"]: "4" instead of "8"',
            f"{pool}-3": f'labels["{POOL_LABEL}"]: missing instead of "{pool}"',
            f"{pool}-4": f'annotations["{APPLIED}"]: "another record" instead of "our record"',
        },
    }
    differing = {d.path for d in pools.resource.diff(found.outputs, inputs)}
    assert differing == {"replicas", "drift.missing", "drift.extra", "drift.altered"}

    assert await pools.update(inputs, found.outputs) == inputs
    after = pools.uids(inputs)
    assert set(after) == names(inputs, *range(9))
    untouched = names(inputs, *range(7))
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}
    assert await pools.drift(inputs) == {}


async def test_what_others_did_to_nodes_is_no_drift_and_survives_a_repair(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    node, api = f"{NODES}/{inputs['name']}-0", plane.api
    fault = {"key": "fault.example.com/gpu", "value": "xid-79", "effect": "NoExecute"}
    api.merge(
        node,
        {
            "metadata": {"labels": {"example.com/theirs": "yes"}, "annotations": {"example.com/theirs": "yes"}},
            "spec": {"unschedulable": True, "taints": [KWOK_TAINT, fault]},
        },
    )
    status = api.get(node)["status"]
    broken = {"type": "GpuHealthy", "status": "False", "reason": "Xid79", "message": "fallen off the bus"}
    api.merge(
        f"{node}/status",
        {"status": {"conditions": [*status["conditions"], broken], "capacity": {"example.com/theirs": "3"}}},
    )
    assert await pools.drift(inputs) == {}

    changed = pools.inputs(
        2, inputs["name"], labels={"team": "ads"}, capacity={**inputs["capacity"], "nvidia.com/gpu": "4"},
        taints=[{**KWOK_TAINT, "value": "still"}],
    )  # fmt: skip
    await pools.update(changed, inputs)
    after = api.get(node)
    assert after["metadata"]["labels"]["example.com/theirs"] == "yes"
    assert after["metadata"]["annotations"]["example.com/theirs"] == "yes"
    assert after["spec"]["unschedulable"] is True
    assert fault in after["spec"]["taints"]
    assert conditions(after)["GpuHealthy"] == "False"
    assert after["status"]["capacity"]["example.com/theirs"] == "3"
    assert (after["metadata"]["labels"]["team"], after["status"]["capacity"]["nvidia.com/gpu"]) == ("ads", "4")


async def test_a_pool_without_any_node_left_is_gone(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    for name in names(inputs, 0, 1):
        plane.api.delete(f"{NODES}/{name}")
    assert await pools.read(inputs) is None


# --- real nodes ------------------------------------------------------------------------------------------------------


def real_node(name: str, **labels: str) -> Object:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", **labels}},
        "status": {
            "capacity": {"cpu": "2"},
            "nodeInfo": {
                **dict.fromkeys(("architecture", "bootID", "kernelVersion", "kubeProxyVersion", "kubeletVersion"), ""),
                **dict.fromkeys(("machineID", "operatingSystem", "osImage", "systemUUID"), ""),
                "containerRuntimeVersion": "containerd://1.7.2",
            },
        },
    }


def writers(node: Object) -> set[str]:
    return {entry["manager"] for entry in node["metadata"]["managedFields"]}


async def test_a_real_nodes_name_is_refused_and_the_node_left_alone(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(3)
    taken = f"{inputs['name']}-1"
    plane.api.create(NODES, real_node(taken))
    try:
        with pytest.raises(PartialFailure) as raised:
            await pools.create(inputs)
        assert str(raised.value) == (
            f"pool {inputs['name']}: nodes: 2 created: a real node already carries the name {taken}; "
            "rename the node group or its zone"
        )
        assert raised.value.outputs["replicas"] == 2
        assert raised.value.outputs["drift"] == {"realNodes": f"1: {taken}"}
        await pools.delete(inputs)
        assert {node["name"] for node in plane.api.metadata(NODES)} & names(inputs, 0, 1, 2) == {taken}
        node = plane.api.get(f"{NODES}/{taken}")
        assert node["status"]["capacity"] == {"cpu": "2"}
        assert "kumulus" not in writers(node)
    finally:
        plane.api.delete(f"{NODES}/{taken}")


async def test_a_real_node_under_the_pools_label_is_never_removed(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    worker = f"{inputs['name']}-worker"
    plane.api.create(NODES, real_node(worker, **{POOL_LABEL: inputs["name"]}))
    try:
        assert await pools.drift(inputs) == {}
        await pools.update(inputs, inputs)
        await pools.delete(inputs)
        assert set(pools.nodes(inputs)) == {worker}
    finally:
        plane.api.delete(f"{NODES}/{worker}")


# --- interrupted -----------------------------------------------------------------------------------------------------


async def test_a_create_that_was_killed_half_way_is_finished_by_the_next(pools: Pools) -> None:
    inputs, said = pools.inputs(300), Said()
    task = asyncio.ensure_future(pools.create(inputs, said))
    said.on_status = lambda _: task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    half = pools.uids(inputs)
    assert 0 < len(half) < 300
    await pools.create(inputs)
    after = pools.uids(inputs)
    assert set(after) == names(inputs, *range(300))
    assert after.items() >= half.items()


async def test_a_stop_ends_it_soon_and_records_what_was_done(pools: Pools) -> None:
    # Several times as many as there are requests under way at once, so that there is something to stop.
    inputs, said, stop = pools.inputs(1000), Said(), asyncio.Event()
    said.on_status = lambda _: stop.set()
    with pytest.raises(PartialFailure) as raised:
        await pools.create(inputs, said, stop=stop)
    there = len(pools.nodes(inputs))
    failure = raised.value
    assert 0 < there < 1000
    assert failure.resource_id == f"test/{inputs['name']}"
    assert failure.outputs["replicas"] == there
    assert f"{there:,} created; {1000 - there:,} left to do: stopped on request" in str(failure)
    assert str(failure.outputs["drift"]["missing"]).startswith(f"{1000 - there:,}: ")

    outputs = await pools.update(inputs, failure.outputs)
    assert outputs == inputs
    assert set(pools.nodes(inputs)) == names(inputs, *range(1000))


@pytest.mark.parametrize("slow", [1.4, None], ids=["slow", "never"])
async def test_a_stop_records_nodes_whose_slices_are_under_way_though_looking_takes_long(
    plane: Plane, pools: Pools, monkeypatch: pytest.MonkeyPatch, slow: float | None
) -> None:
    """A node is written in no time, and its slice is not: 100 were there once, and 4 on record."""
    gpus = {"driver": "gpu.nvidia.com", "count": 2, "attributes": {"type": {"string": "gpu"}}}
    inputs, stop, published, looks = pools.inputs(100, resourceSlices=gpus), asyncio.Event(), 0, 0

    async def slowly(*given: Any) -> None:
        nonlocal published
        published += 1
        if published > 4:
            stop.set()
            await asyncio.sleep(30)
        await publish(*given)

    async def look(*given: Any, **options: Any) -> Any:
        nonlocal looks
        looks += 1
        if slow is None:
            raise Unreachable("the API server", "it is busy")
        await asyncio.sleep(slow)
        return await observe(*given, **options)

    monkeypatch.setattr(converging, "publish", slowly)
    monkeypatch.setattr(observing, "observe", look)
    with pytest.raises(PartialFailure) as failed:
        await pools.create(inputs, stop=stop)
    assert published > 4
    assert looks
    outputs, there = failed.value.outputs, len(pools.nodes(inputs))
    assert there > 4
    # Of what nobody could look at, that is on record which is known to be there.
    assert outputs["replicas"] == there if slow else 4 < outputs["replicas"] <= there
    assert ("not known" in str(outputs["drift"])) is (slow is None)
    monkeypatch.undo()
    assert await pools.update(inputs, outputs) == inputs
    assert not await pools.drift(inputs)


async def test_a_users_timeout_records_what_was_done(pools: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, begun, create = pools.inputs(600), 0, OwnEtcd.create

    async def creates(self: OwnEtcd, *objects: tuple[bytes, bytes]) -> bool:
        nonlocal begun
        begun += 1
        if begun > 200:
            # However fast the machine is, these are not written in time.
            await asyncio.sleep(60)
        return await create(self, *objects)

    monkeypatch.setattr(OwnEtcd, "create", creates)
    with pytest.raises(PartialFailure, match=r"not finished within 10 s") as raised:
        await pools.create(inputs, timeout=10)
    assert 0 < raised.value.outputs["replicas"] == len(pools.nodes(inputs)) < 600


async def test_two_runs_at_once_make_each_node_once(pools: Pools) -> None:
    inputs = pools.inputs(60)
    await asyncio.gather(pools.create(inputs), pools.create(inputs))
    assert set(pools.nodes(inputs)) == names(inputs, *range(60))
    assert await pools.drift(inputs) == {}


# --- another cluster -------------------------------------------------------------------------------------------------


async def test_in_another_cluster_under_the_same_kubeconfig_there_is_nothing_of_ours(pools: Pools) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    elsewhere = {**inputs, "clusterIdentity": "another"}
    before = pools.uids(inputs)
    assert await pools.read(elsewhere) is None
    await pools.delete(elsewhere)
    with pytest.raises(ProviderError, match=r"another cluster .* answers in place of another"):
        await pools.update(elsewhere, elsewhere)
    assert pools.uids(inputs) == before


async def test_a_server_with_another_certificate_is_unreachable_in_words(plane: Plane, tmp_path: Path) -> None:
    document = yaml.safe_load((plane.directory / "kubeconfig.yaml").read_text())
    document["clusters"][0]["cluster"]["certificate-authority"] = certifi.where()
    for entry in ("client-certificate", "client-key"):
        user = document["users"][0]["user"]
        user[entry] = str(plane.directory / user[entry])
    file = tmp_path / "kubeconfig.yaml"
    file.write_text(yaml.safe_dump(document))
    async with Client(load_kubeconfig(file)) as client:
        with pytest.raises(Unreachable, match="not reachable: its certificate is not trusted: "):
            # However patient: asking again would not make it a trusted one.
            await asyncio.wait_for(client.get("/api/v1/namespaces", patience=120), timeout=20)
