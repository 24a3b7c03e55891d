"""What a change of a pool means, in one line: nodes, GPUs, CPUs and memory gained or lost. Pure functions."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kumulus.model.gfd import GPU_RESOURCE
from kumulus.model.pools import INSTANCE_TYPE_LABEL, Pool
from kumulus.model.quantity import ZERO, Quantity, human, parse
from kumulus.model.topology import LEVELS, moved
from kumulus.model.totals import pool_resources, resource_order
from kumulus.model.words import counted, listed

MINUS = "\N{MINUS SIGN}"
ARROW = "\N{RIGHTWARDS ARROW}"
Hourly = Callable[[Pool], float | None]
"""What one of a pool's nodes costs per hour, in US dollars; NaN where a machine is known and its price is not, None for
nodes that are no machine of any cloud.
"""
# Every node has these and nobody counts them: mentioned only when their amount per node changes.
_QUIET = ("pods", "ephemeral-storage")
# A GPU product alone sets 26 labels.
_NAMED = 6


@dataclass(frozen=True)
class Consequence:
    """What applying a change to one pool does."""

    group: str
    """The node group's name, or else the pool's."""
    zone: str
    """Empty when the pool has none."""
    before: int
    """Number of nodes now."""
    after: int
    """Number of nodes afterwards."""
    changed: int = 0
    """How many of the remaining nodes are changed in place."""
    fields: tuple[str, ...] = ()
    """What is changed on those, such as `labels team` or `taints`; resources are in `resources`."""
    resources: Mapping[str, Quantity] | None = None
    """Gains and losses of the whole pool, extended resources first; none is zero."""
    pods: int = 0
    """Running pods on the nodes that are deleted."""
    product: str = ""
    """Of the GPUs gained or lost; empty when not known."""
    devices: Mapping[str, int] | None = None
    """The same for the devices in ResourceSlices, by driver."""
    cost: float | None = None
    """The change in US dollars per hour; NaN or None when a price is not known, as :data:`Hourly` has it."""

    def __bool__(self) -> bool:
        """Whether anything changes at all."""
        return self.before != self.after or self.changed > 0 or any((self.fields, self.resources, self.devices))

    def describe(self) -> str:
        """One line: `group a100, zone use1: +3 nodes (5 → 8): +24 nvidia.com/gpu, +288 cpu, +3.98 TiB memory`."""
        place = f"group {self.group}" + (f", zone {self.zone}" if self.zone else "")
        return f"{place}: {self._what()}{self._pods()}"

    def _what(self) -> str:
        if not self:
            return "no change"
        parts = []
        if step := self.after - self.before:
            sign = "+" if step > 0 else MINUS
            parts.append(f"{sign}{counted(abs(step), 'node')} ({self.before:,} {ARROW} {self.after:,})")
        if self.changed or not parts:
            parts.append(f"{counted(self.changed, 'node')} changed")
        amounts = [self._amount(name, amount) for name, amount in (self.resources or {}).items()]
        devices = [_devices(driver, amount) for driver, amount in (self.devices or {}).items()]
        details = [*devices, *amounts, *([_money(self.cost)] if self.cost else []), *self.fields]
        return ", ".join(parts) + (f": {', '.join(details)}" if details else "")

    def _amount(self, name: str, amount: Quantity) -> str:
        product = f" ({self.product})" if self.product and name == GPU_RESOURCE else ""
        return _amount(name, amount) + product

    def _pods(self) -> str:
        return f"; {counted(self.pods, 'running pod')} would go" if self.pods else ""


def consequences(old: Pool | None, new: Pool | None, pods: int = 0, hourly: Hourly = lambda _: None) -> Consequence:
    """What it means to turn one pool into another.

    Args:
        old: the current pool; None when it is created.
        new: the wanted pool; None when it is deleted.
        pods: how many pods run on the nodes that would be deleted.
        hourly: what a pool's nodes cost.
    """
    named = new or old
    if named is None:
        raise ValueError("a change needs the pool before it or the pool after it")
    before, after = (old.count if old else 0), (new.count if new else 0)
    fields = _fields(old, new) if old and new else ()
    altered = bool(old and new and (fields or _per_node(old, new) or old.devices != new.devices))
    relabelled = moved(new.name, old.topology, new.topology, min(before, after)) if old and new else 0
    return Consequence(
        group=named.group or named.name,
        zone=named.zone,
        before=before,
        after=after,
        changed=min(before, after) if altered else relabelled,
        fields=(*fields, *_topology(old, new)) if relabelled else fields,
        resources=_resources(old, new),
        pods=pods,
        product=named.gpu_product,
        devices=_gained_devices(old, new),
        cost=_gained_cost(old, new, hourly),
    )


def _resources(old: Pool | None, new: Pool | None) -> dict[str, Quantity]:
    had, has = (pool_resources(pool) if pool else {} for pool in (old, new))
    mentioned = set(_per_node(old, new)) if old and new else set()
    differences = {name: has.get(name, ZERO) - had.get(name, ZERO) for name in {**had, **has}}
    names = [name for name, amount in differences.items() if amount.nanos and (name in mentioned or name not in _QUIET)]
    # Extended resources are what such clusters are about, so they come first.
    names.sort(key=lambda name: ("/" not in name, resource_order(name)))
    return {name: differences[name] for name in names}


def _per_node(old: Pool, new: Pool) -> list[str]:
    return _altered(old.capacity, new.capacity)


def _altered(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    amounts = ({name: parse(written).nanos for name, written in resources.items()} for resources in (old, new))
    had, has = amounts
    return [name for name in {**had, **has} if had.get(name) != has.get(name)]


def _fields(old: Pool, new: Pool) -> tuple[str, ...]:
    found = [_keys("labels", old.labels, new.labels), _keys("annotations", old.annotations, new.annotations)]
    found.append("taints" if set(old.taints) != set(new.taints) else "")
    # An allocatable that follows the capacity is mentioned with it.
    own = [name for name in _altered(old.allocatable, new.allocatable) if name not in _per_node(old, new)]
    found.append(f"allocatable {', '.join(sorted(own, key=resource_order))}" if own else "")
    found.append("shard" if old.shards != new.shards else "")
    found.append("named nodes" if old.nodes[: new.replicas] != new.nodes[: old.replicas] else "")
    found.append(_keys("nodeInfo", old.node_info.to_plain(), new.node_info.to_plain()))
    found.append("declared features" if old.declared_features != new.declared_features else "")
    if old.devices and new.devices and old.devices.driver == new.devices.driver:
        had, has = ({**each.attributes, **each.capacity} for each in (old.devices, new.devices))
        found.append(_keys("device attributes", had, has))
        took, takes = (each.node_allocatable_resources for each in (old.devices, new.devices))
        found.append(_keys("devices' node resources", took, takes))
        spread = [(each.pcie_roots, each.numa_nodes) for each in (old.devices, new.devices)]
        found.append("device topology" if spread[0] != spread[1] else "")
    return tuple(field for field in found if field)


def _topology(old: Pool | None, new: Pool | None) -> tuple[str, ...]:
    """The topology levels that change: `topology rack, block`."""
    had, has = (pool.topology.to_plain() if pool and pool.topology else {} for pool in (old, new))
    levels = [level for level in LEVELS if had.get(level) != has.get(level)]
    return (f"topology {', '.join(levels)}",)


def _gained_devices(old: Pool | None, new: Pool | None) -> dict[str, int]:
    had, has = _published(old), _published(new)
    return {driver: amount for driver in {**had, **has} if (amount := has.get(driver, 0) - had.get(driver, 0))}


def _gained_cost(old: Pool | None, new: Pool | None, hourly: Hourly) -> float | None:
    """How much more the pool costs per hour; a pool without nodes costs nothing, whatever its price."""
    total = 0.0
    for pool, sign in ((old, -1), (new, +1)):
        if pool and pool.count:
            price = hourly(pool)
            if price is None:
                return None
            total += sign * pool.count * price
    if math.isnan(total) and old and new and (old.count, _machine(old)) == (new.count, _machine(new)):
        return 0.0
    return round(total, 6)


def _machine(pool: Pool) -> str | None:
    return pool.labels.get(INSTANCE_TYPE_LABEL)


def _published(pool: Pool | None) -> dict[str, int]:
    return {pool.devices.driver: pool.devices.count * pool.count} if pool and pool.devices else {}


def _keys(what: str, old: Mapping[str, object], new: Mapping[str, object]) -> str:
    keys = sorted(key for key in {**old, **new} if old.get(key) != new.get(key))
    return f"{what} {listed(keys, _NAMED)}" if keys else ""


def _amount(name: str, amount: Quantity) -> str:
    sign = MINUS if amount.nanos < 0 else "+"
    size = human(name, Quantity(abs(amount.nanos), amount.format))
    return f"{sign}{size} {name}"


def _money(hourly: float) -> str:
    if math.isnan(hourly):
        return "price not known"
    return f"{MINUS if hourly < 0 else '+'}${abs(hourly):,.2f}/h"


def _devices(driver: str, amount: int) -> str:
    return f"{MINUS if amount < 0 else '+'}{counted(abs(amount), f'{driver} device')}"
