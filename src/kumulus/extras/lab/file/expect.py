"""What is expected of an experiment: thresholds on measures, and outcomes."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from kumulus.extras.lab.file.amount import Amount, amount, bound, examples, towards_worse
from kumulus.extras.lab.file.fields import Name
from kumulus.extras.lab.file.measures import UNITS, Unit
from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import FORM, Section, checked, found
from kumulus.model.names import nearest

BOUNDS = ("atMost", "atLeast", "equals")
LIMITS = (*BOUNDS, "within")
_OF_BASELINE = re.compile(r"\s*(.+?)\s+of\s+baseline\s*")
_EXAMPLES: Mapping[Unit, str] = {
    "s": "a duration such as 2s",
    "share": "a percentage such as 99%",
    "count": "a number such as 0",
    "perSecond": "a number a second, such as 200",
    "bytes": "a quantity such as 300Mi",
    "usd": "US dollars such as 12.50",
    "ratio": "a number such as 1.5",
    "gpuHours": "GPU-hours such as 12.5",
    "gpuSeconds": "GPU-seconds such as 600",
}


def _measure_problems(where: Where, raw: object) -> list[Problem]:
    if isinstance(raw, str) and raw in UNITS:
        return []
    near = nearest(raw, UNITS, likeness=0.5) if isinstance(raw, str) else []
    remedy = f"write {' or '.join(near)}" if near else "write a measure of docs/experiments.md, such as allocation.gpu"
    return [problem(where, f"{shown(raw)} is not measured", remedy)]


class Expectation(Section):
    """One thing that must hold in every repetition."""

    model_config = ConfigDict(json_schema_extra={FORM: "expectationRules"})

    measure: Annotated[str, checked(_measure_problems, form={"enum": list(UNITS)})] = Field(
        default="",
        description="The measure that a threshold applies to (docs/experiments.md).",
        examples=["timeToSchedule.p99"],
    )
    atMost: str | int | float | None = Field(
        default=None,
        description=(
            "The most that the measure may be, in its unit's form: a duration, a percentage, a number, a quantity."
        ),
        examples=["2s"],
    )
    atLeast: str | int | float | None = Field(
        default=None, description="The least that the measure may be, written as for `atMost`.", examples=["99%"]
    )
    equals: str | int | float | None = Field(
        default=None, description="What the measure must be, written as for `atMost`.", examples=["0"]
    )
    within: str | None = Field(
        default=None,
        description=(
            "How much worse the measure may be than in the experiment's `baseline`: a part of it, points of a share "
            "(`1pt of baseline`), or an amount in its unit (`2s of baseline`). Better is never too far; where neither "
            "is better, it may be so far on both sides."
        ),
        examples=["10% of baseline"],
    )
    workload: Name | None = Field(
        default=None, description="The workload whose pods must be on certain nodes.", examples=["train"]
    )
    nodes: list[str] | None = Field(
        default=None,
        description="The workload's pods are on these nodes and no others.",
        examples=["[a100-use1-0, a100-use1-1]"],
    )

    _baseline: float | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        present = self.limits
        wrong: list[Problem] = []
        if bool(self.measure) == (self.nodes is not None):
            remedy = "write measure: allocation.gpu with atLeast: 99%, or workload: and nodes:"
            wrong.append(problem((), "says neither or both of measure and nodes", remedy))
        elif self.nodes is not None and (self.workload is None or present):
            wrong.append(problem((), "names nodes, which is about a workload", "write workload: and nodes: alone"))
        elif self.measure and not present:
            wrong.append(problem((), "has no threshold", "write atMost:, atLeast:, equals: or within:"))
        elif self.measure:
            unit = UNITS[self.measure]
            wrong += [
                problem((name,), f"is {shown(getattr(self, name))}", f"write {_EXAMPLES[unit]}")
                for name in present
                if name != "within" and bound(unit, getattr(self, name)) is None
            ]
            if self.within is not None and self.distance is None:
                remedy = " or ".join(f"{each} of baseline" for each in examples(self.measure))
                wrong.append(problem(("within",), f"is {shown(self.within)}", f"write {remedy}"))
        if wrong:
            raise found(wrong)
        return self

    @property
    def limits(self) -> list[str]:
        """Which of `LIMITS` are written."""
        return [name for name in LIMITS if getattr(self, name) is not None]

    def bounds(self) -> dict[str, float]:
        """The thresholds as numbers in the measure's unit, by `atMost`, `atLeast` and `equals`."""
        unit = UNITS[self.measure] if self.measure else "count"
        values = {name: bound(unit, getattr(self, name)) for name in BOUNDS}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def distance(self) -> Amount | None:
        """How far from the baseline it may be; None without `within`, or if that is none."""
        found = _OF_BASELINE.fullmatch(self.within or "")
        return amount(self.measure, found[1]) if found else None

    @property
    def baseline(self) -> float | None:
        """The measure's value in the baseline; None as long as that has not been read."""
        return self._baseline

    def against(self, baseline: float) -> Self:
        """The same with the measure's value in the baseline."""
        found = self.model_copy()
        found._baseline = baseline
        return found

    def around_baseline(self) -> dict[str, float]:
        """The thresholds that `within` is, by `atMost` and `atLeast`; none until the baseline has been read."""
        distance, worse = self.distance, towards_worse(self.measure)
        if distance is None or self._baseline is None:
            return {}
        found = {"atMost": distance.above(self._baseline), "atLeast": distance.below(self._baseline)}
        return {name: value for name, value in found.items() if not worse or (worse == "+") == (name == "atMost")}
