"""Remedies for a fault's target that matches no node: what could be written instead. Pure functions."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kumulus.model.names import nearest
from kumulus.model.pools import Pool
from kumulus.model.topology import place_name
from kumulus.stackfile.faults import Target
from kumulus.stackfile.shapes import any_of

# Of longer lists, only the first and the last name are shown.
_LISTED = 6


def place_remedy(level_name: str, place: str, pools: Iterable[Pool]) -> str | None:
    """What to write instead of a place of a target that has no node in these pools; None when it has one."""
    short: list[str] = []
    full: list[str] = []
    for pool in pools:
        level = pool.topology.level(level_name) if pool.topology else None
        if level is not None:
            there = [level.place(index * level.nodes) for index in range(level.count(pool.replicas))]
            short += [each for each in there if each not in short]
            full += [place_name(pool.name, each) for each in there]
    if place in short or place in full:
        return None
    # A target that names a pool means one of that pool's places.
    of_pool = [each for each in full if place.rpartition("-")[0] == each.rpartition("-")[0]]
    return f"write {_alternatives(of_pool or short)}" if short else "there are none, as the groups have no nodes"


def narrowed(target: Target, pools: Sequence[Pool], matched: Callable[[Target], int]) -> str:
    """How many nodes each part of a target matches by itself, when no node matches all parts.

    Args:
        matched: the number of nodes that a target matches.
    """
    if not any(pool.replicas for pool in pools):
        return "there are none"
    keys = [key for key in ("nodeGroup", "zone", "region", *target.places()) if getattr(target, key) is not None]
    parts: dict[str, dict[str, Any]] = {f"{key} {getattr(target, key)}": {key: getattr(target, key)} for key in keys}
    parts |= {f"the label {key}={value}": {"labels": {key: value}} for key, value in target.labels.items()}
    if target.names:
        parts["names"] = {"names": target.names}
    found = [f"{text} matches {matched(Target.model_construct(**part))}" for text, part in parts.items()]
    return "no node fulfils all of it" + (f" ({', '.join(found)})" if len(found) > 1 else "")


def label_remedy(target: Target, pools: Sequence[Pool]) -> str | None:
    """The values of a label, if a target has a value that no node has; None when that is not the problem."""
    for key, value in target.labels.items():
        values = sorted({pool.labels[key] for pool in pools if key in pool.labels})
        if values and value not in values:
            return f"{key} is {_alternatives(nearest(value, values) or values)}"
    return None


def _alternatives(names: Sequence[str]) -> str:
    if len(names) > _LISTED:
        return f"{names[0]} to {names[-1]}"
    return any_of(names)
