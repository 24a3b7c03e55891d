"""The fake GPU operator beside a control plane: what it writes of the nodes, and what becomes of that.

It is skipped where the operator's programs are not on PATH: they are images, which Kumulus takes by digest.
"""

import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.kube.namespaces import NAMESPACES
from kumulus.model.gfd import DRA_IMAGE, DRA_PLUGIN, GPU_OPERATOR, SIMULATED_POOL_LABEL
from kumulus.provider.connections import Connections
from tests.integration.conftest import NODES, PODS, Plane, Pools, plane_at, pod
from tests.support import listeners, processes
from tests.support.api import Object
from tests.support.tools import require

pytestmark = pytest.mark.integration
UPDATER, PLUGIN = GPU_OPERATOR
CONFIG_MAPS = f"{NAMESPACES}/gpu-operator/configmaps"
GPU = "nvidia.com/gpu"
RESOURCES = "/apis/resource.k8s.io/v1"
PROCESSES = {"processes": {DRA_IMAGE: str(shutil.which(DRA_PLUGIN))}}


def simulated(count: int) -> dict[str, Any]:
    return {"pools": {"h100": {"gpuProduct": "NVIDIA-H100-80GB-HBM3", "gpuCount": count, "gpuMemory": 81559}}}


@pytest.fixture
def plane(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Plane]:
    """A control plane with the operator beside it, in place of that of all tests."""
    require(*GPU_OPERATOR)
    with plane_at(tmp_path, gpuOperator=simulated(8), **getattr(request, "param", {})) as made:
        yield made


@pytest.fixture
async def pools(plane: Plane) -> AsyncIterator[Pools]:
    connections = Connections()
    yield Pools.on(plane, connections)
    await connections.close()


async def becomes(plane: Plane, **options: Any) -> None:
    """Apply other options of the cluster."""
    plane.wanted = replace(plane.wanted, options=options)
    await plane.repair()


def names(api: Any, path: str) -> set[str]:
    return {each["metadata"]["name"] for each in api.list(path)}


def gpus(found: Mapping[str, Object], nodes: set[str]) -> dict[str, list[Object]]:
    """The GPUs of nodes by their ConfigMaps."""
    texts = {name: found.get(f"topology-{name}", {}).get("data", {}).get("topology.yml") for name in nodes}
    return {name: yaml.safe_load(text)["gpus"] for name, text in texts.items() if text}


def sizes(found: Mapping[str, Object], nodes: set[str]) -> list[int]:
    return [len(each) for each in gpus(found, nodes).values()]


async def test_it_knows_the_nodes_and_who_has_their_gpus_and_is_told_of_other_pools(plane: Plane, pools: Pools) -> None:
    api, ran = plane.api, plane.processes()
    assert {UPDATER, PLUGIN} <= ran.keys()
    inputs = pools.inputs(3, labels={SIMULATED_POOL_LABEL: "h100"})
    await pools.create(inputs)
    nodes = set(pools.nodes(inputs))

    # Its device plugin has been at a node when nothing is left of what the node says of its machine.
    api.until(NODES, lambda found: not any(found[name]["status"]["nodeInfo"]["kubeletVersion"] for name in nodes))
    assert await pools.drift(inputs) == {}
    api.until(CONFIG_MAPS, lambda found: sizes(found, nodes) == [8, 8, 8])
    assert listeners.of(pid for name in GPU_OPERATOR for pid in ran[name]) == set()

    asking = pod("asking", str(inputs["name"]))
    asking["spec"]["containers"][0]["resources"]["limits"] = {GPU: "2"}
    api.create(PODS, asking)

    def held(found: Mapping[str, Object]) -> int:
        every = [each["status"]["allocatedBy"]["pod"] for node in gpus(found, nodes).values() for each in node]
        return every.count("asking")

    api.until(CONFIG_MAPS, lambda found: held(found) == 2)

    await becomes(plane, gpuOperator=simulated(4))
    assert plane.processes()[PLUGIN] == ran[PLUGIN]
    assert plane.processes()[UPDATER] != ran[UPDATER]
    api.until(CONFIG_MAPS, lambda found: sizes(found, nodes) == [4, 4, 4])
    api.until(NODES, lambda found: {found[name]["status"]["allocatable"][GPU] for name in nodes} == {"4"})
    assert set((await pools.drift(inputs))["altered"]) == nodes
    fewer = {**inputs, "capacity": {**inputs["capacity"], GPU: "4"}, "allocatable": {}}
    await pools.update(fewer, inputs)
    assert await pools.drift(fewer) == {}

    await pools.delete(fewer)
    api.until(CONFIG_MAPS, lambda found: not gpus(found, nodes))


