"""Checks of single values of a fault: kinds, shares, names of nodes, changes of resources, conditions."""

from collections.abc import Mapping
from typing import Any

from kumulus.model.checks import mapping_problems, of_mapping, problem, quantity_problems, resource_name_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fault_effects import KUBELETS
from kumulus.model.names import instead, is_dns_subdomain, label_key_mistake, nearest
from kumulus.model.node_sets import ordinals
from kumulus.model.quantity import canonical
from kumulus.nodes.catalog.faults import names


def kind_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is an entry of the catalog; others are reported with the entries that may be meant."""
    if isinstance(raw, str) and raw in names():
        return []
    near = nearest(raw, names(), likeness=0.5) if isinstance(raw, str) else []
    other = "write one that `kumulus fault kinds` lists, or leave it out and say what it does"
    remedy = f"write {' or '.join(near)}" if near else other
    return [problem(where, f"{shown(raw)} is not in the catalog", remedy)]


def entry_of(kind: str) -> str:
    """The name of a kind's entry in the catalog, which may have others."""
    return names().get(kind, kind)


def percent_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a percentage: more than 0, at most 100; a text may end in a percent sign."""
    remedy = "write a number from 0.01 to 100"
    number = percent(raw)
    if number is None:
        return [problem(where, f"is {shown(raw)}", remedy)]
    if number > 100:
        return [problem(where, f"is {shown(raw)}, more than 100", "write 100 for all of them")]
    return [] if number > 0 else [problem(where, f"is {shown(raw)}, which is nothing", remedy)]


def percent(raw: object) -> float | None:
    """A percentage as a number; None for anything else."""
    if isinstance(raw, str):
        try:
            return float(raw.strip().removesuffix("%"))
        except ValueError:
            return None
    return float(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else None


def node_names_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a list of node names, which may end in ranges: `a100-use1-[0-99,105]`."""
    if not isinstance(raw, list | tuple):
        return [problem(where, f"is {shown(raw)}", "write a list, such as [a100-use1-0, 'a100-use1-[4-7]']")]
    found = []
    for index, name in enumerate(raw):
        # A node that its pool names may have any name.
        if isinstance(name, str) and is_dns_subdomain(name):
            continue
        try:
            split_node_name(name if isinstance(name, str) else "")
        except ValueError:
            remedy = "write a node's name, a100-use1-3, or several as 'a100-use1-[0-99,105]'"
            found.append(problem((*where, index), f"is {shown(name)}", remedy))
    return found


def split_node_name(name: str) -> tuple[str, frozenset[int]]:
    """The pool and the ordinals of a node's name, or of several names, `a100-use1-[0-99,105]`.

    Raises:
        ValueError: it is neither.
    """
    pool, dash, last = name.partition("-[") if name.endswith("]") else name.rpartition("-")
    if not pool or not dash:
        raise ValueError(f"{name!r} is no node of a pool")
    return pool, ordinals(last.removesuffix("]"))


@of_mapping
def change_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of a mapping from resources to what is left of them, "7", or what is lost of them, "-1"."""
    found = list(resource_name_problems(where, raw))
    for name, written in raw.items():
        example = '"-1", or "7" for what is left'
        found += quantity_problems((*where, name), _without_sign(written), whole="/" in name, example=example)
    return found


def _without_sign(written: object) -> object:
    if isinstance(written, str):
        return written.removeprefix("-")
    if isinstance(written, int | float) and not isinstance(written, bool):
        return abs(written)
    return written


def changes(raw: Mapping[str, str | int | float]) -> dict[str, str]:
    """Changes of resources, with quantities in canonical form."""
    return {name: canonical(written) for name, written in raw.items()}


@of_mapping
def node_condition_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of a mapping from condition types to `{status, reason, message}`, all of them optional."""
    found: list[Problem] = []
    for kind, each in raw.items():
        here = (*where, kind)
        if mistake := label_key_mistake(kind):
            found.append(problem(here, f"the type {mistake.message}", mistake.remedy))
        if wrong := mapping_problems(here, each):
            found += wrong
            continue
        for key, value in each.items():
            if key not in ("status", "reason", "message"):
                found.append(problem((*here, key), "is not a known key", "write status, reason or message"))
            elif not isinstance(value, str):
                text = '"True"' if key == "status" else '"a text"'
                found.append(problem((*here, key), f"is {shown(value)}, not a text", f"write it in quotes: {text}"))
            elif key == "status" and value not in ("True", "False", "Unknown"):
                found.append(problem((*here, key), f"is {shown(value)}", 'write "True", "False" or "Unknown"'))
    return found


def kubelet_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a known state of a kubelet."""
    if isinstance(raw, str) and raw and raw in KUBELETS:
        return []
    return [problem(where, f"is {shown(raw)}", instead(raw, KUBELETS[1:], most=3))]
