"""Spreads of durations: smallest, mean, percentiles, largest; and what is not known well enough to be a figure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from kumulus.extras.lab.file.measures import PERCENTILES

RESOLUTION = 0.1
"""Seconds by which a time may be off without being said to be."""
_TOLERATED = 0.1


class Between(NamedTuple):
    """A number that is not known, as not all of it was heard: the least and the most that it may be."""

    least: float
    most: float


Measured: TypeAlias = float | Between
"""A measure; its bounds where it is not known."""


def only_known(measures: Mapping[str, Measured]) -> dict[str, float]:
    """The measures that are known."""
    return {name: value for name, value in measures.items() if not isinstance(value, Between)}


def known(value: float, bounds: Between, resolution: float = 0.0) -> Measured:
    """A value, or what bounds it if that leaves more open than a tenth of the value and than the resolution.

    Args:
        value: by what was heard, and when.
        bounds: by what else it may be.
        resolution: in the unit of the value.
    """
    least, most = min(value, bounds.least), max(value, bounds.most)
    return value if most - least <= max(resolution, _TOLERATED * value) else Between(least, most)


def known_time(bounds: Between | None) -> Measured | None:
    """A time by its bounds, in seconds, which are equal if it was heard; None is no time."""
    return None if bounds is None else known(bounds.most, bounds, RESOLUTION)


def rate(number: float, seconds: Measured) -> Measured | None:
    """So many in so many seconds; None where that was no time at all."""
    if isinstance(seconds, Between):
        return Between(number / seconds.most, number / seconds.least if seconds.least else math.inf)
    return number / seconds if seconds else None


@dataclass
class Times:
    """Durations in seconds, or ratios: those that were heard from beginning to end, and bounds of the others."""

    resolution: float = RESOLUTION
    """By how much a part of the spread may be off without being said to be."""
    heard: list[float] = field(default_factory=list)
    unheard: list[Between] = field(default_factory=list)

    def add(self, time: Between | None) -> None:
        """Add one by its bounds, which are equal if it was heard; None is no duration."""
        if time is None:
            return
        if time.least == time.most:
            self.heard.append(time.most)
        else:
            self.unheard.append(time)

    def measures(self, name: str) -> dict[str, Measured]:
        """Their spread as measures of a name, such as `makespan.p50`."""
        return {f"{name}.{part}": value for part, value in self.spread().items()}

    def spread(self) -> dict[str, Measured]:
        """The spread of those that were heard; a part that the others may have changed is given by its bounds."""
        parts: dict[str, Measured] = {}
        heard = spread(self.heard)
        least = spread([*self.heard, *(each.least for each in self.unheard)])
        most = spread([*self.heard, *(each.most for each in self.unheard)])
        for name in most:
            bounds = Between(least[name], most[name])
            parts[name] = known(heard[name], bounds, self.resolution) if heard else bounds
        return parts


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
