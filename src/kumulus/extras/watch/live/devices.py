"""GPUs by Dynamic Resource Allocation: what nodes publish in ResourceSlices, and what ResourceClaims hold of them."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from kumulus.model.devices import extended_resource, gpu_of
from kumulus.model.totals import is_gpu

T = TypeVar("T")


class DevicePool(NamedTuple):
    """A pool of devices: a driver and the pool's name."""

    driver: str
    pool: str


class Gpu(NamedTuple):
    """A GPU of a pool of devices."""

    place: DevicePool
    device: str


@dataclass(frozen=True, slots=True)
class PublishedSlice:
    """What a ResourceSlice says."""

    node: str
    """The node that has the devices; empty if they are not one node's: no view shows those."""
    place: DevicePool
    gpus: int
    """How many there are, each counted once with the MIG devices it can be divided into; 0 if the driver's devices are
    not GPUs."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a ResourceClaim has been allocated."""

    gpus: tuple[Gpu, ...]
    """Those that it has, entirely or in part."""


def published_from(message: Any) -> PublishedSlice:
    """Read a ``ResourceSlice`` of :mod:`kumulus.kube.messages`."""
    spec = message.spec
    gpus = {gpu_of(device.name) for device in spec.devices} if _are_gpus(spec.driver) else set()
    return PublishedSlice(spec.nodeName, DevicePool(spec.driver, spec.pool.name), len(gpus))


def claim_from(message: Any) -> Claim:
    """Read a ``ResourceClaim`` of :mod:`kumulus.kube.messages`."""
    # What kube-scheduler makes for a pod that requests an extended resource: it is counted by that request.
    made = message.metadata.annotations.get("resource.kubernetes.io/extended-resource-claim")
    results = () if made else message.status.allocation.devices.results
    # A claim with adminAccess does not occupy the device.
    return Claim(
        tuple(
            Gpu(DevicePool(r.driver, r.pool), gpu_of(r.device))
            for r in results
            if _are_gpus(r.driver) and not r.adminAccess
        )
    )


def _are_gpus(driver: str) -> bool:
    return is_gpu(extended_resource(driver))


class LiveDevices:
    """Slices and claims, and their sums for each node; an event costs as much as its slice or claim has entries."""

    def __init__(self) -> None:
        self._slices: dict[str, PublishedSlice] = {}
        self._claims: dict[str, Claim] = {}
        self._published: Counter[str] = Counter()
        self._places: dict[str, Counter[DevicePool]] = {}
        # One node each, except briefly while a pool's name moves from one node to another.
        self._nodes: dict[DevicePool, set[str]] = {}
        self._claimed: Counter[Gpu] = Counter()
        self._allocated: Counter[DevicePool] = Counter()

    def published(self, node: str) -> int:
        """How many GPUs a node publishes."""
        return self._published[node]

    def claimed(self, node: str) -> int:
        """How many of them claims have, entirely or in part."""
        return sum(self._allocated[place] for place in self._places.get(node, ()))

    def set_slice(self, key: str, found: PublishedSlice | None) -> set[str]:
        """Set a slice's current state, None if it is gone; returns the nodes that it concerns."""
        changes = _changed(self._slices, key, found)
        for each, sign in changes:
            if each.node:
                self._count(each, sign)
        return {each.node for each, _ in changes if each.node}

    def _count(self, found: PublishedSlice, sign: int) -> None:
        self._published[found.node] += sign * found.gpus
        places = self._places.setdefault(found.node, Counter())
        places[found.place] += sign
        if sign > 0:
            self._nodes.setdefault(found.place, set()).add(found.node)
        elif not places[found.place]:
            del places[found.place]
            self._nodes[found.place].discard(found.node)
            if not self._nodes[found.place]:
                del self._nodes[found.place]

    def set_claim(self, key: str, found: Claim | None) -> set[str]:
        """Set a claim's current state, None if it is gone; returns the nodes that it concerns."""
        changes = _changed(self._claims, key, found)
        for each, sign in changes:
            for gpu in each.gpus:
                self._claim(gpu, sign)
        return {node for each, _ in changes for gpu in each.gpus for node in self._nodes.get(gpu.place, ())}

    def _claim(self, gpu: Gpu, sign: int) -> None:
        """Count one claim more or fewer on the GPU: only the first and the last change whether it is allocated."""
        before = self._claimed[gpu]
        self._claimed[gpu] += sign
        if not self._claimed[gpu]:
            del self._claimed[gpu]
        self._allocated[gpu.place] += (before + sign > 0) - (before > 0)

    def keys(self) -> tuple[list[str], list[str]]:
        """The keys of the slices and of the claims."""
        return list(self._slices), list(self._claims)


def _changed(kept: dict[str, T], key: str, found: T | None) -> list[tuple[T, int]]:
    """Store the current value, None for nothing; returns the old value (-1) and the new one (+1) if they differ."""
    old = kept.pop(key, None)
    if found is not None:
        kept[key] = found
    return [] if old == found else [(each, sign) for each, sign in ((old, -1), (found, 1)) if each is not None]
