"""Where in the network a pool's nodes are: blocks, racks, NVLink domains, spine and leaf switches.

A level is a size in nodes, and a node's place depends only on its ordinal: with racks of 16, node 35 is in rack 2. So
a resize never moves a node, and a pool of any size needs a few numbers instead of a table of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from kumulus.model.checks import MOST_REPLICAS, of_mapping, text_problems, unknown_key_problems, whole_problems
from kumulus.model.errors import Problem, Where
from kumulus.model.names import label_key_mistake

LEVELS = ("nvlinkDomain", "rack", "leaf", "block", "spine")
"""The levels that a topology can have, from the usually smallest to the largest."""

_SHORT = {"nvlinkDomain": "nvl", "rack": "r", "leaf": "leaf", "block": "b", "spine": "spine"}
_LEVEL_KEYS = ("label", "nodes")


@dataclass(frozen=True)
class Level:
    """One level of a topology.

    Args:
        name: one of `LEVELS`.
        label: the key of the label that says where a node stands on this level.
        nodes: how many nodes one rack, block, switch or domain has.
    """

    name: str
    label: str
    nodes: int

    def place(self, ordinal: int) -> str:
        """A node's place, without its pool: r3 is the fourth rack."""
        return f"{_SHORT[self.name]}{ordinal // self.nodes}"

    def ordinals(self, index: int, replicas: int) -> range:
        """The ordinals of the nodes in one rack, block, switch or domain, counted from 0."""
        first = index * self.nodes
        return range(min(first, replicas), min(first + self.nodes, replicas))

    def count(self, replicas: int) -> int:
        """How many racks, blocks, switches or domains a pool of that many nodes has."""
        return -(-replicas // self.nodes)


@dataclass(frozen=True)
class Topology:
    """The levels of a pool, the smallest first; two of the same size are in the order of `LEVELS`."""

    levels: tuple[Level, ...]

    @classmethod
    def of(cls, levels: Iterable[Level]) -> Topology:
        """A topology of levels in any order."""
        return cls(tuple(sorted(levels, key=lambda level: (level.nodes, LEVELS.index(level.name)))))

    def labels(self, pool: str, ordinal: int) -> dict[str, str]:
        """The labels of one node; the values begin with the pool's name, so that no two pools share a rack."""
        return {level.label: place_name(pool, level.place(ordinal)) for level in self.levels}

    def level(self, name: str) -> Level | None:
        """One of its levels; None when the topology does not have it."""
        return next((level for level in self.levels if level.name == name), None)

    def to_plain(self) -> dict[str, dict[str, object]]:
        """The plain form, JSON-able; `topology_from` reads it back."""
        return {level.name: {"label": level.label, "nodes": level.nodes} for level in self.levels}


def place_name(pool: str, place: str) -> str:
    """The full name of a rack, block, switch or domain, and the value of its label: a100-use1-r3."""
    return f"{pool}-{place}"


def moved(pool: str, old: Topology | None, new: Topology | None, replicas: int) -> int:
    """How many of a pool's first nodes have other topology labels under another topology."""
    if old == new:
        return 0
    before, after = (each or Topology(()) for each in (old, new))
    return sum(before.labels(pool, ordinal) != after.labels(pool, ordinal) for ordinal in range(replicas))


@of_mapping
def topology_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of a topology's plain form: a mapping from level names to `{label, nodes}`."""
    found = unknown_key_problems(where, raw, LEVELS)
    for name, level in raw.items():
        found += _level_problems((*where, name), level)
    return found


@of_mapping
def _level_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    return [
        *unknown_key_problems(where, raw, _LEVEL_KEYS),
        *whole_problems((*where, "nodes"), raw.get("nodes"), 1, MOST_REPLICAS, "a number of nodes"),
        *text_problems((*where, "label"), raw.get("label"), label_key_mistake, "write the key of a label"),
    ]


def topology_from(raw: object) -> Topology | None:
    """A topology from its checked plain form; None for none."""
    levels = cast(Mapping[str, Mapping[str, Any]], raw or {})
    found = [Level(name, level["label"], int(level["nodes"])) for name, level in levels.items()]
    return Topology.of(found) if found else None
