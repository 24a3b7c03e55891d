"""What a change of a pool means, in one line: nodes, GPUs, CPUs and memory gained or lost."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kumulus.model.gfd import GPU_RESOURCE
from kumulus.model.plain import plain
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
# The most keys of one field that are named: a GPU product alone sets 26 labels.
_NAMED = 6


@dataclass(frozen=True)
class Consequence:
    """What applying a change to one pool does."""

    place: str
    """The group and zone."""
    what: str
    """What changes; empty if nothing does."""
    pods: int
    """Running pods on the nodes that are deleted."""

    def __bool__(self) -> bool:
        return bool(self.what)

    def describe(self) -> str:
        """One line: `group a100, zone use1: +3 nodes (5 → 8): +24 nvidia.com/gpu, +288 cpu, +3.98 TiB memory`."""
        pods = f"; {counted(self.pods, 'running pod')} would go" if self.pods else ""
        return f"{self.place}: {self.what or 'no change'}{pods}"


def consequences(old: Pool | None, new: Pool | None, pods: int = 0, hourly: Hourly = lambda _: None) -> Consequence:
    """What it means to turn one pool into another; None is no pool.

    Args:
        pods: how many pods run on the nodes that would be deleted.
        hourly: what a node costs.
    """
    named = new or old
    if named is None:
        raise ValueError("a change needs the pool before it or the pool after it")
    before, after = (each.count if each else 0 for each in (old, new))
    changed, fields = _changed(old, new) if old and new else (0, [])
    details = [*_devices(old, new), *_resources(old, new, named.gpu_product), *_cost(old, new, hourly), *fields]
    place = f"group {named.group or named.name}" + (f", zone {named.zone}" if named.zone else "")
    more = after - before
    if not (more or changed or details):
        return Consequence(place, "", pods)
    parts = [f"{_sign(more)}{counted(abs(more), 'node')} ({before:,} {ARROW} {after:,})"] if more else []
    if changed or not more:
        parts.append(f"{counted(changed, 'node')} changed")
    what = ", ".join(parts) + (f": {', '.join(details)}" if details else "")
    return Consequence(place, what, pods)


def _changed(old: Pool, new: Pool) -> tuple[int, list[str]]:
    """How many of the nodes that stay are changed, and in which fields."""
    stay = min(old.count, new.count)
    fields = _fields(old, new)
    all_change = fields or _altered(old.capacity, new.capacity) or old.devices != new.devices
    moving = moved(new.name, old.topology, new.topology, stay)
    if moving:
        fields.append(_topology(old, new))
    return stay if all_change else moving, fields


def _resources(old: Pool | None, new: Pool | None, product: str) -> list[str]:
    """Gains and losses of the whole pool, extended resources first: such clusters are about those."""
    had, has = (pool_resources(pool) if pool else {} for pool in (old, new))
    mentioned = set(_altered(old.capacity, new.capacity)) if old and new else set()
    found = []
    for name in sorted({**had, **has}, key=lambda name: ("/" not in name, resource_order(name))):
        amount = has.get(name, ZERO) - had.get(name, ZERO)
        if amount.nanos and (name in mentioned or name not in _QUIET):
            size = human(name, Quantity(abs(amount.nanos), amount.format))
            of_product = f" ({product})" if product and name == GPU_RESOURCE else ""
            found.append(f"{_sign(amount.nanos)}{size} {name}{of_product}")
    return found


def _altered(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The resources of which there is another amount."""
    had, has = ({name: parse(written).nanos for name, written in resources.items()} for resources in (old, new))
    return [name for name in {**had, **has} if had.get(name) != has.get(name)]


def _fields(old: Pool, new: Pool) -> list[str]:
    found = [_differing("labels", old.labels, new.labels), _differing("annotations", old.annotations, new.annotations)]
    found.append("taints" if set(old.taints) != set(new.taints) else "")
    # An allocatable that follows the capacity is mentioned with it.
    own = {*_altered(old.allocatable, new.allocatable)} - {*_altered(old.capacity, new.capacity)}
    found.append(f"allocatable {', '.join(sorted(own, key=resource_order))}" if own else "")
    found.append("shard" if old.shards != new.shards else "")
    found.append("named nodes" if old.nodes[: new.replicas] != new.nodes[: old.replicas] else "")
    found.append(_differing("nodeInfo", plain(old.node_info), plain(new.node_info)))
    found.append("declared features" if old.declared_features != new.declared_features else "")
    if old.devices and new.devices and old.devices.driver == new.devices.driver:
        had, has = ({**each.attributes, **each.capacity} for each in (old.devices, new.devices))
        found.append(_differing("device attributes", had, has))
        took, takes = (each.node_allocatable_resources for each in (old.devices, new.devices))
        found.append(_differing("devices' node resources", took, takes))
        was_on, is_on = ((each.pcie_roots, each.numa_nodes) for each in (old.devices, new.devices))
        found.append("device topology" if was_on != is_on else "")
    return [field for field in found if field]


def _topology(old: Pool, new: Pool) -> str:
    had, has = (pool.topology.to_plain() if pool.topology else {} for pool in (old, new))
    return f"topology {', '.join(level for level in LEVELS if had.get(level) != has.get(level))}"


def _devices(old: Pool | None, new: Pool | None) -> list[str]:
    """The devices in ResourceSlices gained and lost, by driver."""

    def by_driver(pool: Pool | None) -> dict[str, int]:
        return {pool.devices.driver: pool.devices.count * pool.count} if pool and pool.devices else {}

    had, has = by_driver(old), by_driver(new)
    gained = {driver: has.get(driver, 0) - had.get(driver, 0) for driver in {**had, **has}}
    return [f"{_sign(n)}{counted(abs(n), f'{driver} device')}" for driver, n in gained.items() if n]


def _cost(old: Pool | None, new: Pool | None, hourly: Hourly) -> list[str]:
    """How much more the pool costs per hour; a pool without nodes costs nothing, whatever its price."""
    total = 0.0
    for pool, sign in ((old, -1), (new, +1)):
        if pool and pool.count:
            price = hourly(pool)
            if price is None:
                return []
            total += sign * pool.count * price
    # One of the prices was NaN.
    if math.isnan(total):
        same = old and new and (old.count, _machine(old)) == (new.count, _machine(new))
        return [] if same else ["price not known"]
    total = round(total, 6)
    return [f"{_sign(total)}${abs(total):,.2f}/h"] if total else []


def _machine(pool: Pool) -> str | None:
    return pool.labels.get(INSTANCE_TYPE_LABEL)


def _differing(what: str, old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """A field and its keys that differ; empty when none does."""
    keys = sorted(key for key in {**old, **new} if old.get(key) != new.get(key))
    return f"{what} {listed(keys, _NAMED)}" if keys else ""


def _sign(amount: float) -> str:
    return MINUS if amount < 0 else "+"
