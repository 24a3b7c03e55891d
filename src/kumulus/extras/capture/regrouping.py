"""Node groups of two captures of one cluster: keeps the names of groups, and finds nodes that have changed groups.

A capture names groups by their nodes' labels, and adds numbers where several would have the same name. A single node
that changes may thus rename all of them. Pure functions.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

# In the layout of `writing`: parsing a large file as YAML takes seconds.
_GROUP = re.compile(r'^      - name: "(?P<name>[^"]+)"$', re.MULTILINE)
_LINE = re.compile(r'^      - name: "(?P<group>[^"]+)"$|^ +- \{"name": "(?P<node>[^"]+)"', re.MULTILINE)


def nodes(stack_file: str) -> dict[str, str]:
    """Each node of a captured stack file, with its group."""
    found, group = {}, ""
    for line in _LINE.finditer(stack_file):
        if line["group"]:
            group = line["group"]
        else:
            found[line["node"]] = group
    return found


def named_as_before(now: str, before: str) -> str:
    """A stack file in which each group has the name of the earlier one with which it shares most nodes.

    Args:
        now: the stack file of the newer capture.
        before: that of the earlier one.
    """
    earlier = nodes(before)
    shared = Counter((group, earlier[node]) for node, group in nodes(now).items() if node in earlier)
    names: dict[str, str] = {}
    for (group, name), _ in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        if group not in names and name not in names.values():
            names[group] = name
    taken = {*names.values(), *earlier.values()}
    for group in _GROUP.findall(now):
        if group not in names:
            names[group] = _free(group, taken)
            taken.add(names[group])
    return _GROUP.sub(lambda line: f'      - name: "{names[line["name"]]}"', now)


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def moved(now: str, before: str) -> set[str]:
    """The nodes that are in another group than before."""
    earlier = nodes(before)
    return {node for node, group in nodes(now).items() if earlier.get(node, group) != group}


def without(config: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """The configuration of a captured stack without some of its nodes.

    Args:
        config: the mapping `config` of its file.
        names: of the nodes.
    """
    left = copy.deepcopy(dict(config))
    cluster = left["kumulus:cluster"]
    for group in cluster["nodeGroups"]:
        for placement in group["placement"]:
            placement["nodes"] = [node for node in placement["nodes"] if node["name"] not in names]
            placement["replicas"] = len(placement["nodes"])
    cluster["nodeGroups"] = [each for each in cluster["nodeGroups"] if each["placement"][0]["replicas"]]
    for fault in cluster.get("faults", ()):
        fault["target"]["names"] = [name for name in fault["target"]["names"] if name not in names]
    if faults := [each for each in cluster.get("faults", ()) if each["target"]["names"]]:
        cluster["faults"] = faults
    else:
        cluster.pop("faults", None)
    return left
