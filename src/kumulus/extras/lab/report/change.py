"""What became of a measure between two: how much it differs, how exactly that is known, and whether it is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kumulus.extras.lab.file.measures import BETTER, UNITS
from kumulus.extras.lab.file.units import shown

Verdict = Literal["better", "worse", "alike", "not decided"]

# Shares of 1 and whole numbers may well be 0: their differences are amounts.
_BY_AMOUNT = ("share", "count")


@dataclass(frozen=True)
class Change:
    """A measure of two.

    Args:
        measure: which one.
        before, after: its values, in the middle; None where it was not measured.
        by_factor: whether the difference is a part of the value before, or an amount in the measure's unit.
        apart: the difference; None where there is none.
        low, high: the interval of it; infinite where little is known.
        verdict: the conclusion.
        note: what it rests on.
    """

    measure: str
    before: float | None
    after: float | None
    by_factor: bool
    apart: float | None
    low: float
    high: float
    verdict: Verdict
    note: str

    @property
    def values(self) -> tuple[str, str]:
        """Both values, for people."""
        one, two = ("-" if each is None else shown(UNITS[self.measure], each) for each in (self.before, self.after))
        return one, two

    @property
    def amount(self) -> str:
        """The difference, for people: `+13.8 %`, `+1.2 points`, `-3`."""
        return "-" if self.apart is None else self._signed(self.apart)

    @property
    def interval(self) -> str:
        """Its interval, for people; empty where nothing is known of it."""
        if self.apart is None or math.isinf(self.low) or math.isinf(self.high):
            return ""
        return f"{self._signed(self.low)} … {self._signed(self.high)}"

    @property
    def found(self) -> str:
        """The difference with its interval and what it means, in words."""
        between = f" ({self.interval})" if self.interval else ""
        return f"{self.amount}{between}: {self.verdict}, {self.note}"

    def __str__(self) -> str:
        return f"{self.measure} {self.found}"

    def _signed(self, value: float) -> str:
        unit, sign = UNITS[self.measure], "-" if value < 0 else "+"
        if self.by_factor:
            return f"{sign}{abs(value):.1%}".replace("%", " %")
        return f"{sign}{100 * abs(value):.1f} points" if unit == "share" else f"{sign}{shown(unit, abs(value))}"


def by_factor(measure: str, values: Sequence[float]) -> bool:
    """Whether differences of such values are parts of them, as they are of times; a value of 0 has none."""
    return UNITS[measure] not in _BY_AMOUNT and min(values) > 0


def judged(measure: str, sign: int) -> Verdict:
    """What it means that a measure is larger (1), smaller (-1), or that this is not known (0).

    A measure of which neither more nor less is better is never decided.
    """
    if not sign or not BETTER[measure]:
        return "not decided"
    return "better" if (sign > 0) == (BETTER[measure] == "higher") else "worse"


def as_part(value: float) -> float:
    """A difference of logarithms as a part of the value before."""
    return math.expm1(min(value, 700.0)) if math.isfinite(value) else value
