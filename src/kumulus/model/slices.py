"""The ResourceSlices of a pool: what the kubelet plugin of a DRA driver publishes for each node. Pure functions.

Sources: k8s.io/api/resource/v1 (ResourceSlice), k8s.io/dynamic-resource-allocation (how a kubelet plugin publishes:
one pool per node, named after it, the slice owned by the Node), and what NVIDIA's driver gpu.nvidia.com says of a GPU
(github.com/kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go), and of one that is not well
(device_health.go there).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kumulus.model.devices import (
    DEVICES_OF_A_GPU,
    MIG_CLASS,
    MILLI,
    NUMA_NODE,
    NVIDIA_DRIVER,
    PCI_BUS_ID,
    PCIE_ROOT,
    WHOLE,
    Attribute,
    Devices,
    counter_set,
    extended_resource,
    partitioned,
)
from kumulus.model.fault_effects import TAINT, XID_ANNOTATION, lost
from kumulus.model.identity import STACK_ID
from kumulus.model.names import uuid_of
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, Pool
from kumulus.model.quantity import NANO, canonical, parse

if TYPE_CHECKING:
    from kumulus.model.active_faults import ActiveFault

RESOURCE_API = "resource.k8s.io/v1"
DEVICE_CLASSES = f"/apis/{RESOURCE_API}/deviceclasses"

# The most devices that consume counters, and the most counter sets, of a slice (k8s.io/api/resource/v1).
# Checked against Kubernetes 1.35 to 1.37.
_MOST_COUNTING = 64
_MOST_COUNTER_SETS = 8
_GPUS_OF_A_SLICE = _MOST_COUNTING // DEVICES_OF_A_GPU


class SlicePart(NamedTuple):
    """One of the slices that a node publishes."""

    ordinal: int
    """Which of its pool's nodes, from 0."""
    number: int
    """Which of that node's slices, from 0."""


def slice_count(devices: Devices) -> int:
    """The number of slices that a node publishes: one, or more if its GPUs can be divided."""
    counter_slices = math.ceil(devices.count / _MOST_COUNTER_SETS) if devices.mig_profiles else 0
    return _device_slices(devices) + counter_slices


def devices_of(pool: Pool) -> Devices:
    """The devices of a pool that has some."""
    assert pool.devices is not None
    return pool.devices


def parts_of(pool: Pool, ordinals: Iterable[int]) -> Iterator[SlicePart]:
    """Every slice of some nodes of a pool; none if it publishes no devices."""
    numbers = range(slice_count(pool.devices) if pool.devices else 0)
    return (SlicePart(ordinal, number) for ordinal in ordinals for number in numbers)


def slice_name(pool: Pool, part: SlicePart) -> str:
    """The name of a node's slice. A kubelet plugin would append random letters; ours is deterministic."""
    name = f"{pool.node_name(part.ordinal)}-{devices_of(pool).driver}"
    return f"{name}-{part.number}" if part.number else name


def _device_slices(devices: Devices) -> int:
    """How many of a node's slices have devices; others have counters."""
    return math.ceil(devices.count / _GPUS_OF_A_SLICE) if devices.mig_profiles else 1


def device_uuid(cluster: str, node: str, index: int) -> str:
    """A GPU's UUID in NVIDIA's form: deterministic for a cluster, a node and the GPU's index there."""
    digits = hashlib.blake2b(f"{cluster}/{node}/gpu-{index}".encode(), digest_size=16).hexdigest()
    return f"GPU-{uuid_of(digits)}"


def device_class_expression(driver: str, name: str) -> str:
    """The CEL expression that selects a driver's devices.

    Like NVIDIA's own classes, a class for its driver selects only whole GPUs, or MIG devices if named mig.nvidia.com.
    """
    expression = f'device.driver == "{driver}"'
    if driver != NVIDIA_DRIVER:
        return expression
    return f'{expression} && device.attributes["{driver}"].type == "{"mig" if name == MIG_CLASS else "gpu"}"'


def device_class_spec(expression: Any, extended: str = "") -> dict[str, Any]:
    """The `spec` of a DeviceClass; `extended` is a resource that pods may request instead of claiming devices."""
    return {
        "selectors": [{"cel": {"expression": expression}}],
        **({"extendedResourceName": extended} if extended else {}),
    }


def slice_labels(pool: Pool) -> dict[str, str]:
    """The labels by which a pool's slices are found."""
    marked = {STACK_ID: pool.labels[STACK_ID]} if STACK_ID in pool.labels else {}
    return {CLUSTER_LABEL: pool.cluster, POOL_LABEL: pool.name, **marked}


def slice_spec(pool: Pool, part: SlicePart) -> dict[str, Any]:
    """The `spec` of one slice of a node with its active faults, exactly as the API server returns it."""
    node, devices = pool.node_name(part.ordinal), devices_of(pool)
    # The slices with devices come first, those with counters after them.
    if part.number < _device_slices(devices):
        content = _content_of_devices(pool, devices, part)
    else:
        content = _content_of_counters(devices, part)
    return {
        "driver": devices.driver,
        "nodeName": node,
        # Slices are changed in place, so generation and count stay the same when devices are lost.
        "pool": {"name": node, "generation": 1, "resourceSliceCount": slice_count(devices)},
        # The API server leaves an empty list out.
        **{key: value for key, value in content.items() if value},
    }


