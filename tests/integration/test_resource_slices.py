"""Dynamic Resource Allocation on a real control plane: slices that live with their pool, and claims on them."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kumulus.model.fault_effects import XID_ANNOTATION
from kumulus.model.pools import POOL_LABEL
from kumulus.provider.resources.base import Properties
from tests.integration.conftest import NODES, PODS, Faults, Plane, Pools, pod
from tests.support.api import Object
from tests.support.said import Said

pytestmark = pytest.mark.integration
Create = Callable[[str, Object], Object]

RESOURCE = "/apis/resource.k8s.io/v1"
SLICES = f"{RESOURCE}/resourceslices"
CLASSES = f"{RESOURCE}/deviceclasses"
RULES = f"{RESOURCE}/devicetaintrules"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
TEMPLATES = f"{RESOURCE}/namespaces/default/resourceclaimtemplates"
H100 = "NVIDIA H100 80GB HBM3"
WITHOUT_GPUS = {"cpu": "4", "memory": "16Gi", "pods": "110"}


def devices(count: int = 8, product: str = H100, **changes: Any) -> dict[str, Any]:
    attributes = {"type": {"string": "gpu"}, "productName": {"string": product}}
    return {"driver": "gpu.nvidia.com", "count": count, "attributes": attributes, "capacity": {"memory": "81559Mi"}} | (
        changes
    )


def slices(plane: Plane, inputs: Properties) -> dict[str, Object]:
    """The slices that carry the pool's label, by name."""
    found = plane.api.list(SLICES, labelSelector=f"{POOL_LABEL}={inputs['name']}")
    return {each["metadata"]["name"]: each for each in found}


def names(inputs: Properties, *ordinals: int) -> set[str]:
    return {f"{inputs['name']}-{ordinal}-gpu.nvidia.com" for ordinal in ordinals}


async def test_each_node_publishes_its_devices_in_a_slice_that_it_owns(plane: Plane, pools: Pools) -> None:
    inputs, said = pools.inputs(12, resourceSlices=devices()), Said()
    assert await pools.create(inputs, said) == inputs
    found, uids = slices(plane, inputs), pools.uids(inputs)
    assert set(found) == names(inputs, *range(12))
    for each in found.values():
        node = each["spec"]["nodeName"]
        assert each["metadata"]["ownerReferences"][0]["uid"] == uids[node]
        assert each["spec"]["pool"] == {"name": node, "generation": 1, "resourceSliceCount": 1}
    gpus = [device for each in found.values() for device in each["spec"]["devices"]]
    assert len({gpu["attributes"]["uuid"]["string"] for gpu in gpus}) == 96
    assert {gpu["capacity"]["memory"]["value"] for gpu in gpus} == {"81559Mi"}
    assert await pools.drift(inputs) == {}
    before = {name: each["metadata"]["resourceVersion"] for name, each in found.items()}
    assert await pools.update(inputs, inputs) == inputs
    assert {name: each["metadata"]["resourceVersion"] for name, each in slices(plane, inputs).items()} == before


