"""Nodes of a pool with individual names, labels and cordons: those of a captured cluster, or of a trace.

A pool without them names its nodes `<name>-<ordinal>`. The provider plugin imports this file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kumulus.model.checks import (
    label_problems,
    of_mapping,
    problem,
    replicas_problems,
    switch_problems,
    text_problems,
    unknown_key_problems,
)
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.names import node_name_mistake
from kumulus.model.plain import made_from, plain

TOPOLOGY_PREFIX = "topology.kumulus.io/"
"""Prefix of topology labels, which a named node may have although they are Kumulus' own: a captured node keeps them."""

_KEYS = ("name", "labels", "unschedulable")


@dataclass(frozen=True)
class NamedNode:
    """A node with a name of its own.

    Args:
        name: the node's name.
        labels: those it has in addition to the labels of its pool; of one key, the node's label wins.
        unschedulable: whether it is made cordoned. Cordons set later are neither drift nor repaired.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    unschedulable: bool = False

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able, without default values; `named_nodes_from` reads it back."""
        return dict(plain(self, optional=("labels", "unschedulable")))


def named_nodes_problems(where: Where, raw: object, own_too: bool = False) -> list[Problem]:
    """Problems of a list of named nodes in its plain form; `own_too` is for their labels, as in `label_problems`."""
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
        return [problem(where, f"is {shown(raw)}", "write a list of nodes, such as [{name: node-a}]")]
    found: list[Problem] = []
    first_index: dict[str, int] = {}
    for index, node in enumerate(raw):
        here = (*where, index)
        found += _one_problems(here, node, own_too)
        name = node.get("name") if isinstance(node, Mapping) else None
        if isinstance(name, str) and first_index.setdefault(name, index) != index:
            message = f"{shown(name)} is already node {first_index[name]}"
            found.append(problem((*here, "name"), message, "write another name"))
    return found


def named_count_problems(where: Where, raw: object, replicas: object) -> list[Problem]:
    """Whether there are as many named nodes as replicas; malformed values are reported elsewhere."""
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes) or replicas_problems(where, replicas):
        return []
    if not raw or replicas == len(raw):
        return []
    message = f"is {shown(replicas)}, and {len(raw):,} nodes are named"
    return [problem(where, message, f"write {len(raw)}, or name as many nodes")]


def named_nodes_from(raw: object) -> tuple[NamedNode, ...]:
    """Named nodes from their checked plain form; empty for None."""
    return tuple(made_from(NamedNode, node) for node in cast(Sequence[Mapping[str, object]], raw or ()))


@of_mapping
def _one_problems(where: Where, node: Mapping[str, Any], own_too: bool) -> list[Problem]:
    found = unknown_key_problems(where, node, _KEYS)
    found += text_problems((*where, "name"), node.get("name"), node_name_mistake, "write the node's name")
    if node.get("labels") is not None:
        found += _label_problems((*where, "labels"), node["labels"], own_too)
    if node.get("unschedulable") is not None:
        found += switch_problems((*where, "unschedulable"), node["unschedulable"])
    return found


def _label_problems(where: Where, raw: object, own_too: bool) -> list[Problem]:
    if not isinstance(raw, Mapping):
        return label_problems(where, raw, own_too)
    topology = {key: value for key, value in raw.items() if str(key).startswith(TOPOLOGY_PREFIX)}
    others = {key: value for key, value in raw.items() if key not in topology}
    return label_problems(where, topology, own_too=True) + label_problems(where, others, own_too)
