"""The live views on a real control plane: what they count, and what they say when the API server goes."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kumulus.cli.cluster import NamedCluster, health_endpoints
from kumulus.extras.watch.commands import look
from kumulus.extras.watch.console.changes import ChangeRefused, ClusterChanges
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.extras.watch.live.fleet import Live
from kumulus.extras.watch.live.summary import summary
from kumulus.kube import Client, load_kubeconfig
from kumulus.kube.codecs import PROTOBUF
from kumulus.kube.messages import MessageCodec
from kumulus.kube.watch import Events, Synced, follow
from kumulus.runtimes.base import Observed, RecordedControlPlane
from kumulus.runtimes.kwok.runtime import KwokRuntime
from kumulus.runtimes.place import cluster_owner
from tests.integration.conftest import NODES, PODS, Plane, Pools, job, pod, wanted
from tests.support import processes
from tests.support.api import Api, Object
from tests.support.said import Said

pytestmark = pytest.mark.integration
RESOURCE = "/apis/resource.k8s.io/v1"
SLICES, CLASSES = f"{RESOURCE}/resourceslices", f"{RESOURCE}/deviceclasses"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
Create = Callable[[str, Object], Object]


def gpu_pod(name: str, pool: str, gpus: int, **spec: Any) -> Object:
    """A pod of some GPUs for a node of a pool."""
    found = pod(name, pool)
    found["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    found["spec"] |= spec
    return found


async def until(holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up, f"after {seconds:.0f} s still not so: {what}"
        await asyncio.sleep(0.05)


@asynccontextmanager
async def looking(plane: Plane) -> AsyncIterator[Live]:
    async with look.live(at(plane.observed)) as live:
        yield live


def at(observed: Observed) -> NamedCluster:
    endpoints = health_endpoints(Path(observed.directory))
    return NamedCluster("test", Path(observed.kubeconfig), endpoints=endpoints)


async def test_protobuf_says_what_json_says(plane: Plane, pools: Pools, workloads: Create) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    pool = inputs["name"]
    term = {"matchExpressions": [{"key": "kumulus.io/pool", "operator": "In", "values": [pool]}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    chosen = {
        "affinity": {
            "nodeAffinity": {required: {"nodeSelectorTerms": [term]}},
            "podAntiAffinity": {required: [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}]},
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "resourceClaims": [{"name": "none", "resourceClaimName": "none"}],
    }
    found = gpu_pod(f"{pool}-c", pool, 1, **chosen)
    assert found["spec"]["tolerations"]
    for body in (gpu_pod(f"{pool}-a", pool, 2), gpu_pod(f"{pool}-b", pool, 99), found):
        workloads(PODS, body)
    plane.api.until(PODS, lambda found: found[f"{pool}-a"]["status"]["phase"] == "Running")
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        for path, kind in ((NODES, "Node"), (PODS, "Pod")):
            messages, items = await read_twice(client, plane, path, kind)
            for wanted in items:
                agrees(messages[wanted["metadata"]["name"]], wanted)


async def read_twice(client: Client, plane: Plane, path: str, kind: str) -> tuple[dict[str, Any], list[Object]]:
    """Objects in protobuf, by name, and in JSON, with nothing changed between the two reads."""
    for _ in range(60):
        raw = await client.request("GET", path, accept=PROTOBUF, decode=MessageCodec(kind).listed)
        messages = {message.metadata.name: message for message in raw.items}
        items = plane.api.list(path)
        versions = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in items}
        if versions == {name: message.metadata.resourceVersion for name, message in messages.items()}:
            return messages, items
        await asyncio.sleep(0.5)
    raise AssertionError(f"{path} did not come to rest")


def agrees(message: Any, wanted: Object) -> None:
    """Every field of the message is as in JSON, which leaves out what is empty and has more fields."""
    for descriptor, value in message.ListFields():
        expected = wanted.get({"token": "continue"}.get(descriptor.name, descriptor.name))
        if descriptor.name in ("creationTimestamp", "lastTransitionTime", "startTime"):
            assert time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(value.seconds)) == expected
        elif descriptor.message_type is None:
            assert value == (expected or type(value)())
        elif descriptor.message_type.GetOptions().map_entry:
            assert {key: getattr(found, "string", found) for key, found in value.items()} == expected
        elif hasattr(value, "ListFields"):
            agrees(value, expected or {})
        else:
            assert expected is not None
            for inner, other in zip(value, expected, strict=True):
                if hasattr(inner, "ListFields"):
                    agrees(inner, other)
                else:
                    assert inner == other


async def test_a_watch_in_protobuf_tells_what_happens(plane: Plane, pools: Pools) -> None:
    first = pools.inputs(2)
    heard: list[Any] = []
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        news = follow(client, NODES, codec=MessageCodec("Node"))
        async for each in news:
            heard.append(each)
            if isinstance(each, Synced):
                await pools.create(first)
            keys = {event.key for batch in heard if isinstance(batch, Events) for event in batch.events}
            if {f"{first['name']}-0", f"{first['name']}-1"} <= keys:
                break
        await news.aclose()


async def test_the_fleet_is_counted_as_pods_and_nodes_come_and_go(
    plane: Plane, pools: Pools, workloads: Create
) -> None:
    async with looking(plane) as live:
        before = live.fleet.total.allocatable
        inputs = pools.inputs(2, labels={"nvidia.com/gpu.product": "TEST-GPU"})
        recorded = await pools.create(inputs)
        pool = inputs["name"]
        await until(lambda: live.fleet.by_product.get("TEST-GPU") is not None, "nodes come")
        share = live.fleet.by_product["TEST-GPU"]
        await until(lambda: share.nodes == 2 and share.states["ready"] == 2, "both nodes are ready")
        assert live.fleet.total.allocatable == before.plus(share.allocatable)
        workloads(PODS, gpu_pod(f"{pool}-a", pool, 3))
        workloads(PODS, gpu_pod(f"{pool}-large", pool, 9))
        workloads(PODS, gpu_pod(f"{pool}-gated", pool, 1, schedulingGates=[{"name": "example.com/wait"}]))
        await until(lambda: share.taken.gpus == 3, "GPUs are taken")
        await until(lambda: live.fleet.reasons["SchedulingGated"] == 1, "a gated pod is told")
        await until(lambda: live.fleet.reasons["Insufficient nvidia.com/gpu"] == 1, "why a pod is pending is told")
        assert live.fleet.bindings.total >= 1
        node = next(found.node for found in live.fleet.pods.values() if found.name == f"{pool}-a")
        assert live.fleet.taken(node) == Amounts(0, 0, 3, 1)
        plane.api.delete(f"{PODS}/{pool}-a?gracePeriodSeconds=0")
        await until(lambda: share.taken.gpus == 0, "GPUs are given back")
        plane.api.merge(f"{NODES}/{pool}-0", {"spec": {"unschedulable": True}})
        await until(lambda: share.states["cordoned"] == 1, "a cordon is seen")
        await pools.update({**inputs, "replicas": 1}, recorded)
        await until(lambda: share.nodes == 1, "a node goes")
        assert summary(live).to_plain()["byProduct"]["TEST-GPU"]["allocatable"]["gpus"] == 8


async def test_gpus_that_claims_have_are_counted(plane: Plane, pools: Pools, workloads: Create) -> None:
    devices = {"driver": "gpu.nvidia.com", "count": 8, "attributes": {"type": {"string": "gpu"}}}
    inputs = pools.inputs(2, resourceSlices=devices, capacity={"cpu": "4", "memory": "16Gi", "pods": "110"})
    pool = inputs["name"]
    async with looking(plane) as live:
        before = live.fleet.total.allocatable.gpus
        recorded = await pools.create(inputs)
        await until(lambda: live.fleet.total.allocatable.gpus == before + 16, "published GPUs are seen")
        own = 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].uuid != ""'
        workloads(CLASSES, {"metadata": {"name": pool}, "spec": {"selectors": [{"cel": {"expression": own}}]}})
        request = {"name": "gpus", "exactly": {"deviceClassName": pool, "count": 3}}
        workloads(CLAIMS, {"metadata": {"name": pool}, "spec": {"devices": {"requests": [request]}}})
        body = pod(pool, pool)
        body["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimName": pool}]
        body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpus"}]
        workloads(PODS, body)

        def taken() -> list[int]:
            return sorted(live.fleet.taken(f"{pool}-{ordinal}").gpus for ordinal in range(2))

        await until(lambda: taken() == [0, 3], "claimed GPUs are seen")
        assert summary(live).to_plain()["allocated"]["gpus"] >= 3
        async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
            for path, kind in ((SLICES, "ResourceSlice"), (CLAIMS, "ResourceClaim")):
                messages, items = await read_twice(client, plane, path, kind)
                for each in items:
                    agrees(messages[each["metadata"]["name"]], each)
        plane.api.delete(f"{PODS}/{pool}?gracePeriodSeconds=0")
        plane.api.delete(f"{CLAIMS}/{pool}")
        await until(lambda: taken() == [0, 0], "GPUs are given back")
        await pools.delete(recorded)
        await until(lambda: live.fleet.total.allocatable.gpus == before, "GPUs go with their nodes")


async def test_pods_that_a_quota_refuses_are_told_with_the_job_that_lacks_them(
    plane: Plane, pools: Pools, workloads: Create
) -> None:
    await pools.create(inputs := pools.inputs(2))
    name = str(inputs["name"])
    namespace, quotas = f"/api/v1/namespaces/{name}", f"/api/v1/namespaces/{name}/resourcequotas"
    jobs = f"/apis/batch/v1/namespaces/{name}/jobs"
    workloads("/api/v1/namespaces", {"metadata": {"name": name}})
    plane.api.until(f"{namespace}/serviceaccounts", lambda found: "default" in found)
    plane.api.create(quotas, {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}})
    plane.api.until(quotas, lambda found: all("used" in each.get("status", {}) for each in found.values()))
    async with looking(plane) as live:
        plane.api.create(jobs, job("train", name, "1h", parallelism=3))
        said = f"Job {name}/train: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1"
        await until(lambda: dict(live.refused) == {said: 2}, "two pods are refused")
        now = summary(live)
        assert (now.refused, dict(now.reasons)[said], now.to_plain()["notCreated"]) == (2, 2, 2)
        printed = plane.kumulus("watch", "-s", plane.wanted.name).stdout
        assert ", 2 not created\n" in printed
        assert f"  {2:>6} × {said}\n" in printed
        plane.api.delete(f"{jobs}/train?propagationPolicy=Background")
        await until(lambda: not live.refused, "nobody lacks any, although the event is still there")
        plane.api.create(jobs, job("again", name, "1h", parallelism=3))
        await until(lambda: live.refused.total() == 2, "two pods of the next Job are refused")
        plane.api.merge(f"{quotas}/small", {"spec": {"hard": {"pods": "10"}}})
        await until(lambda: not live.refused, "there is room for them")
    plane.api.delete(namespace)


async def test_a_lost_api_server_is_told_and_nothing_is_missed(plane: Plane, pools: Pools) -> None:
    async with looking(plane) as live:
        await until(lambda: {check.status for check in live.checks.values()} == {"ok"}, "all components are well")
        assert {"kube-apiserver", "etcd", "kube-scheduler", "kwok-controller"} <= set(live.checks)
        processes.kill([*plane.processes()["kube-apiserver"], *plane.processes()["kube-scheduler"]])
        await until(lambda: live.lost is not None, "the loss is told")
        await until(lambda: live.checks["kube-apiserver"].status == "down", "the API server's check says so")
        await until(lambda: live.checks["kube-scheduler"].status == "down", "and the scheduler's")
        assert "not reachable" in summary(live).lost
        assert (await plane.repair()).health == "running"
        inputs = pools.inputs(2)
        await pools.create(inputs)
        await until(lambda: live.lost is None, "its return is told")
        await until(lambda: f"{inputs['name']}-1" in live.fleet.nodes, "what came meanwhile is seen")
        await until(lambda: {check.status for check in live.checks.values()} == {"ok"}, "all components are well again")


async def test_a_cluster_that_is_made_anew_is_found_and_the_old_one_forgotten(tmp_path: Path) -> None:
    runtime, asked = KwokRuntime(), wanted(tmp_path)
    try:
        first = await runtime.create(asked, Said(), asyncio.Event())
        async with look.live(at(first)) as live:
            make_node(first, "old")
            await until(lambda: "old" in live.fleet.nodes, "a node comes")
            await runtime.delete(RecordedControlPlane.of(asked, first), Said())
            await until(lambda: live.lost is not None, "the loss is told")
            assert "old" in live.fleet.nodes
            second = await runtime.create(asked, Said(), asyncio.Event())
            make_node(second, "new")
            await until(lambda: live.lost is None and set(live.fleet.nodes) == {"new"}, "the other cluster is seen")
            await until(lambda: {check.status for check in live.checks.values()} == {"ok"}, "its components are")
            await runtime.delete(RecordedControlPlane.of(asked, second), Said())
    finally:
        processes.kill(pid for pids in processes.components(tmp_path).values() for pid in pids)


def make_node(observed: Observed, name: str) -> None:
    api = Api(Path(observed.kubeconfig))
    api.create(NODES, {"metadata": {"name": name}})
    api.close()


async def test_the_command_prints_one_summary_where_there_is_no_terminal(plane: Plane, pools: Pools) -> None:
    await pools.create(pools.inputs(3, labels={"nvidia.com/gpu.product": "TEST-GPU"}))
    result = plane.kumulus("watch", "-s", plane.wanted.name)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("test at ")
    assert "\nTEST-GPU " in result.stdout
    assert "control plane: kube-apiserver ok · etcd ok · kube-scheduler ok" in result.stdout
    found = json.loads(plane.kumulus("watch", "-s", plane.wanted.name, "--json").stdout)
    assert (found["stack"], found["byProduct"]["TEST-GPU"]["nodes"]) == ("test", 3)
    assert found["byProduct"]["TEST-GPU"]["allocatable"]["gpus"] == 24


async def test_what_is_said_is_what_is_done(
    plane: Plane, pools: Pools, workloads: Callable[[str, Object], Object]
) -> None:
    inputs = pools.inputs(3)
    await pools.create(inputs)
    pool = inputs["name"]
    names = [f"{pool}-{number}" for number in range(3)]
    workloads(PODS, pod(f"{pool}-p", pool))
    plane.api.until(PODS, lambda found: found[f"{pool}-p"]["status"]["phase"] == "Running")
    async with looking(plane) as live:
        await until(lambda: set(names) <= set(live.fleet.nodes), "the nodes are known")
        changes = ClusterChanges(live, cluster_owner(Path(plane.observed.kubeconfig)))

        async def done(**asked: object) -> str:
            plan = await changes.plan(asked)
            return plan["says"] + " | " + (await changes.do(plan["ticket"]))["done"]

        planned = await changes.plan({"do": "cordon", "nodes": names})
        assert "unschedulable" not in plane.api.get(f"{NODES}/{names[0]}")["spec"]
        assert (await changes.do(planned["ticket"]))["done"] == "3 nodes cordoned"
        assert plane.api.get(f"{NODES}/{names[0]}")["spec"]["unschedulable"] is True
        await done(do="uncordon", nodes=names)
        assert "unschedulable" not in plane.api.get(f"{NODES}/{names[0]}")["spec"]

        said = await done(do="inject", nodes=names[:2], kind="gpu-fell-off-bus", name=f"page-{pool}")
        assert f"gpu-fell-off-bus on 2 nodes ({pool}-[0-1])" in said
        assert plane.api.get(f"{NODES}/{names[0]}")["status"]["allocatable"]["nvidia.com/gpu"] == "7"
        with pytest.raises(ChangeRefused, match="is already active"):
            await changes.plan({"do": "inject", "nodes": names, "kind": "gpu-fell-off-bus", "name": f"page-{pool}"})
        await done(do="clear", name=f"page-{pool}")
        assert plane.api.get(f"{NODES}/{names[0]}")["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        with pytest.raises(ChangeRefused, match="no fault"):
            await changes.plan({"do": "clear", "name": f"page-{pool}"})

        assert "deleted" in await done(do="delete", pod=f"default/{pool}-p")
        plane.api.until(PODS, lambda found: f"{pool}-p" not in found)
