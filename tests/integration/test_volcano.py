"""Volcano on a real control plane: gangs in one place of the topology, by HyperNodes that are made as it starts.

It is skipped where Volcano is not built: ./kumulus tools --with volcano
"""

import asyncio
from pathlib import Path

import pytest

from kumulus.extras.schedulers import SchedulerError, registry, workloads
from kumulus.extras.schedulers.launch.plan import Switches
from kumulus.extras.schedulers.process import start
from kumulus.extras.schedulers.running import connected
from kumulus.extras.schedulers.volcano.places import places
from kumulus.kube import objects
from kumulus.nodes.faults import records
from tests.integration.conftest import PODS, Plane, Pools
from tests.support import volcano
from tests.support.api import Object
from tests.support.tools import require

pytestmark = pytest.mark.integration
RACK = "example.com/rack"
PODS_OF_DEFAULT = "/api/v1/namespaces/default/pods"
# Two of Volcano's scheduling cycles, and what they take.
CYCLES_S = 5


def pod(name: str, node: str = "") -> Object:
    """A pod that leaves no room for another on its node."""
    resources = {"requests": {"nvidia.com/gpu": "5"}, "limits": {"nvidia.com/gpu": "5"}}
    spec = {
        "nodeSelector": {"team": "racks"},
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "none", "resources": resources}],
        **({"nodeName": node} if node else {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_a_gang_waits_for_one_rack_with_room_for_all_of_it(plane: Plane, pools: Pools, tmp_path: Path) -> None:
    require(*registry.get("volcano").tools)
    api, kubeconfig = plane.api, Path(plane.observed.kubeconfig)
    racks = {"rack": {"label": RACK, "nodes": 2}}
    inputs = pools.inputs(4, labels={"team": "racks"}, topology=racks)
    await pools.create(inputs)
    async with connected(kubeconfig) as client:
        known = list((await records.read(client)).pools.values())
        with pytest.raises(SchedulerError, match=r"knows no block in this cluster: the tiers of .* are rack"):
            await places(client, known, ["block"])
        made = await places(client, known, ["rack"])
    running = await start("volcano", kubeconfig, tmp_path / "volcano", switches=Switches(places=made))
    name = inputs["name"]
    try:
        # One node of each rack is free.
        for number in (0, 2):
            api.create(PODS_OF_DEFAULT, pod(f"there-{number}", f"{name}-{number}"))
        for manifest in workloads.gang("volcano", [pod("g-0"), pod("g-1")], "g", topology="rack"):
            api.create(objects.collection(manifest), manifest)
        await asyncio.sleep(CYCLES_S)
        assert nodes(plane) == []
        api.delete(f"{PODS_OF_DEFAULT}/there-2")
        await asyncio.to_thread(api.until, PODS, lambda found: len(nodes(plane)) == 2, 60)
        assert nodes(plane) == [f"{name}-2", f"{name}-3"]
        async with connected(kubeconfig) as client:
            assert await places(client, [], ["rack"]) == [], "those of the cluster are used as they are"
    finally:
        api.request("DELETE", PODS_OF_DEFAULT)
        await running.stop()
    assert volcano.CRD not in {each["metadata"]["name"] for each in api.list(volcano.CRDS)}


def nodes(plane: Plane) -> list[str]:
    """Where the gang's pods are, those that have a node."""
    found = (each for each in plane.api.list(PODS) if each["metadata"]["name"].startswith("g-"))
    return sorted(each["spec"]["nodeName"] for each in found if "nodeName" in each["spec"])
