"""Rules of the stack file's `nodeGroups`: the names of their pools and nodes, and what fits in a template.

As in `rules`, they check the plain file, so that all problems are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, path_text, shown
from kumulus.model.named_nodes import count_problems
from kumulus.model.names import (
    SYSTEM_GROUP,
    collisions,
    is_dns_subdomain,
    node_name,
    pool_name,
)
from kumulus.model.pool_form import allocatable_problems, length_problems
from kumulus.stackfile.group_topology import placement_problems, template_problems, well_formed
from kumulus.stackfile.plain import Found, count, duplicates, items, text
from kumulus.stackfile.shapes import shape_problems


def group_problems(raw: Mapping[str, object]) -> Found:
    """Groups of the same name, and problems within each group."""
    where: Where = ("nodeGroups",)
    groups = items(raw, "nodeGroups")
    yield from duplicates(groups, where, "name", "name")
    for index, group in groups:
        here = (*where, index)
        if group.get("name") == SYSTEM_GROUP:
            message = f"{shown(SYSTEM_GROUP)} is the group Kumulus adds for emulated add-ons"
            yield problem((*here, "name"), message, "write another name")
        yield from duplicates(items(group, "placement"), (*here, "placement"), "availabilityZone", "zone")
        yield from shape_problems(here, group)
        template = group.get("nodeTemplate")
        if isinstance(template, Mapping):
            inner = path_text((*here, "nodeTemplate"))
            for each in allocatable_problems(template.get("allocatable"), template.get("capacity")):
                yield Problem(f"{inner}.{each.path}", each.message, each.remedy)
        if topology := well_formed(group.get("topology")):
            yield from template_problems(here, topology, _labels_of(template))


def pool_problems(raw: Mapping[str, object]) -> Found:
    """Pools whose nodes are miscounted, have too long names, or have the names of another pool's."""
    names, places, seen = [], [], set()
    for index, group in items(raw, "nodeGroups"):
        topology = well_formed(group.get("topology"))
        for number, placement in items(group, "placement"):
            parts = text(group, "name"), text(placement, "availabilityZone")
            where: Where = ("nodeGroups", index, "placement", number)
            # The models report malformed names, and repeated ones are reported as duplicates.
            if not all(map(is_dns_subdomain, parts)) or parts in seen:
                continue
            seen.add(parts)
            names.append(pool_name(*parts))
            places.append(where)
            named = placement.get("nodes")
            yield from count_problems((*where, "replicas"), named, placement.get("replicas"))
            # A pool's name is part of its nodes' names only if the nodes do not have their own.
            replicas = 0 if named else count(placement.get("replicas"))
            yield from length_problems(where, names[-1], replicas, "write a shorter group or zone name")
            if topology:
                yield from placement_problems(where, topology, names[-1], count(placement.get("replicas")))
    for one, other in collisions(names):
        node, place = node_name(names[other], 0), path_text(places[one])
        message = f"makes the same node names as {place}, such as {node}"
        yield problem(places[other], message, "rename one of the two groups or zones")


def node_name_problems(raw: Mapping[str, object]) -> Found:
    """Nodes with the same name as another named node, or as a node of a pool without named nodes."""
    counted: dict[str, int] = {}
    first: dict[str, str] = {}
    named: list[tuple[Where, str]] = []
    for index, group in items(raw, "nodeGroups"):
        for number, placement in items(group, "placement"):
            here: Where = ("nodeGroups", index, "placement", number)
            nodes = items(placement, "nodes")
            named += [((*here, "nodes", at, "name"), text(node, "name")) for at, node in nodes]
            if not nodes:
                pool = pool_name(text(group, "name"), text(placement, "availabilityZone"))
                counted[pool] = count(placement.get("replicas"))
    for place, name in named:
        where, (pool, _, last) = path_text(place[:-2]), name.rpartition("-")
        if first.setdefault(name, where) != where:
            yield problem(place, f"{shown(name)} is already a node of {first[name]}", "write another name")
        elif pool in counted and last.isdecimal() and str(int(last)) == last and int(last) < counted[pool]:
            yield problem(place, f"{shown(name)} is what the pool {pool} calls a node", "write another name")


def _labels_of(template: object) -> object:
    metadata = template.get("metadata") if isinstance(template, Mapping) else None
    return metadata.get("labels") if isinstance(metadata, Mapping) else None
