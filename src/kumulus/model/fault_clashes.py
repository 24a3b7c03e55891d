"""Conflicts between two faults on one node. The provider plugin imports this file."""

from __future__ import annotations

from kumulus.model.names import node_name
from kumulus.model.node_effects import NodeEffects
from kumulus.model.node_sets import NodeSet, common
from kumulus.model.words import listed

_NAMED = 3


def clashes(one: NodeEffects, ones: NodeSet, other: NodeEffects, others: NodeSet) -> str:
    """What two faults set differently, and on which nodes; empty if both can be active at once.

    Args:
        one: what the first does to each of its nodes.
        ones: the nodes of the first.
        other: what the second does to each of its nodes.
        others: the nodes of the second.
    """
    mine, theirs = one.claims(), other.claims()
    both = [what for what, how in mine.items() if what in theirs and (how is None or how != theirs[what])]
    if not both:
        return ""
    shared = common(ones, others)
    if not shared:
        return ""
    named = [node_name(pool, ordinal) for pool, members in sorted(shared.items()) for ordinal in sorted(members)]
    return f"the {both[0]} of {listed(named, _NAMED)}"
