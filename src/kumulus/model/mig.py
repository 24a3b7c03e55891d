"""The MIG devices that a GPU can be divided into, as partitionable devices, and what each takes of the GPU.

Sources: docs.nvidia.com/datacenter/tesla/mig-user-guide (supported profiles, with their placements: each takes
adjacent eighths of the GPU's memory, and a profile of one slice never has the last one);
github.com/kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin (mig.go and partitions.go: names, attributes,
counters); KEP-4815. The driver's counters of multiprocessors and engines are left out: the eighths alone decide which
devices can coexist.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kumulus.model.quantity import canonical

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

_OF_ITS_GPU = ("taints", "bindsToNode", "bindingConditions", "bindingFailureConditions")
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
    yield {**gpu, "consumesCounters": [counter_set_use(gpu["name"], 0, EIGHTHS)]}
    shared = {key: gpu[key] for key in _OF_ITS_GPU if key in gpu}
    common = {name: value for name, value in gpu["attributes"].items() if name != "uuid"}
    for profile, name in zip(PROFILES, names, strict=True):
        own = {"type": {"string": "mig"}, "profile": {"string": name}, "parentUUID": gpu["attributes"]["uuid"]}
        for start in profile.starts:
            yield {
                "name": f"{gpu['name']}-mig-{name.replace('.', '')}-{profile.number}-{start}",
                "attributes": {**common, **own},
                "capacity": {"memory": {"value": canonical(f"{memory * profile.size // EIGHTHS}Mi")}},
                "consumesCounters": [counter_set_use(gpu["name"], start, profile.size)],
                **shared,
            }


def counter_set_use(gpu: str, start: int, size: int) -> dict[str, Any]:
    """The `consumesCounters` entry of a device that takes some adjacent eighths of a GPU."""
    return {"counterSet": _counters_of(gpu), "counters": _eighths(start, size)}


def gpu_of(device: str) -> str:
    """The GPU that a device is, or is a part of: gpu-0 for gpu-0-mig-1g10gb-19-0."""
    found = _MIG_DEVICE.fullmatch(device)
    return found[1] if found else device


def _counters_of(gpu: str) -> str:
    return f"{gpu}-counter-set"


def _eighths(start: int, size: int) -> dict[str, Any]:
    return {f"memory-slice-{index}": {"value": "1"} for index in range(start, start + size)}
