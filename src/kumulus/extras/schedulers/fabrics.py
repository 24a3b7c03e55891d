"""Volcano's HyperNodes for pools with a topology: the wanted ones, as a pure function of a few numbers.

Racks (or whatever level is lowest) select their nodes by label, so that a resize adds and removes their HyperNodes but
changes none; higher levels list the HyperNodes below them. Source: volcano-sh/volcano, topology/v1alpha1 (v1.15).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, cast

from kumulus.model.checks import mapping_problems, of_mapping, problem, replicas_problems, unknown_key_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.names import dns_safe
from kumulus.model.pools import ZONE_LABEL, Pool
from kumulus.model.topology import Level, Topology, place_name, topology_from, topology_problems

ZONE = "zone"
_TIER_NAMES = {"nvlinkDomain": "nvlink-domain"}
_KEYS = ("zone", "replicas", "topology")


@dataclass(frozen=True)
class Fabric:
    """What HyperNodes are derived from: a pool without its node template."""

    pool: str
    zone: str
    """Empty for none."""
    replicas: int
    topology: Topology

    @classmethod
    def of(cls, pool: Pool) -> Fabric:
        """The fabric of a pool that has a topology."""
        return cls(pool.name, pool.zone, pool.replicas, pool.topology or Topology(()))


@dataclass(frozen=True)
class HyperNode:
    """One HyperNode."""

    name: str
    """Its name, the value of its nodes' label: a100-use1-r3."""
    tier: int
    """How far apart its nodes are; 1 is nearest."""
    tier_name: str
    """Rack, block, zone and so on."""
    label: tuple[str, str] | None = None
    """Key and value by which it selects its nodes; None when it consists of HyperNodes."""
    children: tuple[str, ...] = ()

    def spec(self) -> dict[str, object]:
        """Its `spec`, as Volcano's API has it."""
        members: list[dict[str, object]] = [
            {"type": "HyperNode", "selector": {"exactMatch": {"name": child}}} for child in self.children
        ]
        if self.label:
            key, value = self.label
            members = [{"type": "Node", "selector": {"labelMatch": {"matchLabels": {key: value}}}}]
        return {"tier": self.tier, "tierName": self.tier_name, "members": members}


def hyper_nodes(fabrics: Iterable[Fabric]) -> dict[str, HyperNode]:
    """Every wanted HyperNode, by name, the lowest tiers first.

    Of two levels of the same size only the first in `topology.LEVELS` has HyperNodes: the other's would be identical.
    """
    # Sorted by name, because the engine may return a mapping in another order.
    with_nodes = (fabric for fabric in fabrics if fabric.replicas and fabric.topology.levels)
    stocked = sorted(with_nodes, key=lambda fabric: fabric.pool)
    tiers = _tiers(stocked)
    made = [node for fabric in stocked for node in _of_pool(fabric, tiers)]
    zones: dict[str, list[str]] = {}
    for fabric in stocked:
        if fabric.zone:
            top = _levels(fabric)[-1]
            names = [place_name(fabric.pool, top.place(n * top.nodes)) for n in range(top.count(fabric.replicas))]
            zones.setdefault(fabric.zone, []).extend(names)
    highest = max((node.tier for node in made), default=0) + 1
    for zone, names in zones.items():
        made.append(HyperNode(_zone_name(zone), highest, ZONE, children=tuple(names)))
    return {node.name: node for node in sorted(made, key=lambda node: node.tier)}


def tier_name(level: str) -> str:
    """The name that HyperNodes of a level have for their tier."""
    return _TIER_NAMES.get(level, level)


def zone_nodes(zones: Iterable[str]) -> dict[str, HyperNode]:
    """HyperNodes of zones in which nothing has a topology, by name: they select their nodes by the zone's label."""
    named = sorted({zone for zone in zones if zone})
    return {(name := _zone_name(zone)): HyperNode(name, 1, ZONE, (ZONE_LABEL, zone)) for zone in named}


