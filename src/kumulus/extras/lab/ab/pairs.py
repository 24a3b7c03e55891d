"""The pairs of runs that there are, and what they say of each measure.

Each pair is a run of A and one of B in drawn order. Without a difference, either is the larger one equally often,
however figures are spread and whatever else happens on the machine. So whoever bets on one of the two, more on pairs
that are further apart, does not get rich: the stake grows to 1/p only with probability p, at any time (Ville, 1939;
Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024). The interval has all
differences on which nobody would have got rich.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kumulus.extras.lab.report.change import MeasureChange, Verdict, as_part, by_factor, judged
from kumulus.model.words import counted

# An interval that ends here is as good as one of nothing: differences add up to less than this.
_NOTHING = 1e-9

Measures = Mapping[str, float]
LEVEL = 0.002
"""How often a difference is decided where there is none, at most: less than the 1 % that is promised, so that a count
among 500 is below it, too."""
_STAKES = np.array([[0.5], [1.0], [2.0]])
_STEPS = 60
_Numbers = npt.NDArray[np.float64]


@dataclass
class Pairs:
    """Runs of A and B, two by two."""

    measures: Sequence[str]
    """What is compared; all of them share the chance of a wrong verdict."""
    margin: float
    """A difference below this part of A's figure is none that matters."""
    runs: list[tuple[Measures, Measures]] = field(default_factory=list)
    """The measures of A and of B of each pair."""

    @property
    def verdict(self) -> Verdict:
        """Of all measures: worse if one of them is."""
        found = {self._verdict(measure) for measure in self.measures}
        return next(each for each in ("worse", "not decided", "better", "alike") if each in found)

    def changes(self) -> list[MeasureChange]:
        """What is known of each measure."""
        return [self._change(measure) for measure in self.measures]

    def differences(self, measure: str) -> list[float]:
        """The difference of each pair, as of :class:`MeasureChange`, in the order in which they ran."""
        apart, factor = self._apart(measure)
        return [as_part(each) if factor else each for each in apart]

    def _values(self, measure: str) -> list[tuple[float, float]]:
        return [(a[measure], b[measure]) for a, b in self.runs if measure in a and measure in b]

    def _apart(self, measure: str) -> tuple[list[float], bool]:
        """The differences of a measure, those of logarithms where it is one that grows by a factor."""
        values = self._values(measure)
        if values and by_factor(measure, [each for pair in values for each in pair]):
            return [math.log(b / a) for a, b in values], True
        return [b - a for a, b in values], False

    def _verdict(self, measure: str) -> Verdict:
        apart, factor = self._apart(measure)
        if not apart:
            return "not decided"
        least, most = math.log1p(-self.margin), math.log1p(self.margin)
        if not factor:
            most = max(self.margin * abs(statistics.median(a for a, _ in self._values(measure))), _NOTHING)
            least = -most
        level = LEVEL / len(self.measures)
        if excludes(apart, least, level) > 0 > excludes(apart, most, level):
            return "alike"
        return judged(measure, excludes(apart, 0.0, level))

    def _change(self, measure: str) -> MeasureChange:
        values, (apart, factor) = self._values(measure), self._apart(measure)
        lost = len(self.runs) - len(values)
        note = f"after {counted(len(values), 'pair')}" + (f", and {lost} in which it was not measured" if lost else "")
        if not values:
            return MeasureChange(measure, None, None, False, None, -math.inf, math.inf, "not decided", note)
        if factor and len(apart) > 1:
            # Each difference is of two runs.
            noise = math.expm1(statistics.stdev(apart) / math.sqrt(2))
            note += f", of runs that differ by {noise:.0%}".replace("%", " %")
        found = decision(apart, LEVEL / len(self.measures))
        one, two = (statistics.median(each) for each in zip(*values, strict=True))
        middle, low, high = (as_part(each) if factor else each for each in found)
        return MeasureChange(measure, one, two, factor, middle, low, high, self._verdict(measure), note)


class DifferenceInterval(NamedTuple):
    """B less A in the middle, and its interval: infinite where there are too few pairs."""

    difference: float
    low: float
    high: float


def decision(apart: Sequence[float], level: float = LEVEL) -> DifferenceInterval:
    """What is known.

    Args:
        apart: B less A of each pair, in the order in which they ran; at least one.
        level: how often the interval may miss the difference, all looks at it together.
    """
    values = np.asarray(apart, dtype=np.float64)
    middle = _middle(values)
    return DifferenceInterval(
        middle,
        middle - _end(lambda away: _stake(values, middle - away, 1), values, level),
        middle + _end(lambda away: _stake(values, middle + away, -1), values, level),
    )


def excludes(apart: Sequence[float], difference: float, level: float = LEVEL) -> int:
    """Whether a difference is excluded: 1 if the true one is larger, -1 if it is smaller, 0 if it is not excluded."""
    values = np.asarray(apart, dtype=np.float64)
    for sign in (1, -1):
        if _stake(values, difference, sign) >= 2 / level:
            return sign
    return 0


def _stake(values: _Numbers, centre: float, sign: int) -> float:
    """The most that a stake of 1 has been worth which bets on values above (1) or below (-1) a centre."""
    moved = sign * (values - centre)
    # How far apart pairs usually are, by those until now: what is bet does not depend on the unit.
    usual = np.sqrt(np.cumsum(moved**2) / np.arange(1, len(moved) + 1))
    won = np.tanh(_STAKES * moved / np.where(usual > 0, usual, 1.0))
    with np.errstate(divide="ignore"):
        return float(np.exp(np.cumsum(np.log1p(won), axis=1)).mean(axis=0).max())


def _end(stake: Callable[[float], float], values: _Numbers, level: float) -> float:
    """How far from the middle an interval ends."""
    away = max(float(np.abs(values).max()), 1e-9)
    for _ in range(_STEPS):
        if stake(away) >= 2 / level:
            break
        away *= 2
    else:
        return math.inf
    near, far = 0.0, away
    for _ in range(_STEPS):
        between = (near + far) / 2
        near, far = (near, between) if stake(between) >= 2 / level else (between, far)
    return far


def _middle(values: _Numbers) -> float:
    """The median of the means of all two values (Hodges and Lehmann, 1963)."""
    first, second = np.triu_indices(len(values))
    return float(np.median((values[first] + values[second]) / 2))
