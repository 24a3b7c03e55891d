"""Totals of pools: nodes, GPUs, CPUs, memory and every other resource, by group and by zone. Pure functions."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kumulus.model.pools import Pool
from kumulus.model.quantity import NANO, ZERO, Quantity, parse

NO_ZONE = "(none)"
"""The zone under which nodes without a zone label are counted."""

_ORDER = {"cpu": 0, "memory": 1, "ephemeral-storage": 2, "pods": 3}


@dataclass(frozen=True)
class Tally:
    """Nodes and the sum of their capacities."""

    nodes: int
    """How many."""
    resources: Mapping[str, Quantity]
    """Exact sums, Kubernetes' own resources first, the others by name."""
    claimed_gpus: int = 0
    """GPUs that pods can get only through ResourceClaims."""

    @property
    def gpus(self) -> int:
        """The sum of all resources whose name ends in `/gpu` (nvidia.com/gpu, amd.com/gpu), and of GPUs to claim."""
        requestable = sum(amount.nanos for name, amount in self.resources.items() if is_gpu(name)) // NANO
        return requestable + self.claimed_gpus

    def to_plain(self) -> dict[str, object]:
        """JSON-able: numbers for nodes, gpus, cpu and pods, memory as a quantity, and every resource as a quantity."""
        resources = self.resources
        return {
            "nodes": self.nodes,
            "gpus": self.gpus,
            "cpu": resources.get("cpu", ZERO).number(),
            "memory": str(resources.get("memory", ZERO)),
            "pods": resources.get("pods", ZERO).number(),
            "resources": {name: str(amount) for name, amount in resources.items()},
        }


@dataclass(frozen=True)
class PoolTotals(Tally):
    """The tally of all pools, and the tallies of their groups and zones, each in the order of the stack file.

    `gpu_products` counts the GPUs by product, for pools whose labels name one.
    """

    by_group: Mapping[str, Tally] = field(default_factory=dict)
    by_zone: Mapping[str, Tally] = field(default_factory=dict)
    gpu_products: Mapping[str, int] = field(default_factory=dict)

    def to_plain(self) -> dict[str, object]:
        """The plain form of a tally, with `byGroup` and `byZone` (tallies by name) and `gpuProducts` (GPUs by name)."""
        return {
            **super().to_plain(),
            "byGroup": {name: tally.to_plain() for name, tally in self.by_group.items()},
            "byZone": {name: tally.to_plain() for name, tally in self.by_zone.items()},
            "gpuProducts": dict(self.gpu_products),
        }


def is_gpu(resource: str) -> bool:
    """Whether a resource counts as GPUs: its name ends in `/gpu`."""
    return resource.endswith("/gpu")


def pool_resources(pool: Pool) -> dict[str, Quantity]:
    """The capacity of all nodes of a pool together, exact."""
    return {name: parse(written) * pool.count for name, written in pool.capacity.items()}


def _claimed_gpus(pool: Pool) -> int:
    """The GPUs of a pool that its nodes publish as devices, unless they also have them as an extended resource."""
    devices = pool.devices
    if devices is None or any(map(is_gpu, pool.capacity)):
        return 0
    return devices.count * pool.count if devices.attributes.get("type") == {"string": "gpu"} else 0


def totals(pools: Iterable[Pool]) -> PoolTotals:
    """Sum up the capacities of the pools' nodes: in total, and by group and zone in the order of the pools."""
    found = list(pools)

    def by(key: Callable[[Pool], str]) -> dict[str, Tally]:
        names = dict.fromkeys(map(key, found))
        return {name: _tally(pool for pool in found if key(pool) == name) for name in names}

    overall, products = _tally(found), by(lambda pool: pool.gpu_product)
    return PoolTotals(
        nodes=overall.nodes,
        resources=overall.resources,
        claimed_gpus=overall.claimed_gpus,
        by_group=by(lambda pool: pool.group),
        by_zone=by(lambda pool: pool.zone or NO_ZONE),
        gpu_products={name: tally.gpus for name, tally in products.items() if name},
    )


def resource_order(name: str) -> tuple[int, str]:
    """A sort key: cpu, memory, ephemeral-storage, pods, then the others by name."""
    return _ORDER.get(name, len(_ORDER)), name


def _tally(pools: Iterable[Pool]) -> Tally:
    nodes = claimed = 0
    sums: dict[str, Quantity] = {}
    for pool in pools:
        nodes += pool.count
        claimed += _claimed_gpus(pool)
        for name, amount in pool_resources(pool).items():
            sums[name] = sums.get(name, ZERO) + amount
    return Tally(nodes, {name: sums[name] for name in sorted(sums, key=resource_order)}, claimed)
