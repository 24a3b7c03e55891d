"""The names of a stack's nodes in a separate file, since the stack file has no room for those of a large cluster.

Pulumi passes a program its configuration in one environment variable, which Linux limits to 128 KiB: the names and
labels of several hundred nodes. The file is JSON: a mapping of groups to zones to lists, in the form of
`placement[].nodes`.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kumulus.model.errors import Problem, SpecError, shown
from kumulus.stackfile.location import read_text

MOST = 64 << 20
"""The most bytes of such a file: a million nodes."""
_MOST_OF_A_VARIABLE = 131_072
"""The most bytes of an environment variable in Linux (MAX_ARG_STRLEN), including its name and terminator."""
# From this length on, the nodes get a file of their own; the rest is for what Pulumi and the user add.
_ROOM = 100_000
_REMEDY = "write a mapping of groups to zones to lists of nodes, such as {web: {us-east1-b: [{name: node-a}]}}"


def with_nodes(cluster: object, location: str, base: Path, source: str) -> object:
    """A cluster's mapping with the nodes of its nodes file inserted.

    Args:
        cluster: the mapping; may be malformed, which its model reports.
        location: the file's path, or its URL.
    """
    name, text = read_text(location, base, "nodes", source, most=MOST)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError([Problem("", f"is no JSON: {error}", _REMEDY)], name) from None
    lists = _lists(found, name)
    if not isinstance(cluster, Mapping):
        return cluster
    whole = copy.deepcopy(dict(cluster))
    problems = []
    for group, zone, placement in _placements(whole):
        if (group, zone) not in lists:
            continue
        nodes = lists.pop((group, zone))
        if placement.get("nodes"):
            message = f"has nodes of {shown(group)} in {shown(zone)}, and so has the stack's file"
            problems.append(Problem(group, message, "leave one of the two out"))
        else:
            placement["nodes"] = nodes
    # What is left has no placement.
    problems += [
        Problem(group, f"has nodes of {shown(group)} in {shown(zone)}, where the cluster has none", "take them out")
        for group, zone in lists
    ]
    if problems:
        raise SpecError(problems, name)
    return whole


def without_nodes(cluster: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, list[Any]]]]:
    """A cluster's mapping without its nodes' names, and the names in the form of a nodes file."""
    left: dict[str, Any] = copy.deepcopy(dict(cluster))
    found: dict[str, dict[str, list[Any]]] = {}
    for group, zone, placement in _placements(left):
        if nodes := placement.pop("nodes", None):
            found.setdefault(group, {})[zone] = nodes
    return left, found


def needs_nodes_file(config: Mapping[str, object]) -> bool:
    """Whether a configuration needs a separate file for its nodes."""
    return _length(config) > _ROOM


def is_refused(config: Mapping[str, object]) -> bool:
    """Whether a configuration is too long for Pulumi to pass to its program."""
    return _length(config) > _MOST_OF_A_VARIABLE


def _length(config: Mapping[str, object]) -> int:
    """The length of Pulumi's JSON of it: a mapping of keys to strings, which are JSON for values of other types."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    return len(json.dumps(texts).encode())


def written(lists: Mapping[str, Mapping[str, list[Any]]]) -> str:
    """A nodes file's text, with one node per line."""
    groups = []
    for group, zones in lists.items():
        placed = []
        for zone, nodes in zones.items():
            lines = ",\n".join(f"      {json.dumps(node, ensure_ascii=False)}" for node in nodes)
            placed.append(f"    {json.dumps(zone)}: [\n{lines}\n    ]")
        groups.append(f"  {json.dumps(group)}: {{\n" + ",\n".join(placed) + "\n  }")
    return "{\n" + ",\n".join(groups) + "\n}\n"


def _lists(found: object, name: str) -> dict[tuple[str, str], Any]:
    groups: Mapping[str, Any] = found if isinstance(found, Mapping) else {"": found}
    problems = [
        Problem(at, f"is {shown(zones)}", _REMEDY) for at, zones in groups.items() if not isinstance(zones, Mapping)
    ]
    if problems:
        raise SpecError(problems, name)
    return {(group, zone): nodes for group, zones in groups.items() for zone, nodes in zones.items()}


def _placements(cluster: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each well-formed placement, after its group's name and its zone; the model reports the others."""
    groups = cluster.get("nodeGroups")
    for group in groups if isinstance(groups, list) else ():
        places = group.get("placement") if isinstance(group, dict) else None
        for placement in places if isinstance(places, list) else ():
            name, zone = group.get("name"), placement.get("availabilityZone") if isinstance(placement, dict) else None
            if isinstance(name, str) and isinstance(zone, str):
                yield name, zone, placement
