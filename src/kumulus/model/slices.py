"""The ResourceSlices of a pool: one per node, as the kubelet plugin of a DRA driver publishes them. Pure functions.

Sources: k8s.io/api/resource/v1 (ResourceSlice), k8s.io/dynamic-resource-allocation (how a kubelet plugin publishes:
one pool per node, named after it, the slice owned by the Node), and what NVIDIA's driver gpu.nvidia.com says of a GPU
(github.com/kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go).
"""

from __future__ import annotations

import hashlib
from typing import Any

from kumulus.model.devices import (
    MILLI,
    NUMA_NODE,
    NVIDIA_DRIVER,
    PCI_BUS_ID,
    PCIE_ROOT,
    WHOLE,
    Attribute,
    Devices,
    extended_resource,
)
from kumulus.model.identity import STACK_ID
from kumulus.model.node_effects import lost
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, Pool
from kumulus.model.quantity import NANO, canonical

RESOURCE_API = "resource.k8s.io/v1"
DEVICE_CLASSES = f"/apis/{RESOURCE_API}/deviceclasses"


def slice_name(node: str, driver: str) -> str:
    """The name of a node's slice. A kubelet plugin appends random letters; ours is found again without them."""
    return f"{node}-{driver}"


def device_uuid(cluster: str, node: str, index: int) -> str:
    """A GPU's UUID as NVIDIA writes it: always the same for a cluster, a node and the GPU's index there."""
    digits = hashlib.blake2b(f"{cluster}/{node}/gpu-{index}".encode(), digest_size=16).hexdigest()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def device_class_expression(driver: str) -> str:
    """The CEL expression that selects a driver's devices; of NVIDIA's only whole GPUs, as its own class does."""
    expression = f'device.driver == "{driver}"'
    return f'{expression} && device.attributes["{driver}"].type == "gpu"' if driver == NVIDIA_DRIVER else expression


def slice_labels(pool: Pool) -> dict[str, str]:
    """The labels by which a pool's slices are found again."""
    marked = {STACK_ID: pool.labels[STACK_ID]} if STACK_ID in pool.labels else {}
    return {CLUSTER_LABEL: pool.labels.get(CLUSTER_LABEL, ""), POOL_LABEL: pool.name, **marked}


def slice_spec(pool: Pool, devices: Devices, ordinal: int) -> dict[str, Any]:
    """What the slice of one node says, exactly as the API server gives it back.

    Args:
        pool: the node's pool, with the faults that hold on its nodes.
        devices: the pool's devices.
        ordinal: which of its nodes, from 0.
    """
    node, cluster = pool.node_name(ordinal), pool.labels.get(CLUSTER_LABEL, "")
    left = devices_left(pool, devices, ordinal)
    return {
        "driver": devices.driver,
        "nodeName": node,
        # A pool of one slice is changed in place; its generation counts only where several have to agree.
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        # The API server leaves an empty list out.
        **({"devices": [_device(devices, cluster, node, index) for index in range(left)]} if left else {}),
    }


def devices_left(pool: Pool, devices: Devices, ordinal: int) -> int:
    """How many devices a node publishes: those of the highest indices go first when faults take some.

    A fault says what it takes by the extended resource, `nvidia.com/gpu: "-1"`, which stands for the same devices.
    """
    resource = extended_resource(devices.driver)
    taken = [fault.effects.capacity.get(resource) for fault in pool.faults.of(ordinal)] if pool.faults else []
    gone = sum(lost(str(devices.count), change).nanos // NANO for change in taken if change is not None)
    return max(0, devices.count - gone)


def slice_manifest(pool: Pool, devices: Devices, ordinal: int, node_uid: str) -> dict[str, Any]:
    """A whole ResourceSlice to post, owned by its node, so that it goes when the node does.

    Args:
        pool: the node's pool.
        devices: the pool's devices.
        ordinal: which of its nodes, from 0.
        node_uid: UID of the node as it is now.
    """
    node = pool.node_name(ordinal)
    return {
        "apiVersion": RESOURCE_API,
        "kind": "ResourceSlice",
        "metadata": {
            "name": slice_name(node, devices.driver),
            "labels": slice_labels(pool),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid, "controller": True}
            ],
        },
        "spec": slice_spec(pool, devices, ordinal),
    }


def _device(devices: Devices, cluster: str, node: str, index: int) -> dict[str, Any]:
    roots = devices.pcie_roots or devices.count
    root = index * roots // devices.count
    first = -(-root * devices.count // roots)
    own: dict[str, Attribute] = {
        "uuid": {"string": device_uuid(cluster, node, index)},
        # Each root in a PCI domain of its own, so that addresses stay apart whatever the numbers.
        PCI_BUS_ID: {"string": f"{root:04x}:{index - first + 1:02x}:00.0"},
        PCIE_ROOT: {"string": f"pci{root:04x}:00"},
    }
    if devices.numa_nodes:
        own[NUMA_NODE] = {"int": index * devices.numa_nodes // devices.count}
    described: dict[str, Any] = {"name": f"gpu-{index}", "attributes": {**devices.attributes, **own}}
    if devices.capacity or devices.allow_multiple_allocations:
        described["capacity"] = _capacity(devices)
    if devices.allow_multiple_allocations:
        described["allowMultipleAllocations"] = True
    return described


def _capacity(devices: Devices) -> dict[str, Any]:
    """What a device has; of a shared one, how much of it a claim gets that does not say: all thousandths, no other.

    Without such a policy a claim that asks for 300 thousandths would have all of the memory.
    """
    found: dict[str, Any] = {name: {"value": written} for name, written in devices.capacity.items()}
    if devices.allow_multiple_allocations:
        for each in found.values():
            each["requestPolicy"] = {"default": "0", "validRange": {"min": "0"}}
        policy = {"default": canonical(str(WHOLE)), "validRange": {"min": "1", "step": "1"}}
        found[MILLI] = {"value": canonical(str(WHOLE)), "requestPolicy": policy}
    return found
