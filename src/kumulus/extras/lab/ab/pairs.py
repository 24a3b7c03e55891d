"""The pairs of runs that there are, and what they say of each measure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kumulus.extras.lab.ab.deciding import LEVEL, decision, excludes
from kumulus.extras.lab.report.change import Change, Verdict, as_part, by_factor, judged
from kumulus.model.words import counted

# An interval that ends here is as good as one of nothing: differences add up to less than this.
_NOTHING = 1e-9

Measures = Mapping[str, float]


@dataclass
class Pairs:
    """Runs of A and B, two by two.

    Args:
        measures: what is compared; all of them share the chance of a wrong verdict.
        margin: a difference below this part of A's figure is none that matters.
        runs: the measures of A and of B of each pair.
    """

    measures: Sequence[str]
    margin: float
    runs: list[tuple[Measures, Measures]] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """Of all measures: worse if one of them is."""
        found = {self._verdict(measure) for measure in self.measures}
        return next(each for each in ("worse", "not decided", "better", "alike") if each in found)

    def changes(self) -> list[Change]:
        """What is known of each measure."""
        return [self._change(measure) for measure in self.measures]

    def differences(self, measure: str) -> list[float]:
        """The difference of each pair, as of :class:`Change`, in the order in which they ran."""
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

    def _change(self, measure: str) -> Change:
        values, (apart, factor) = self._values(measure), self._apart(measure)
        lost = len(self.runs) - len(values)
        note = f"after {counted(len(values), 'pair')}" + (f", and {lost} in which it was not measured" if lost else "")
        if not values:
            return Change(measure, None, None, False, None, -math.inf, math.inf, "not decided", note)
        if factor and len(apart) > 1:
            # Each difference is of two runs.
            noise = math.expm1(statistics.stdev(apart) / math.sqrt(2))
            note += f", of runs that differ by {noise:.0%}".replace("%", " %")
        found = decision(apart, LEVEL / len(self.measures))
        one, two = (statistics.median(each) for each in zip(*values, strict=True))
        middle, low, high = (as_part(each) if factor else each for each in (found.difference, found.low, found.high))
        return Change(measure, one, two, factor, middle, low, high, self._verdict(measure), note)
