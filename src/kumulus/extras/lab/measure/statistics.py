"""Spreads of durations: smallest, mean, percentiles, largest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kumulus.extras.lab.file.measures import PERCENTILES


def spread(values: Iterable[float]) -> dict[str, float]:
    """Smallest, mean, percentiles and largest, by the names of their measures; empty without values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    return {
        "min": ordered[0],
        "mean": math.fsum(ordered) / len(ordered),
        **{f"p{percent}": percentile(ordered, percent) for percent in PERCENTILES},
        "max": ordered[-1],
    }


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that at least this percentage of the values does not exceed (nearest rank).

    Args:
        ordered: at least one value, in ascending order.
        percent: above 0, at most 100.
    """
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def most_in_a_second(times: Sequence[float]) -> int:
    """The largest number of the times, in seconds and in ascending order, that lie within any second."""
    most = first = 0
    for index, time in enumerate(times):
        while times[first] <= time - 1.0:
            first += 1
        most = max(most, index - first + 1)
    return most
