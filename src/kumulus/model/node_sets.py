"""Sets of nodes in a compact form: ranges of ordinals by pool, `{"a100-use1": "0-99,105"}`."""

import re
from collections.abc import Iterable, Mapping

from kumulus.model.fault_effects import NodeEffects
from kumulus.model.names import node_name
from kumulus.model.words import listed

NodeSet = Mapping[str, frozenset[int]]
"""Ordinals by the pool's name; without empty pools."""

_RANGES = re.compile(r"[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*")


def ranges(ordinals: Iterable[int]) -> str:
    """Write ordinals as ranges: 0, 1, 2 and 5 as `0-2,5`."""
    parts: list[list[int]] = []
    for ordinal in sorted(ordinals):
        if parts and ordinal == parts[-1][1] + 1:
            parts[-1][1] = ordinal
        else:
            parts.append([ordinal, ordinal])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def ordinals(text: str) -> frozenset[int]:
    """Read what `ranges` writes; ValueError if it is malformed."""
    if not _RANGES.fullmatch(text):
        raise ValueError(f"{text!r} are no ranges of ordinals")
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def to_plain(nodes: NodeSet) -> dict[str, str]:
    """The plain form of a set of nodes."""
    return {pool: ranges(members) for pool, members in sorted(nodes.items()) if members}


def from_plain(raw: Mapping[str, str]) -> dict[str, frozenset[int]]:
    """Read the plain form; ValueError if it is malformed."""
    return {pool: ordinals(text) for pool, text in raw.items()}


def size(nodes: NodeSet) -> int:
    """The number of nodes in a set."""
    return sum(map(len, nodes.values()))


def union(*sets: NodeSet) -> dict[str, frozenset[int]]:
    """The nodes that are in any of the sets."""
    found: dict[str, frozenset[int]] = {}
    for nodes in sets:
        for pool, members in nodes.items():
            found[pool] = found.get(pool, frozenset()) | members
    return found


def common(one: NodeSet, other: NodeSet) -> dict[str, frozenset[int]]:
    """The nodes that are in both sets."""
    both = {pool: members & other.get(pool, frozenset()) for pool, members in one.items()}
    return {pool: members for pool, members in both.items() if members}


def without(one: NodeSet, other: NodeSet) -> dict[str, frozenset[int]]:
    """The nodes that are in the first set only."""
    rest = {pool: members - other.get(pool, frozenset()) for pool, members in one.items()}
    return {pool: members for pool, members in rest.items() if members}


# The most nodes that are named.
_NAMED = 3


def clashes(effects: NodeEffects, nodes: NodeSet, others_effects: NodeEffects, others_nodes: NodeSet) -> str:
    """The first that two faults set differently, and on which of their nodes; empty if both can be active at once."""
    others = others_effects.settings()
    different = [
        what
        for what, value in effects.settings().items()
        if what in others and (value is None or value != others[what])
    ]
    shared = common(nodes, others_nodes)
    if not different or not shared:
        return ""
    named = [node_name(pool, ordinal) for pool, members in sorted(shared.items()) for ordinal in sorted(members)]
    return f"the {different[0]} of {listed(named, _NAMED)}"
