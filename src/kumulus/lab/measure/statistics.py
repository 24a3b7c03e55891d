"""Spreads of durations: smallest, mean, percentiles, largest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kumulus.lab.file.measures import PERCENTILES


def spread(values: Iterable[float]) -> dict[str, float]:
    """Smallest, mean, percentiles and largest, by the names of their measures; empty of nothing."""
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
    """The smallest value that at least so many per cent of the values do not exceed (nearest rank).

    Args:
        ordered: at least one value, rising.
        percent: above 0, at most 100.
    """
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def most_in(times: Sequence[float], seconds: float) -> int:
    """The most of the times, which rise, that lie within any interval of that length."""
    most = first = 0
    for index, time in enumerate(times):
        while times[first] <= time - seconds:
            first += 1
        most = max(most, index - first + 1)
    return most
