"""KAI on a real control plane: places of the topology, halves of a GPU, reclaim between queues.

It is skipped where KAI's programs are not on PATH: they are images, which Kumulus takes by digest.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.schedulers import registry, workloads
from kumulus.extras.schedulers.process import start
from kumulus.kube import objects
from tests.integration.conftest import PODS, Plane, Pools
from tests.support.api import Object
from tests.support.tools import require

pytestmark = pytest.mark.integration
RACK = "example.com/rack"
GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups"
RESERVATIONS = "/api/v1/namespaces/kai-resource-reservation/pods"
ROOT = "kumulus-root"


@pytest.fixture
async def api(plane: Plane, tmp_path: Path) -> AsyncIterator[Any]:
    """The API server of a cluster beside which KAI runs."""
    require(*registry.get("kai").tools)
    running = await start("kai", Path(plane.observed.kubeconfig), tmp_path / "kai")
    yield plane.api
    plane.api.request("DELETE", PODS)
    assert running.failure() is None
    await running.stop()


def submit(api: Any, manifests: list[Object]) -> None:
    for manifest in manifests:
        api.create(objects.collection(manifest), manifest)


def pod(name: str, pool: str, gpus: str = "", **metadata: Any) -> Object:
    """A pod for some of the nodes, which asks for whole GPUs."""
    resources = {"requests": {"nvidia.com/gpu": gpus}, "limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    selector = {"team": pool}
    tolerations = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
    spec = {"nodeSelector": selector, "tolerations": tolerations, "terminationGracePeriodSeconds": 0}
    containers = [{"name": "c", "image": "none", "resources": resources}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {**spec, "containers": containers},
    }


def nodes(found: Mapping[str, Object], prefix: str) -> list[str]:
    """Where the pods with such names are; those that have no node are left out."""
    return [
        each["spec"]["nodeName"]
        for name, each in found.items()
        if name.startswith(prefix) and "nodeName" in each["spec"]
    ]


async def until(api: Any, path: str, reached: Any) -> Mapping[str, Object]:
    found: Mapping[str, Object] = await asyncio.to_thread(api.until, path, reached, 120)
    return found


async def test_a_gang_gets_one_rack_and_one_that_fits_into_none_says_so(api: Any, pools: Pools) -> None:
    for rack in ("a", "b"):
        await pools.create(pools.inputs(2, labels={"team": "racks", RACK: rack}))
    submit(api, workloads.queue("kai", "racks", "default", {}, [RACK, "kubernetes.io/hostname"]))

    def gang(name: str, pods: int) -> None:
        members = [pod(f"{name}-{number}", "racks", "5") for number in range(pods)]
        submit(api, workloads.gang("kai", members, name, queue="racks", topology=RACK))

    gang("two", 2)
    found = await until(api, PODS, lambda found: len(nodes(found, "two")) == 2)
    racks = {
        each["metadata"]["labels"][RACK]
        for each in api.list("/api/v1/nodes")
        if each["metadata"]["name"] in nodes(found, "two")
    }
    assert len(racks) == 1
    gang("three", 3)
    found = await until(api, GROUPS, lambda found: bool(found["three"].get("status", {}).get("schedulingConditions")))
    assert RACK in json.dumps(found["three"]["status"])
    assert nodes({each["metadata"]["name"]: each for each in api.list(PODS)}, "three") == []


async def test_two_halves_share_a_gpu(api: Any, pools: Pools) -> None:
    await pools.create(pools.inputs(1, labels={"team": "halves", "nvidia.com/gpu.memory": "81559"}))
    submit(api, workloads.queue("kai", "default", "default", {}))
    for name in ("half-1", "half-2"):
        submit(api, workloads.single("kai", pod(name, "halves", annotations={"gpu-fraction": "0.5"})))
    found = await until(api, PODS, lambda found: len(nodes(found, "half")) == 2)
    groups = {found[name]["metadata"]["labels"]["runai-gpu-group"] for name in ("half-1", "half-2")}
    assert len(groups) == 1
    assert len(api.list(RESERVATIONS)) == 1


async def test_a_queue_gets_its_share_back_from_one_that_has_more(api: Any, pools: Pools) -> None:
    await pools.create(pools.inputs(2, labels={"team": "shares"}))
    anything = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    for name in ("a", "b"):
        resources = {"gpu": {"quota": 8, "limit": -1, "overQuotaWeight": 1}, "cpu": anything, "memory": anything}
        spec = {"parentQueue": ROOT, "resources": resources}
        submit(api, [{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}])
    for number in range(16):
        submit(api, workloads.single("kai", pod(f"first-{number}", "shares", "1"), queue="a"))
    await until(api, PODS, lambda found: len(nodes(found, "first")) == 16)
    submit(api, workloads.gang("kai", [pod("second", "shares", "8")], "second", queue="b"))
    found = await until(api, PODS, lambda found: len(nodes(found, "second")) == 1)
    assert len(nodes(found, "first")) == 8
