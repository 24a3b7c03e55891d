"""Run A and B in turn until it is decided which one is better."""

import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace

from kumulus.extras.journal.errors import JournalError
from kumulus.extras.lab.ab.pairs import Pairs
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.report.compare import unfair
from kumulus.extras.lab.report.model import Report
from kumulus.kube import ApiError, Unreachable

# A measure that is in none of so many pairs is in none.
_TRIED = 3
_PENDING = "pods.pending"


@dataclass(frozen=True)
class Side:
    """One of the two."""

    name: str
    loaded: LoadedExperiment


@dataclass(frozen=True)
class Until:
    """When to end."""

    decided: bool
    """Whether as soon as it is decided."""
    pairs: int
    """The most."""


@dataclass
class Comparison:
    """What A and B came to."""

    experiment: str
    sides: tuple[str, str]
    pairs: Pairs
    reports: list[tuple[Report, Report]] = field(default_factory=list)
    """Of A and B, of each pair."""
    cut_off: str = ""
    """Why it ended before it was to; empty if it did not."""

    @property
    def verdict(self) -> str:
        """Of B."""
        return "incomplete" if self.incomplete else self.pairs.verdict

    @property
    def incomplete(self) -> str:
        """Why B can only be worse; empty if it is not so.

        A run that was cut off is in no pair, nor are waits of pods that got no node: those left may be the easy ones.
        """
        if self.cut_off or self.pairs.verdict == "worse":
            return self.cut_off
        return next((line for pair in self.reports for line in self._less(*pair)), "")

    def _less(self, a: Report, b: Report) -> Iterator[str]:
        run = f"{self.sides[1]}: run {b.metadata.run_id}"
        other = f"run {a.metadata.run_id} of {self.sides[0]}"
        one, two = _measures(a), _measures(b)
        mine, theirs = (each.get(_PENDING, 0.0) for each in (one, two))
        # Times and rates are of pods that got a node; shares and counts are of all.
        of_some = any(UNITS[each] not in ("share", "count") for each in self.pairs.measures)
        if theirs > mine and of_some and _PENDING not in self.pairs.measures:
            left = f"left {theirs:,.0f} pods without a node, {other} {mine:,.0f}"
            yield f"{run} {left}; to compare that, too: --measure {_PENDING}"
        kept = {each.expected for each in a.results.tests[0].thresholds if each.holds}
        for each in b.results.tests[0].thresholds:
            if each.expected in kept and not each.holds:
                yield f"{run} missed {each.expected} ({each.found}), {other} kept it"
        # What was not heard of B is between bounds, and says nothing of B.
        unheard = b.results.tests[0].details.not_measured
        for measure in self.pairs.measures:
            if measure in one and measure not in two and measure not in unheard:
                yield f"{run} has no {measure}, {other} has one"

    def unfair(self) -> Iterator[str]:
        """What else differed within a pair, or between the first and the last."""
        yield from dict.fromkeys(line for pair in self.reports for line in unfair(pair))


async def compared(
    sides: tuple[Side, Side],
    pairs: Pairs,
    until: Until,
    make: Callable[[LoadedExperiment], Awaitable[Report]],
    say: Callable[[str], None],
) -> Comparison:
    """Run the pairs.

    Which of the two comes first is drawn for each pair: what changes on the machine meanwhile favours neither. Both of
    a pair have one seed, and each pair another: what is decided is not of one workload only.

    Args:
        make: runs an experiment; its report has one repetition, or was cut off.
    """
    experiment = sides[0].loaded.experiment
    found, first_seed = Comparison(experiment.name, (sides[0].name, sides[1].name), pairs), experiment.seed
    draw = random.Random(first_seed)
    for number in range(until.pairs):
        reports: dict[int, Report] = {}
        for index in draw.choice(((0, 1), (1, 0))):
            try:
                report = await make(_with_seed(sides[index].loaded, first_seed + number))
            except (LabError, JournalError, ApiError, Unreachable) as error:
                if not found.reports:
                    raise
                found.cut_off = f"{sides[index].name}: {error}"
                return found
            if report.results.status == "partial":
                found.cut_off = f"{sides[index].name}: run {report.metadata.run_id} was cut off: {_why(report)}"
                return found
            reports[index] = report
        found.reports.append((reports[0], reports[1]))
        pairs.runs.append((_measures(reports[0]), _measures(reports[1])))
        changes = pairs.changes()
        for change in changes:
            say(f"{number + 1:>4}  {change}")
        if missing := [each.measure for each in changes if each.apart is None and number + 1 == _TRIED]:
            found.cut_off = f"{', '.join(missing)} was measured in none of {_TRIED} pairs"
            return found
        if until.decided and pairs.verdict != "not decided":
            break
    return found


def _with_seed(loaded: LoadedExperiment, seed: int) -> LoadedExperiment:
    return replace(loaded, experiment=loaded.experiment.model_copy(update={"seed": seed, "repetitions": 1}))


def _measures(report: Report) -> dict[str, float]:
    return dict(report.results.tests[0].details.measures)


def _why(report: Report) -> str:
    return report.results.error or ", ".join(test.details.ended for test in report.results.tests)
