"""How much two runs differ, by the repetitions of each, and limits on it: `timeToSchedule.p99:+10%`."""

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.amount import NOT_MEASURED, Margin, amount, examples, towards_worse
from kumulus.extras.lab.file.measures import UNITS, instead
from kumulus.extras.lab.report.change import MeasureChange, Verdict, as_part, by_factor, judged
from kumulus.extras.lab.report.checks import MeasureCheck
from kumulus.extras.lab.report.model import Report

_WRITTEN = re.compile(r"([\w.]+):([+-])(.+)")
_MORE = {"+": "more", "-": "less"}
LEVEL = 0.05
"""How often an interval may miss the difference, all measures that are compared together."""
# Of more repetitions, the number of larger pairs is spread normally.
_MANY = 20


@dataclass(frozen=True)
class Limit:
    """How much more, or less, of a measure there may be."""

    measure: str
    sign: str
    """`+` for more, `-` for less."""
    most: Margin

    @property
    def name(self) -> str:
        """In words, the same every time."""
        return f"{self.measure} at most {self.most.written} {_MORE[self.sign]}"

    def check(self, change: MeasureChange | None, cut_off: str, missing: str) -> MeasureCheck:
        """Whether it is kept: by the medians of the repetitions.

        Args:
            change: of the measure; None where neither run has it.
            cut_off: which of the runs did not come to its end; empty for neither.
            missing: how many repetitions do not have the measure; empty for none.
        """
        if cut_off:
            return MeasureCheck(self.name, False, f"incomplete: {cut_off} did not come to its end")
        if change is None or change.before is None or change.after is None:
            return MeasureCheck(self.name, False, f"{NOT_MEASURED}{missing}")
        one, two = change.values
        found = f"{one} → {two}, {change.found}"
        if self.sign == "+":
            return MeasureCheck(self.name, change.after <= self.most.above(change.before), found)
        return MeasureCheck(self.name, change.after >= self.most.below(change.before), found)


def limits(written: Sequence[str]) -> list[Limit]:
    """The limits of the command line; what is wrong with several of them is said at once."""
    found, wrong = [], []
    for each in written:
        try:
            found.append(limit(each))
        except LabError as error:
            wrong.append(str(error))
    if wrong:
        raise LabError("\n".join(wrong))
    return found


def limit(written: str) -> Limit:
    """A limit of the command line."""
    found = _WRITTEN.fullmatch(written)
    if not found:
        raise LabError(f"--fail-if {written} is no limit\n  Write MEASURE:+10%, MEASURE:-1pt, or MEASURE:+2s")
    measure, sign, most = found.groups()
    if measure not in UNITS:
        raise LabError(f"--fail-if {written}: {measure} is not measured\n  Write {instead(measure)}")
    worse = towards_worse(measure)
    if worse and worse != sign:
        raise LabError(
            f"--fail-if {written} would fail where it is better: {_MORE[sign]} of {measure} is\n"
            f"  Write {measure}:{worse}{most}"
        )
    if (parsed := amount(measure, most)) is None:
        remedy = " or ".join(sign + each for each in examples(measure))
        raise LabError(f"--fail-if {written}: {most} is no amount of it\n  Write {remedy}")
    return Limit(measure, sign, parsed)


def checks(limits: Sequence[Limit], reports: Sequence[Report], changes: Sequence[MeasureChange]) -> list[MeasureCheck]:
    """Whether each limit is kept."""
    cut_off = ", ".join(each.metadata.called for each in reports if each.results.status == "partial")
    known = {each.measure: each for each in changes}
    return [each.check(known.get(each.measure), cut_off, _missing(reports, each.measure)) for each in limits]


def _missing(reports: Sequence[Report], measure: str) -> str:
    found = [
        f" in {counted} of {len(each.results.tests)} repetitions of {each.metadata.run_id}"
        for each in reports
        if (counted := sum(measure not in test.details.measures for test in each.results.tests))
    ]
    return ",".join(found)


def changes(reports: tuple[Report, Report], measures: Sequence[str]) -> list[MeasureChange]:
    """What became of measures from one run to another; those that neither has as a whole are left out.

    Args:
        measures: which; they share the level.
    """
    values = {name: (_values(reports[0], name), _values(reports[1], name)) for name in measures}
    return [_change(name, *each, LEVEL / len(measures)) for name, each in values.items() if any(each)]


def _values(report: Report, measure: str) -> list[float]:
    # Of a run that was cut off, or of which some repetitions lack it, the others may be the better half.
    found = [test.details.measures for test in report.results.tests if report.results.status != "partial"]
    return [each[measure] for each in found] if all(measure in each for each in found) else []


def _change(measure: str, before: Sequence[float], after: Sequence[float], level: float) -> MeasureChange:
    one, two = (statistics.median(each) if each else None for each in (before, after))
    note = f"{len(before)} and {len(after)} repetitions"
    if not before or not after:
        return MeasureChange(measure, one, two, False, None, -math.inf, math.inf, "not decided", note)
    factor = by_factor(measure, [*before, *after])
    apart = sorted(math.log(b / a) if factor else b - a for a in before for b in after)
    aside = _aside(len(before), len(after), level)
    low, high = (apart[aside - 1], apart[-aside]) if aside else (-math.inf, math.inf)
    if not aside:
        note += f"; it takes {_needed(level)} of each"
    verdict: Verdict = "alike" if low == high == 0 else judged(measure, (low > 0) - (high < 0))
    middle, low, high = (as_part(each) if factor else each for each in (statistics.median(apart), low, high))
    return MeasureChange(measure, one, two, factor, middle, low, high, verdict, note)


def _aside(one: int, two: int, level: float) -> int:
    """How many of all differences are outside of their interval at either end, by Mann and Whitney's test (1947)."""
    if min(one, two) > _MANY:
        usual = math.sqrt(one * two * (one + two + 1) / 12)
        return int(one * two / 2 + NormalDist().inv_cdf(level / 2) * usual)
    most, ways, aside = level / 2 * math.comb(one + two, one), 0, 0
    while (ways := ways + _ways(one, two, aside)) <= most:
        aside += 1
    return aside


def _needed(level: float) -> int:
    count = 2
    while not _aside(count, count, level):
        count += 1
    return count


@cache
def _ways(one: int, two: int, larger: int) -> int:
    """In how many orders of two groups so many pairs have the larger one in the second."""
    if larger < 0:
        return 0
    if not one or not two:
        return int(larger == 0)
    return _ways(one - 1, two, larger - two) + _ways(one, two - 1, larger)
