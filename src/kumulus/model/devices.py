"""The devices, MIG's among them, that a pool's nodes publish for Dynamic Resource Allocation, and their plain form.

Sources for MIG: docs.nvidia.com/datacenter/tesla/mig-user-guide (supported profiles, with their placements: each takes
adjacent eighths of the GPU's memory, and a profile of one slice never has the last one);
github.com/kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin (mig.go and partitions.go: names, attributes,
counters); KEP-4815. The driver's counters of multiprocessors and engines are left out: the eighths alone decide which
devices can coexist.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, cast

from kumulus.model.plain import camel, made_from, plain
from kumulus.model.quantity import canonical, canonical_resources

NVIDIA_DRIVER = "gpu.nvidia.com"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
PCI_BUS_ID = "resource.kubernetes.io/pciBusID"
NUMA_NODE = "resource.kubernetes.io/numaNode"
PER_DEVICE = ("uuid", PCI_BUS_ID, PCIE_ROOT, NUMA_NODE)
"""Attributes that differ from device to device, so that a stack cannot set them."""

MILLI = "milli"
"""The capacity of a shared device by which parts of it are requested, in thousandths."""
WHOLE = 1000
"""A whole device's."""
Parts = Literal["milli", "mig"]
"""How a part of a GPU is requested."""
GATES: Mapping[Parts, str] = {"milli": "DRAConsumableCapacity", "mig": "DRAPartitionableDevices"}
"""The feature gates that parts of GPUs need before Kubernetes 1.36 (k8s.io/kubernetes pkg/features)."""

NODE_ALLOCATABLE = "DRANodeAllocatableResources"
"""The feature gate of `nodeAllocatableResources`, off by default, and what a kubelet declares that has it on."""

Attribute = Mapping[str, str | int | bool]
"""A device attribute as the API writes it: one of string, int, bool and version, and its value."""
NodeResources = Mapping[str, Mapping[str, Mapping[str, str]]]
"""What an allocated device takes of its node, as the API writes it: by resource, by `mapping` or `overhead`."""


_ALWAYS_WRITTEN = ("driver", "count", "attributes", "capacity")
"""The fields that the plain form has even where they are empty."""