def _content_of_devices(pool: Pool, devices: Devices, part: SlicePart) -> dict[str, Any]:
    node = pool.node_name(part.ordinal)
    left, well, taint = published(pool, part.ordinal)
    tainted = {"taints": [taint]} if taint else {}

    def gpu(index: int) -> dict[str, Any]:
        return _device(devices, pool.cluster, node, index) | (tainted if index >= well else {})

    if not devices.mig_profiles:
        return {"devices": [gpu(index) for index in range(left)]}
    first = part.number * _GPUS_OF_A_SLICE
    memory_mib = parse(devices.capacity["memory"]).nanos // NANO // 1024**2
    whole = (gpu(index) for index in range(first, min(left, first + _GPUS_OF_A_SLICE)))
    return {"devices": [each for one in whole for each in partitioned(one, devices.mig_profiles, memory_mib)]}


def _content_of_counters(devices: Devices, part: SlicePart) -> dict[str, Any]:
    """A counter slice has no devices. Counters of a GPU lost to a fault stay, since nothing consumes them."""
    first = (part.number - _device_slices(devices)) * _MOST_COUNTER_SETS
    found = range(first, min(devices.count, first + _MOST_COUNTER_SETS))
    return {"sharedCounters": [counter_set(f"gpu-{index}") for index in found]}


class PublishedDevices(NamedTuple):
    """What a node publishes: its first devices."""

    left: int
    """How many."""
    well: int
    """How many of them, again the first, have no taint."""
    taint: dict[str, str]
    """The taint of the others; empty without one."""


def published(pool: Pool, ordinal: int) -> PublishedDevices:
    """What a node publishes while its faults are active: these remove or taint the devices with the highest indices.

    A fault names its loss by the extended resource, `nvidia.com/gpu: "-1"`, which stands for the same devices.
    """
    devices = devices_of(pool)
    resource = extended_resource(devices.driver)
    left, ill, taint = devices.count, 0, dict[str, str]()
    for fault in pool.faults.get(ordinal, ()):
        if (change := fault.effects.capacity.get(resource)) is None:
            continue
        gone = lost(str(devices.count), change).nanos // NANO
        if fault.effects.devices == TAINT:
            ill, taint = gone, _taint(devices.driver, fault)
        else:
            left -= gone
    left = max(0, left)
    return PublishedDevices(left, max(0, left - ill), taint)


def _taint(driver: str, fault: ActiveFault) -> dict[str, str]:
    """The taint of a device, as NVIDIA's driver lays it on one with an XID that is not harmless, and on a lost one."""
    xid = fault.effects.annotations.get(XID_ANNOTATION, "")
    named = {"key": f"{driver}/xid", "value": xid} if xid else {"key": f"{driver}/gpu-lost"}
    return {**named, "effect": "NoSchedule", **({"timeAdded": fault.since} if fault.since else {})}


def slice_manifest(pool: Pool, part: SlicePart, node_uid: str) -> dict[str, Any]:
    """A complete ResourceSlice to post, owned by its node, so that it is deleted with the node."""
    node = pool.node_name(part.ordinal)
    return {
        "apiVersion": RESOURCE_API,
        "kind": "ResourceSlice",
        "metadata": {
            "name": slice_name(pool, part),
            "labels": slice_labels(pool),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid, "controller": True}
            ],
        },
        "spec": slice_spec(pool, part),
    }


def _device(devices: Devices, cluster: str, node: str, index: int) -> dict[str, Any]:
    roots = devices.pcie_roots or devices.count
    root = index * roots // devices.count
    first_of_root = math.ceil(root * devices.count / roots)
    own: dict[str, Attribute] = {
        "uuid": {"string": device_uuid(cluster, node, index)},
        # Each root has its own PCI domain, so that addresses are always distinct.
        PCI_BUS_ID: {"string": f"{root:04x}:{index - first_of_root + 1:02x}:00.0"},
        PCIE_ROOT: {"string": f"pci{root:04x}:00"},
    }
    if devices.numa_nodes:
        own[NUMA_NODE] = {"int": index * devices.numa_nodes // devices.count}
    described: dict[str, Any] = {"name": f"gpu-{index}", "attributes": {**devices.attributes, **own}}
    if devices.capacity or devices.allow_multiple_allocations:
        described["capacity"] = _capacity(devices)
    if devices.allow_multiple_allocations:
        described["allowMultipleAllocations"] = True
    optional = {
        "bindsToNode": devices.binds_to_node,
        "bindingConditions": [*devices.binding_conditions],
        "bindingFailureConditions": [*devices.binding_failure_conditions],
        "nodeAllocatableResources": devices.node_allocatable_resources,
    }
    return described | {key: value for key, value in optional.items() if value}


def _capacity(devices: Devices) -> dict[str, Any]:
    """A device's capacity; if shared, with the defaults of claims: all thousandths, and 0 of everything else.

    Without such a policy, a claim for 300 thousandths would get all of the memory.
    """
    found: dict[str, Any] = {name: {"value": written} for name, written in devices.capacity.items()}
    if devices.allow_multiple_allocations:
        for each in found.values():
            each["requestPolicy"] = {"default": "0", "validRange": {"min": "0"}}
        policy = {"default": canonical(str(WHOLE)), "validRange": {"min": "1", "step": "1"}}
        found[MILLI] = {"value": canonical(str(WHOLE)), "requestPolicy": policy}
    return found
