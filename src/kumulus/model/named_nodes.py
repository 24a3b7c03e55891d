"""Nodes of a pool with individual names, labels and cordons: those of a captured cluster, or of a trace.

A pool without them names its nodes `<name>-<ordinal>`. The provider plugin imports this file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from kumulus.model.checks import label_problems, mapping_problems, problem, replicas_problems, unknown_key_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.names import NODE_NAME_LENGTH, dns_subdomain_mistake

TOPOLOGY_PREFIX = "topology.kumulus.io/"
"""Prefix of topology labels, which a node of a captured fleet keeps."""

_KEYS = ("name", "labels", "unschedulable")


@dataclass(frozen=True)
class NamedNode:
    """A node that is not called by its pool and ordinal.

    Args:
        name: the node's name.
        labels: those it has in addition to the labels of its pool, and which win over them.
        unschedulable: whether it is made cordoned. Cordons set later are neither drift nor repaired.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    unschedulable: bool = False

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able, without default values; `named_nodes_from` reads it back."""
        return {
            "name": self.name,
            **({"labels": dict(self.labels)} if self.labels else {}),
            **({"unschedulable": True} if self.unschedulable else {}),
        }


def named_nodes_problems(where: Where, raw: object, ours_too: bool = False) -> list[Problem]:
    """Problems of a list of named nodes in its plain form.

    Args:
        where: the list's place.
        raw: the list; may be malformed.
        ours_too: whether labels under kumulus.io/ are allowed.
    """
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
        return [problem(where, f"is {shown(raw)}", "write a list of nodes, such as [{name: node-a}]")]
    found, first = [], dict[str, int]()
    for index, node in enumerate(raw):
        here = (*where, index)
        if wrong := mapping_problems(here, node):
            found += wrong
            continue
        found += _one_problems(here, node, ours_too)
        name = node.get("name")
        if isinstance(name, str) and first.setdefault(name, index) != index:
            found.append(problem((*here, "name"), f"{shown(name)} is already node {first[name]}", "write another name"))
    return found


def named_count_problems(where: Where, raw: object, replicas: object) -> list[Problem]:
    """Whether the number of named nodes equals the replicas; malformed values are reported elsewhere.

    Args:
        where: the place of the replicas.
        raw: the list of named nodes; None for none.
    """
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes) or replicas_problems(where, replicas):
        return []
    if not raw or replicas == len(raw):
        return []
    message = f"is {shown(replicas)}, and {len(raw):,} nodes are named"
    return [problem(where, message, f"write {len(raw)}, or name as many nodes")]


def named_nodes_from(raw: object) -> tuple[NamedNode, ...]:
    """Named nodes from their checked plain form; empty for None."""
    return tuple(
        NamedNode(
            name=str(node["name"]),
            labels=dict(cast(Mapping[str, str], node.get("labels") or {})),
            unschedulable=bool(node.get("unschedulable")),
        )
        for node in cast(Sequence[Mapping[str, object]], raw or ())
    )


def _one_problems(where: Where, node: Mapping[str, object], ours_too: bool) -> list[Problem]:
    found = unknown_key_problems(where, node, _KEYS)
    name = node.get("name")
    if not isinstance(name, str):
        found.append(problem((*where, "name"), f"is {shown(name)}", "write the node's name"))
    elif mistake := dns_subdomain_mistake(name, NODE_NAME_LENGTH):
        found.append(problem((*where, "name"), f"{shown(name)} {mistake.message}", mistake.remedy))
    if node.get("labels") is not None:
        found += _label_problems((*where, "labels"), node["labels"], ours_too)
    cordoned = node.get("unschedulable")
    if not (cordoned is None or isinstance(cordoned, bool)):
        found.append(problem((*where, "unschedulable"), f"is {shown(cordoned)}", "write true or false"))
    return found


def _label_problems(where: Where, raw: object, ours_too: bool) -> list[Problem]:
    if not isinstance(raw, Mapping):
        return label_problems(where, raw, ours_too)
    places = {key: value for key, value in raw.items() if str(key).startswith(TOPOLOGY_PREFIX)}
    others = {key: value for key, value in raw.items() if key not in places}
    return label_problems(where, places, ours_too=True) + label_problems(where, others, ours_too)