async def test_what_others_break_is_put_right_and_with_it_goes_all_that_it_made(plane: Plane, pools: Pools) -> None:
    api = plane.api
    inputs = pools.inputs(1, labels={SIMULATED_POOL_LABEL: "h100"})
    await pools.create(inputs)
    [node] = pools.nodes(inputs)
    api.until(CONFIG_MAPS, lambda found: f"topology-{node}" in found)
    api.delete(f"{CONFIG_MAPS}/topology")
    processes.kill(pid for name in GPU_OPERATOR for pid in plane.processes()[name])
    await plane.repair()
    assert {UPDATER, PLUGIN} <= plane.processes().keys()
    assert "topology" in names(api, CONFIG_MAPS)

    # As after a reboot of the machine, with another file: nothing runs.
    processes.kill(pid for pids in plane.processes().values() for pid in pids)
    await becomes(plane, gpuOperator=simulated(4))
    assert {UPDATER, PLUGIN} <= plane.processes().keys()
    api.until(CONFIG_MAPS, lambda found: sizes(found, {node}) == [4])
    api.until(NODES, lambda found: found[node]["status"]["capacity"][GPU] == "4")

    await becomes(plane)
    assert not {UPDATER, PLUGIN} & plane.processes().keys()
    assert "gpu-operator" not in names(api, NAMESPACES)
    assert pools.nodes(inputs)[node]["status"]["capacity"][GPU] == "4"
    await becomes(plane, gpuOperator=simulated(8))
    api.until(CONFIG_MAPS, lambda found: f"topology-{node}" in found)


@pytest.mark.skipif(shutil.which(DRA_PLUGIN) is None, reason=f"{DRA_PLUGIN} is not on PATH")
@pytest.mark.parametrize("plane", [PROCESSES], indirect=True)
async def test_its_dra_plugin_publishes_gpus_for_claims_and_takes_them_back_when_it_ends(
    plane: Plane, pools: Pools
) -> None:
    api = plane.api
    await becomes(plane, gpuOperator={**simulated(8), "dra": True}, **PROCESSES)
    inputs = pools.inputs(2, labels={SIMULATED_POOL_LABEL: "h100"})
    await pools.create(inputs)
    slices = {f"kwok-{node}-gpu" for node in pools.nodes(inputs)}
    api.until(f"{RESOURCES}/resourceslices", lambda found: found.keys() == slices)
    assert [len(each["spec"]["devices"]) for each in api.list(f"{RESOURCES}/resourceslices")] == [8, 8]
    assert await pools.drift(inputs) == {}

    asked = {"requests": [{"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 5}}]}
    for name in ("fits", "fits-too", "does-not"):
        claim = {"metadata": {"name": name}, "spec": {"devices": asked}}
        api.create(f"{RESOURCES}/namespaces/default/resourceclaims", claim)
        claiming = pod(name, str(inputs["name"]))
        claiming["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimName": name}]
        api.create(PODS, claiming)
        # In this order: the third finds the others' devices taken.
        api.until(PODS, lambda found: all("PodScheduled" in str(each["status"]) for each in found.values()))
    api.until(PODS, lambda found: "cannot allocate all claims" in str(found["does-not"]["status"]))
    placed = [each["metadata"]["name"] for each in api.list(PODS) if each["spec"].get("nodeName")]
    assert sorted(placed) == ["fits", "fits-too"]

    await becomes(plane, gpuOperator=simulated(8), **PROCESSES)
    assert api.list(f"{RESOURCES}/resourceslices") == []
    assert names(api, f"{RESOURCES}/deviceclasses") == set()
    api.until("/api/v1/namespaces/gpu-operator/pods", lambda found: not found)
