"""What a container uses, as amounts over its pod's time."""

from __future__ import annotations

from dataclasses import dataclass

from kumulus.model.lifecycles import PodSelection


@dataclass(frozen=True)
class Amount:
    """How much: an absolute quantity, or a share of what the container requests.

    Args:
        number: in units (cores, bytes), or the share: 0.8 for 80 %.
        relative: whether it is a share.
    """

    number: float
    relative: bool


@dataclass(frozen=True)
class Usage:
    """Use over time: points of a pod's age in seconds and an amount, joined by lines; the last amount stays.

    Args:
        points: at least one; ages ascend.
        upper: for a range, the upper bound of each random reading, with the single point's as the lower; else None.
    """

    points: tuple[tuple[float, Amount], ...]
    upper: Amount | None = None


@dataclass(frozen=True)
class PodUsage:
    """What the containers of a selection of pods use while they run; None for nothing.

    Args:
        selection: which pods; the first usage that selects a pod applies to it.
        cpu: cores of each container.
        memory: bytes of each container.
        gpu: how busy each of a container's GPUs is.
        gpu_memory: how full the memory of each of them is.
    """

    selection: PodSelection
    cpu: Usage | None = None
    memory: Usage | None = None
    gpu: Usage | None = None
    gpu_memory: Usage | None = None