def describe(old: Mapping[str, HyperNode], new: Mapping[str, HyperNode]) -> str:
    """What a change of HyperNodes means: `15 HyperNodes (were 12): +2 rack, +1 block`; empty when nothing changes."""
    step = {name: (name in new) - (name in old) for name in {**old, **new}}
    added, removed = (sum(change == sign for change in step.values()) for sign in (1, -1))
    changed = sum(old[name] != new[name] for name in old.keys() & new.keys())
    if not (added or removed or changed):
        return ""
    tiers: dict[str, int] = {}
    for name, change in step.items():
        kind = (new.get(name) or old[name]).tier_name
        tiers[kind] = tiers.get(kind, 0) + change
    details = ", ".join(f"{count:+,} {kind}" for kind, count in tiers.items() if count).replace("-", "−")
    counted = f"{len(new):,} HyperNodes (were {len(old):,})" if old else f"+{len(new):,} HyperNodes"
    parts = [counted, *([f"{changed:,} changed"] if changed else [])]
    return ", ".join(parts) + (f": {details}" if details else "")


@of_mapping
def fabrics_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of fabrics in their plain form: a mapping from pool names to `{zone, replicas, topology}`."""
    found: list[Problem] = []
    for pool, fabric in raw.items():
        here = (*where, pool)
        if wrong := mapping_problems(here, fabric):
            found += wrong
            continue
        found += unknown_key_problems(here, fabric, _KEYS)
        found += replicas_problems((*here, "replicas"), fabric.get("replicas"))
        found += topology_problems((*here, "topology"), fabric.get("topology"))
        if not isinstance(fabric.get("zone", ""), str):
            found.append(problem((*here, "zone"), f"is {shown(fabric['zone'])}", "write the zone's name"))
    return found


def fabrics_from(raw: object) -> list[Fabric]:
    """Fabrics from their checked plain form."""
    plain = cast(Mapping[str, Mapping[str, object]], raw or {})
    return [
        Fabric(
            pool,
            cast(str, fabric.get("zone", "")),
            int(cast(float, fabric["replicas"])),
            topology_from(fabric["topology"]) or Topology(()),
        )
        for pool, fabric in plain.items()
    ]


def fabrics_to_plain(fabrics: Iterable[Fabric]) -> dict[str, dict[str, object]]:
    """The plain form of fabrics, JSON-able; `fabrics_from` reads it back."""
    return {
        fabric.pool: {"zone": fabric.zone, "replicas": fabric.replicas, "topology": fabric.topology.to_plain()}
        for fabric in fabrics
    }


def _zone_name(zone: str) -> str:
    return f"{ZONE}-{dns_safe(zone, dots=True)}"


def _levels(fabric: Fabric) -> list[Level]:
    """A fabric's levels, one per size, the smallest first."""
    return list({level.nodes: level for level in reversed(fabric.topology.levels)}.values())[::-1]


def _of_pool(fabric: Fabric, tiers: Mapping[tuple[str, int], int]) -> list[HyperNode]:
    made: list[HyperNode] = []
    below: Level | None = None
    for level in _levels(fabric):
        for index in range(level.count(fabric.replicas)):
            ordinals = level.ordinals(index, fabric.replicas)
            name = place_name(fabric.pool, level.place(ordinals.start))
            children: tuple[str, ...] = ()
            if below:
                firsts = range(ordinals.start, ordinals.stop, below.nodes)
                children = tuple(place_name(fabric.pool, below.place(first)) for first in firsts)
            label = None if below else (level.label, name)
            made.append(HyperNode(name, tiers[level.name, level.nodes], tier_name(level.name), label, children))
        below = level
    return made


def _tiers(fabrics: Iterable[Fabric]) -> dict[tuple[str, int], int]:
    """The tier of every level of every size.

    Where possible, a level has the same tier in all pools, since jobs request tiers by number. Where the pools
    contradict each other (NVLink domains inside a rack in one pool, across racks in another), the size alone decides.
    """
    chains = [[(level.name, level.nodes) for level in _levels(fabric)] for fabric in fabrics]
    below: dict[str, set[str]] = {name: set() for chain in chains for name, _ in chain}
    for chain in chains:
        for (inner, _), (outer, _) in pairwise(chain):
            below[outer].add(inner)
    order = TopologicalSorter(below)
    try:
        order.prepare()
    except CycleError:
        sizes = sorted({nodes for chain in chains for _, nodes in chain})
        return {level: sizes.index(level[1]) + 1 for chain in chains for level in chain}
    tiers: dict[str, int] = {}
    tier = 1
    while ready := order.get_ready():
        tiers |= dict.fromkeys(ready, tier)
        order.done(*ready)
        tier += 1
    return {level: tiers[level[0]] for chain in chains for level in chain}
