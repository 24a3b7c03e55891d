"""Limits on what may become of a measure from one run to another: `timeToSchedule.p99:+10%`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.amount import Amount, amount, examples, towards_worse
from kumulus.extras.lab.file.measures import UNITS
from kumulus.extras.lab.file.units import NOT_MEASURED
from kumulus.extras.lab.report.change import Change
from kumulus.extras.lab.report.checks import Check
from kumulus.extras.lab.report.model import Report
from kumulus.model.names import nearest

_WRITTEN = re.compile(r"([\w.]+):([+-])(.+)")
_MORE = {"+": "more", "-": "less"}


@dataclass(frozen=True)
class Limit:
    """How much more, or less, of a measure there may be.

    Args:
        measure: which one.
        sign: `+` for more, `-` for less.
        most: how much.
    """

    measure: str
    sign: str
    most: Amount

    @property
    def name(self) -> str:
        """In words, the same every time."""
        return f"{self.measure} at most {self.most.written} {_MORE[self.sign]}"

    def check(self, change: Change | None, cut_off: str) -> Check:
        """Whether it is kept: by the medians of the repetitions.

        Args:
            change: of the measure; None where neither run has it.
            cut_off: which of the runs did not come to its end; empty for neither.
        """
        if cut_off:
            return Check(self.name, False, f"incomplete: {cut_off} did not come to its end")
        if change is None or change.before is None or change.after is None:
            return Check(self.name, False, NOT_MEASURED)
        one, two = change.values
        found = f"{one} → {two}, {change.found}"
        if self.sign == "+":
            return Check(self.name, change.after <= self.most.above(change.before), found)
        return Check(self.name, change.after >= self.most.below(change.before), found)


def limit(written: str) -> Limit:
    """A limit of the command line."""
    found = _WRITTEN.fullmatch(written)
    if not found:
        raise LabError(f"--fail-if {written} is no limit\n  Write MEASURE:+10%, MEASURE:-1pt, or MEASURE:+2s")
    measure, sign, most = found.groups()
    if measure not in UNITS:
        near = nearest(measure, UNITS, likeness=0.5) or ["a measure of docs/experiments.md"]
        raise LabError(f"--fail-if {written}: {measure} is not measured\n  Write {' or '.join(near)}")
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


def checks(limits: Sequence[Limit], reports: Sequence[Report], changes: Sequence[Change]) -> list[Check]:
    """Whether each limit is kept."""
    cut_off = ", ".join(each.metadata.run_id for each in reports if each.results.status == "partial")
    known = {each.measure: each for each in changes}
    return [each.check(known.get(each.measure), cut_off) for each in limits]
