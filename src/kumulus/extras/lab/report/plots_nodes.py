"""Nodes by instance type over time, for runs in which nodes come and go. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_NODES = "nodes "
_OTHERS = "others"


def vary(series: Mapping[str, Sequence[float]]) -> bool:
    """Whether nodes of any type come or go."""
    return any(len(set(values)) > 1 for name, values in series.items() if name.startswith(_NODES))


def by_type(series: Mapping[str, Sequence[float]], most: int) -> dict[str, list[float]]:
    """How many nodes there are of each type, the most frequent types first, and the rest as one.

    Args:
        series: samples by column.
        most: the most types, including the rest.
    """
    found = {name.removeprefix(_NODES): list(values) for name, values in series.items() if name.startswith(_NODES)}
    there = sorted((name for name, values in found.items() if any(values)), key=lambda name: (-sum(found[name]), name))
    if len(there) <= most:
        return {name: found[name] for name in there}
    rest = [sum(counts) for counts in zip(*(found[name] for name in there[most - 1 :]), strict=True)]
    return {**{name: found[name] for name in there[: most - 1]}, _OTHERS: rest}
