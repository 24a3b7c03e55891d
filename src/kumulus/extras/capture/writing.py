"""Writes the files of a capture: stack.yaml, workload.yaml and left-out.md, each atomically."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent
from typing import Any, TextIO

from kumulus.extras.capture.cel import CannotRename
from kumulus.extras.capture.devices import CLAIM_KINDS, DEVICE_KINDS, gates
from kumulus.extras.capture.fields import OBJECTS, UNSEEN
from kumulus.extras.capture.grammar import renamed
from kumulus.extras.capture.groups import node_name, on_nodes, stack
from kumulus.extras.capture.kinds import KINDS, kept_as
from kumulus.extras.capture.reading import form_of
from kumulus.extras.capture.spool import Spool
from kumulus.extras.capture.words import Words
from kumulus.extras.capture.workload import shapes
from kumulus.extras.schedulers.native.objects import GROUP as SCHEDULING
from kumulus.host import files
from kumulus.kube import safe_yaml

STACK, WORKLOAD, LEFT_OUT = "stack.yaml", "workload.yaml", "left-out.md"
_WIDTH = 120
_flow = json.dumps
_BEGINS = {
    STACK: (
        "# The nodes of a captured cluster, made by `kumulus capture`; their pods are in workload.yaml next to it.\n"
    ),
    WORKLOAD: "# The pods of a captured cluster, and what they refer to; `kumulus clone` puts them into a stack.\n",
    LEFT_OUT: "# What this capture leaves out, and why\n",
}


@dataclass
class WrittenCapture:
    """The contents of a capture."""

    counts: Counter[str] = field(default_factory=Counter)
    groups: int = 0
    shapes: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    """Why kinds could not be read, by kind."""
    unnamed: list[str] = field(default_factory=list)
    """Objects left out because their rules could not be renamed, as "kind name", with the renamed name."""
    gates: dict[str, bool] = field(default_factory=dict)
    """Feature gates that a clone needs."""


def first_lines(directory: Path) -> dict[Path, str]:
    """The files of a capture, with the first line of each."""
    return {directory / name: line for name, line in _BEGINS.items()}


def write(spool: Spool, directory: Path, words: Words | None) -> WrittenCapture:
    """Write the files of what has been read; ``words`` replace the names, None keeps them."""
    done = WrittenCapture(missing={kind.kept_as: note for kind in KINDS if (note := spool.note(kind.kept_as))})
    mode = 0o600 if words is None else 0o644
    nodes = list(_items(spool, "Node", words))
    done.counts["Node"] = len(nodes)
    done.gates = gates(item for kind in (*DEVICE_KINDS, *CLAIM_KINDS) for item in _items(spool, kind, words, []))
    of_groups = (item for kind in ("Workload", "PodGroup") for item in _items(spool, kind, words))
    groups = any(item["apiVersion"].startswith(SCHEDULING) for item in of_groups)
    kwok = {**({"workloads": "native"} if groups else {}), **({"featureGates": done.gates} if done.gates else {})}
    cluster = {**({"kwok": kwok} if kwok else {}), **stack(nodes)}
    done.groups = len(cluster["nodeGroups"])
    with files.replacing_text(directory / STACK, mode) as file:
        _stack(file, cluster)
    with files.replacing_text(directory / WORKLOAD, mode) as file:
        _workload(file, spool, words, done)
    with files.replacing_text(directory / LEFT_OUT, mode) as file:
        file.write(_left_out(done, nodes))
    return done


def _items(spool: Spool, kind: str, words: Words | None, unnamed: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """A kind's objects, renamed; those that cannot be renamed are listed in `unnamed`."""
    form = form_of(kind)
    for item in (each for kept in kept_as(kind) for each in spool.items(kept)):
        if words is None:
            yield item
            continue
        typed: dict[str, Any] = {key: item[key] for key in ("apiVersion", "kind") if key in item}
        try:
            yield {**typed, **renamed(form, {key: each for key, each in item.items() if key not in typed}, words)}
        except CannotRename:
            if unnamed is None:
                raise
            unnamed.append(f"{kind} {words.name(item['metadata']['name'])}")


def _block(value: object) -> str:
    return safe_yaml.written(value, width=_WIDTH)


def _stack(file: TextIO, cluster: Mapping[str, Any]) -> None:
    """Write the stack file: groups in block style, each node on one line."""
    file.write(_BEGINS[STACK])
    file.write("config:\n  kumulus:cluster:\n")
    if cluster.get("kwok"):
        file.write("    # Without these, the API server would not keep all that the objects in workload.yaml say.\n")
        file.write(f"    kwok: {_flow(cluster['kwok'])}\n")
    file.write("    nodeGroups:\n")
    for group in cluster["nodeGroups"]:
        placement = group["placement"][0]
        file.write(f"      - name: {_flow(group['name'])}\n        placement:\n")
        file.write(f"          - availabilityZone: {_flow(placement['availabilityZone'])}\n")
        file.write(f"            replicas: {placement['replicas']}\n            nodes:\n")
        for node in placement["nodes"]:
            file.write(f"              - {_flow(node)}\n")
        file.write("        nodeTemplate:\n")
        file.write(indent(_block(group["nodeTemplate"]), " " * 10))
    if cluster.get("faults"):
        file.write("    faults:\n")
        for fault in cluster["faults"]:
            file.write(f"      - {_flow(fault)}\n")


def _workload(file: TextIO, spool: Spool, words: Words | None, done: WrittenCapture) -> None:
    file.write(_BEGINS[WORKLOAD])
    for kind in OBJECTS:
        listed = list(_items(spool, kind, words, done.unnamed))
        done.counts[kind] = len(listed)
        for item in sorted(listed, key=lambda each: (each["metadata"].get("namespace", ""), each["metadata"]["name"])):
            file.write(f"---\n{_flow(on_nodes(item) if kind in ('ResourceSlice', 'ResourceClaim') else item)}\n")
    found = shapes(_items(spool, "Pod", words))
    done.shapes = len(found)
    for shape in found:
        members = shape.pop("pods")
        done.counts["Pod"] += len(members)
        file.write(f"---\n{_block(shape)}pods:\n")
        for pod in members:
            file.write(f"- {_flow(pod)}\n")


def _left_out(done: WrittenCapture, nodes: list[dict[str, Any]]) -> str:
    lines = [_BEGINS[LEFT_OUT]]
    if done.missing:
        lines += ["Could not be read:", "", *(f"- {kind}: {why}" for kind, why in sorted(done.missing.items())), ""]
    lines += ["Not kept of what was read:", "", *(f"- {what}: {why}" for what, why in UNSEEN.items())]
    lines += [
        f"- {each}: in its rule, names cannot be separated from what is done with them" for each in sorted(done.unnamed)
    ]
    if done.gates:
        gates_named = ", ".join(done.gates)
        lines += ["", f"A clone needs Kubernetes with these feature gates, which stack.yaml turns on: {gates_named}"]
    long = [name for node in nodes if node_name(name := str(node["metadata"]["name"])) != name]
    if long:
        lines += ["", f"Nodes whose names are longer than a label's value, and shortened: {len(long):,}"]
    if any(node.get("ill") for node in nodes):
        lines += ["", "Nodes that were not well are faults of the stack: what they evict, they evict in a clone too."]
    lines += ["", "Kept:", ""]
    lines += [f"- {kind}: {count:,}" for kind, count in done.counts.items() if count]
    return "\n".join(lines) + "\n"