@dataclass(frozen=True)
class Devices:
    """The devices of every node of a pool, all alike but for what tells them apart.

    Args:
        driver: the DRA driver that publishes them, such as gpu.nvidia.com.
        count: how many a node has, 1 to 128.
        attributes: what all have in common, by attribute name.
        capacity: quantities by name, such as memory; canonical.
        pcie_roots: over how many PCIe root complexes a node's devices are spread evenly; 0 if each has its own.
        numa_nodes: over how many NUMA nodes they are spread evenly; 0 if the devices do not say.
        allow_multiple_allocations: whether several claims may have parts of one device (consumable capacity, KEP-5075).
        mig_profiles: names of the MIG profiles that each device can be divided into as well, in the order of
            `kumulus.model.devices.PROFILES` (partitionable devices, KEP-4815); none when it stays whole.
        binds_to_node: whether all pods that share a claim have to go to one node.
        binding_conditions: conditions that an allocated device needs before a pod is bound (KEP-5007).
        binding_failure_conditions: conditions with which an allocated device is given back.
        node_allocatable_resources: what an allocated device takes of its node's cpu, memory and huge pages (KEP-5517).
    """

    driver: str
    count: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    pcie_roots: int = 0
    numa_nodes: int = 0
    allow_multiple_allocations: bool = False
    mig_profiles: tuple[str, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    node_allocatable_resources: NodeResources = field(default_factory=dict)

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able, with the keys `SLICES_KEYS`; `devices_from` reads it back."""
        return dict(plain(self, optional={each.name for each in fields(self) if each.name not in _ALWAYS_WRITTEN}))


SLICES_KEYS = tuple(camel(each.name) for each in fields(Devices))
"""The keys of the plain form, in its order."""


def devices_from(raw: Mapping[str, Any]) -> Devices:
    """The devices from their checked plain form; numbers may be floats, as in JSON and protobuf."""
    return replace(
        made_from(Devices, {**raw, "attributes": None, "capacity": None, "nodeAllocatableResources": None}),
        attributes={name: attribute(value) for name, value in (raw.get("attributes") or {}).items()},
        capacity=canonical_resources(raw.get("capacity")),
        node_allocatable_resources=node_resources(raw.get("nodeAllocatableResources") or {}),
    )


def node_resources(raw: Mapping[str, Any]) -> NodeResources:
    """What devices take of their node, already checked, with canonical quantities."""
    return {
        name: {
            way: {key: value if key == "capacityKey" else canonical(value) for key, value in amounts.items()}
            for way, amounts in ways.items()
        }
        for name, ways in raw.items()
    }


def attribute(written: object) -> Attribute:
    """An attribute as the API writes it, from that form or from a plain string, number or boolean; already checked."""
    if isinstance(written, Mapping):
        kind, value = next(iter(written.items()))
        return {kind: int(value) if kind == "int" else value}
    if isinstance(written, bool):
        return {"bool": written}
    if isinstance(written, int | float):
        return {"int": int(written)}
    return {"string": cast(str, written)}


def extended_resource(driver: str) -> str:
    """The extended resource for a driver's devices: nvidia.com/gpu for gpu.nvidia.com; empty when there is none."""
    vendor = driver.removeprefix("gpu.")
    return f"{vendor}/gpu" if vendor != driver else ""


MIG_CLASS = "mig.nvidia.com"
"""The DeviceClass of MIG devices, as NVIDIA's driver installs it."""

EIGHTHS = 8
_MIG_DEVICE = re.compile(r"(gpu-[0-9]+)-mig-.+-[0-9]+-[0-9]+")


class Profile(NamedTuple):
    """A kind of MIG device, available on any GPU that supports MIG."""

    number: int
    """NVML's number of it, the ID in `nvidia-smi mig -lgip`."""
    starts: tuple[int, ...]
    """The eighths of the memory at which such a device can begin."""
    size: int
    """How many eighths it takes."""


PROFILES = (
    Profile(19, tuple(range(7)), 1),
    Profile(15, (0, 2, 4, 6), 2),
    Profile(14, (0, 2, 4), 2),
    Profile(9, (0, 4), 4),
    Profile(5, (0,), 4),
    Profile(0, (0,), 8),
)
"""The profiles without media extensions: 1g, 1g with twice the memory, 2g, 3g, 4g, 7g. The catalog has their names."""

_OF_ITS_GPU = ("taints", "bindsToNode", "bindingConditions", "bindingFailureConditions", "nodeAllocatableResources")
"""What holds for the parts of a GPU as for the whole one."""
DEVICES_OF_A_GPU = 1 + sum(len(profile.starts) for profile in PROFILES)
"""The whole GPU, and every MIG device that it can have, counted once per placement."""


def counter_set(gpu: str) -> dict[str, Any]:
    """The counter set that a GPU's devices consume, for a slice's `sharedCounters`: one counter per eighth."""
    return {"name": _counters_of(gpu), "counters": _eighths(0, EIGHTHS)}


def partitioned(gpu: Mapping[str, Any], names: tuple[str, ...], memory: int) -> Iterator[dict[str, Any]]:
    """The devices of a GPU: itself, which takes all of it, and all its MIG devices.

    Args:
        gpu: the whole GPU, in its form in a slice.
        names: the profiles' names in the order of `PROFILES`: 1g.10gb, 1g.20gb, …
        memory: memory of the whole GPU, in MiB.
    """
    yield {**gpu, "consumesCounters": _use(gpu["name"], 0, EIGHTHS)}
    shared = {key: gpu[key] for key in _OF_ITS_GPU if key in gpu}
    common = {name: value for name, value in gpu["attributes"].items() if name != "uuid"}
    for profile, name in zip(PROFILES, names, strict=True):
        own = {"type": {"string": "mig"}, "profile": {"string": name}, "parentUUID": gpu["attributes"]["uuid"]}
        for start in profile.starts:
            yield {
                "name": f"{gpu['name']}-mig-{name.replace('.', '')}-{profile.number}-{start}",
                "attributes": {**common, **own},
                "capacity": {"memory": {"value": canonical(f"{memory * profile.size // EIGHTHS}Mi")}},
                "consumesCounters": _use(gpu["name"], start, profile.size),
                **shared,
            }


def _use(gpu: str, start: int, size: int) -> list[dict[str, Any]]:
    """The `consumesCounters` of a device that takes some adjacent eighths of a GPU."""
    return [{"counterSet": _counters_of(gpu), "counters": _eighths(start, size)}]


def gpu_of(device: str) -> str:
    """The GPU that a device is, or is a part of: gpu-0 for gpu-0-mig-1g10gb-19-0."""
    found = _MIG_DEVICE.fullmatch(device)
    return found[1] if found else device


def _counters_of(gpu: str) -> str:
    return f"{gpu}-counter-set"


def _eighths(start: int, size: int) -> dict[str, Any]:
    return {f"memory-slice-{index}": {"value": "1"} for index in range(start, start + size)}