async def test_slices_come_go_and_change_with_their_pool(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    assert slices(plane, inputs) == {}

    published = pools.inputs(2, inputs["name"], resourceSlices=devices())
    said = Said()
    await pools.update(published, inputs, said, preview=True)
    assert said.messages[0].endswith(": 2 nodes changed: +16 gpu.nvidia.com devices")
    assert slices(plane, inputs) == {}
    await pools.update(published, inputs)
    assert set(slices(plane, inputs)) == names(inputs, 0, 1)

    grown = pools.inputs(5, inputs["name"], resourceSlices=devices(4))
    await pools.update(grown, published)
    found = slices(plane, inputs)
    assert {name: len(each["spec"]["devices"]) for name, each in found.items()} == dict.fromkeys(
        names(inputs, *range(5)), 4
    )

    shrunk = pools.inputs(1, inputs["name"], resourceSlices=devices(4))
    await pools.update(shrunk, grown)
    assert set(slices(plane, inputs)) == names(inputs, 0)

    other = pools.inputs(1, inputs["name"], resourceSlices=devices(4, driver="gpu.example.com"))
    await pools.update(other, shrunk)
    assert set(slices(plane, inputs)) == {f"{inputs['name']}-0-gpu.example.com"}

    again = pools.inputs(1, inputs["name"])
    assert await pools.update(again, other) == again
    assert slices(plane, inputs) == {}
    assert len(pools.nodes(inputs)) == 1


async def test_a_deleted_pool_leaves_no_slice(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(3, resourceSlices=devices())
    outputs = await pools.create(inputs)
    await pools.delete(outputs)
    assert slices(plane, inputs) == {}


async def test_altered_missing_and_foreign_slices_are_named_and_put_right(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(8, resourceSlices=devices(2))
    outputs = await pools.create(inputs)
    pool, wanted = inputs["name"], slices(plane, inputs)
    paths = [f"{SLICES}/{pool}-{ordinal}-gpu.nvidia.com" for ordinal in range(8)]
    plane.api.delete(paths[0])
    one = wanted[f"{pool}-1-gpu.nvidia.com"]["spec"]["devices"]
    one[1]["attributes"]["productName"] = {"string": "NVIDIA A100-SXM4-80GB"}
    plane.api.merge(paths[1], {"spec": {"devices": one}})
    plane.api.merge(paths[2], {"spec": {"devices": []}})
    plane.api.merge(paths[3], {"metadata": {"labels": {POOL_LABEL: None}}})
    plane.api.merge(paths[4], {"metadata": {"labels": {"example.com/mine": "yes"}}})
    stranger = {
        "metadata": {"name": f"{pool}-stranger", "labels": {POOL_LABEL: pool}},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": f"{pool}-5",
            "pool": {"name": "x", "generation": 1, "resourceSliceCount": 1},
        },
    }
    plane.api.create(SLICES, stranger)
    # A node made again is another one: its former slice belongs to nobody and goes with the garbage.
    plane.api.delete(f"{NODES}/{pool}-6")

    drift = (await pools.drift(inputs))["resourceSlices"]
    assert drift["missing"] == f"1: {pool}-0-gpu.nvidia.com"
    assert drift["extra"] == f"1: {pool}-stranger"
    altered = drift["altered"]
    assert altered[f"{pool}-1-gpu.nvidia.com"] == (
        f'devices["gpu-1"].attributes.productName.string: "NVIDIA A100-SXM4-80GB" instead of "{H100}"'
    )
    assert 'devices["gpu-0"]: missing instead of "published"' in altered[f"{pool}-2-gpu.nvidia.com"]
    assert POOL_LABEL in altered[f"{pool}-3-gpu.nvidia.com"]
    assert len(altered) == 3

    found = await pools.read(inputs)
    assert found is not None
    assert "drift.resourceSlices" in {each.path for each in pools.resource.diff(found.outputs, inputs)}
    assert await pools.update(inputs, found.outputs) == inputs
    now = plane.api.until(SLICES, lambda s: set(s) >= names(inputs, *range(8)))
    assert {each: now[each]["spec"] for each in names(inputs, 0, 2, 3, 4, 5, 6, 7)} == {
        each: wanted[each]["spec"] for each in names(inputs, 0, 2, 3, 4, 5, 6, 7)
    }
    assert now[f"{pool}-4-gpu.nvidia.com"]["metadata"]["labels"]["example.com/mine"] == "yes"
    assert now[f"{pool}-6-gpu.nvidia.com"]["metadata"]["ownerReferences"][0]["uid"] == pools.uids(inputs)[f"{pool}-6"]
    assert await pools.drift(inputs) == {}
    assert outputs == inputs


async def test_a_pod_gets_one_of_eight_gpus_and_the_ninth_waits(plane: Plane, pools: Pools, workloads: Create) -> None:
    """The real scheduler allocates, by what the device says of itself; the pod runs."""
    old = pools.inputs(1, resourceSlices=devices(product="NVIDIA A100-SXM4-80GB"), capacity=WITHOUT_GPUS)
    new = pools.inputs(1, resourceSlices=devices(), capacity=WITHOUT_GPUS)
    await pools.create(old)
    outputs = await pools.create(new)
    node = f"{new['name']}-0"
    name = f"c{new['name']}"
    own = 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"'
    workloads(CLASSES, {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": own}}]}})
    by_product = f'device.attributes["gpu.nvidia.com"].productName == "{H100}"'
    exactly = {"deviceClassName": name, "selectors": [{"cel": {"expression": by_product}}]}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    workloads(TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": spec}})
    for number in range(9):
        body = pod(f"{name}-{number}", new["name"], cpu="10m")
        # Nothing but the claim says where it can go.
        del body["spec"]["nodeSelector"]
        body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": name}]
        body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        workloads(PODS, body)
    selector = f"test={new['name']}"

    def settled(found: Mapping[str, Object]) -> bool:
        running = [each for each in found.values() if each["status"]["phase"] == "Running"]
        waiting = [each for each in found.values() if "conditions" in each["status"] and each not in running]
        return len(running) == 8 and len(waiting) == 1

    found = plane.api.until(PODS, settled, labelSelector=selector)
    assert {each["spec"].get("nodeName") for each in found.values()} == {node, None}
    waiting = next(each for each in found.values() if "nodeName" not in each["spec"])
    assert "cannot allocate all claims" in waiting["status"]["conditions"][0]["message"]
    claims = [claim for claim in plane.api.list(CLAIMS) if claim["metadata"]["generateName"].startswith(name)]
    results = [
        result
        for claim in claims
        for result in (claim.get("status", {}).get("allocation") or {"devices": {"results": []}})["devices"]["results"]
    ]
    assert sorted(result["device"] for result in results) == [f"gpu-{number}" for number in range(8)]
    assert {result["pool"] for result in results} == {node}

    # A node more, and the ninth has its GPU.
    more = pools.inputs(2, new["name"], resourceSlices=devices(), capacity=WITHOUT_GPUS)
    await pools.update(more, outputs)
    plane.api.until(
        PODS,
        lambda found: all(each["status"]["phase"] == "Running" for each in found.values()),
        labelSelector=selector,
    )


async def test_devices_that_a_fault_takes_are_not_published_while_it_holds(
    plane: Plane, pools: Pools, faults: Faults
) -> None:
    inputs = pools.inputs(4, resourceSlices=devices(2))
    await pools.create(inputs)
    pool, before = inputs["name"], slices(plane, inputs)
    await faults.begin(faults.inputs("lost", {pool: "0"}, "gpu-fell-off-bus"))
    await faults.begin(faults.inputs("driver", {pool: "1"}, "gpu-driver"))
    await faults.begin(faults.inputs("reclaimed", {pool: "2"}, "spot-reclaim"))
    plane.api.until(SLICES, lambda found: f"{pool}-2-gpu.nvidia.com" not in found)
    left = {name: each["spec"].get("devices", []) for name, each in slices(plane, inputs).items()}
    assert {name: [each["name"] for each in there] for name, there in left.items()} == {
        f"{pool}-0-gpu.nvidia.com": ["gpu-0"],
        f"{pool}-1-gpu.nvidia.com": [],
        f"{pool}-3-gpu.nvidia.com": ["gpu-0", "gpu-1"],
    }
    # Neither drift of the pool's, nor overwritten by it.
    assert await pools.drift(inputs) == {}
    await pools.update(inputs, inputs)
    assert {name: each["spec"].get("devices", []) for name, each in slices(plane, inputs).items()} == left

    for name in ("lost", "driver", "reclaimed"):
        await faults.end(name)
    after = slices(plane, inputs)
    assert {name: each["spec"] for name, each in after.items()} == {name: each["spec"] for name, each in before.items()}
    owner = after[f"{pool}-2-gpu.nvidia.com"]["metadata"]["ownerReferences"][0]["uid"]
    assert owner == pools.uids(inputs)[f"{pool}-2"]
    assert await pools.drift(inputs) == {}


@pytest.fixture
def gpu_class(workloads: Create) -> Callable[..., str]:
    """A DeviceClass of the devices of some product, which is the pool's."""

    def made(product: str, extended: str = "") -> str:
        own = f'device.attributes["gpu.nvidia.com"].productName == "{product}"'
        spec = {"selectors": [{"cel": {"expression": own}}], **({"extendedResourceName": extended} if extended else {})}
        workloads(CLASSES, {"metadata": {"name": product}, "spec": spec})
        return product

    return made


async def test_a_fault_taints_a_gpu_and_what_claims_it_is_told(
    plane: Plane, pools: Pools, faults: Faults, workloads: Create, gpu_class: Callable[..., str]
) -> None:
    """NoSchedule, as NVIDIA's driver has it: pods with the GPU stay, and no other pod gets it."""
    product = pools.name()
    inputs = pools.inputs(1, resourceSlices=devices(2, product), capacity=WITHOUT_GPUS)
    await pools.create(inputs)
    pool, before = inputs["name"], slices(plane, inputs)
    exactly = {"deviceClassName": gpu_class(product), "count": 2}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    workloads(TEMPLATES, {"metadata": {"name": product}, "spec": {"spec": spec}})

    def claims(name: str) -> Object:
        body = pod(name, pool, cpu="10m")
        body["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": product}]
        body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpus"}]
        return body

    workloads(PODS, claims(f"{product}-first"))
    plane.api.until(PODS, lambda found: found[f"{product}-first"]["status"]["phase"] == "Running")
    # The catalog's kinds taint the node as well.
    ill: dict[str, Any] = {
        "annotations": {XID_ANNOTATION: "79"},
        "capacity": {"nvidia.com/gpu": "-1"},
        "devices": "taint",
    }
    await faults.begin(faults.inputs("ill", {pool: "0"}, **ill))
    (struck,) = slices(plane, inputs).values()
    tainted = {each["name"]: each.get("taints") for each in struck["spec"]["devices"]}
    assert tainted["gpu-0"] is None
    assert tainted["gpu-1"] is not None
    (taint,) = tainted["gpu-1"]
    assert (taint["key"], taint["value"], taint["effect"]) == ("gpu.nvidia.com/xid", "79", "NoSchedule")
    # Neither drift of the pool's, nor overwritten by it.
    assert await pools.drift(inputs) == {}
    status = plane.api.get(f"{PODS}/{product}-first")["status"]
    assert status["phase"] == "Running"
    (reported,) = status["containerStatuses"][0]["allocatedResourcesStatus"]
    assert reported["name"] == "claim:gpus"
    assert {each["resourceID"]: each["health"] for each in reported["resources"]} == {
        f"gpu.nvidia.com/{pool}-0/gpu-0": "Healthy",
        f"gpu.nvidia.com/{pool}-0/gpu-1": "Unhealthy",
    }
    # A rule of the user's own evicts it: Kubernetes' controller does that.
    selector = {"driver": "gpu.nvidia.com", "pool": f"{pool}-0", "device": "gpu-1"}
    taint = {"key": "example.com/drained", "effect": "NoExecute"}
    plane.api.create(RULES, {"metadata": {"name": product}, "spec": {"deviceSelector": selector, "taint": taint}})
    plane.api.until(PODS, lambda found: f"{product}-first" not in found)
    plane.api.delete(f"{RULES}/{product}")
    workloads(PODS, claims(f"{product}-second"))

    def refused(found: Mapping[str, Object]) -> bool:
        there = found.get(f"{product}-second", {"status": {}})["status"]
        return any("cannot allocate all claims" in each.get("message", "") for each in there.get("conditions", ()))

    plane.api.until(PODS, refused)
    await faults.end("ill")
    plane.api.until(PODS, lambda found: found[f"{product}-second"]["status"]["phase"] == "Running")
    assert {name: each["spec"] for name, each in slices(plane, inputs).items()} == {
        name: each["spec"] for name, each in before.items()
    }


async def test_pods_that_request_the_extended_resource_get_claims(
    plane: Plane, pools: Pools, workloads: Create, gpu_class: Callable[..., str]
) -> None:
    product = pools.name()
    resource = f"{product}.example.com/gpu"
    inputs = pools.inputs(1, resourceSlices=devices(8, product), capacity=WITHOUT_GPUS)
    await pools.create(inputs)
    gpu_class(product, resource)
    for number in range(3):
        body = pod(f"{product}-{number}", inputs["name"], cpu="10m")
        amounts = {"requests": {"cpu": "10m", resource: "4"}, "limits": {resource: "4"}}
        body["spec"]["containers"][0]["resources"] = amounts
        workloads(PODS, body)

    def two_run(found: Mapping[str, Object]) -> bool:
        mine = [each for name, each in found.items() if name.startswith(product)]
        waiting = [each for each in mine if each["status"]["phase"] == "Pending" and "conditions" in each["status"]]
        return sum(each["status"]["phase"] == "Running" for each in mine) == 2 and len(waiting) == 1

    plane.api.until(PODS, two_run)
    got = [
        result["device"]
        for claim in plane.api.list(CLAIMS)
        if claim["metadata"].get("annotations", {}).get("resource.kubernetes.io/extended-resource-claim")
        for result in claim["status"]["allocation"]["devices"]["results"]
        if result["pool"] == f"{inputs['name']}-0"
    ]
    assert sorted(got) == [f"gpu-{number}" for number in range(8)]
