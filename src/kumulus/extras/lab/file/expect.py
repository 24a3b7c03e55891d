"""What is expected of an experiment: thresholds on measures, and outcomes."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from kumulus.extras.lab.file.fields import Name
from kumulus.extras.lab.file.measures import UNITS, Unit
from kumulus.model import durations
from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import FORM, Section, checked, found
from kumulus.model.names import nearest
from kumulus.model.quantity import QuantityError, parse

BOUNDS = ("atMost", "atLeast", "equals")
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


def bound(unit: Unit, raw: object) -> float | None:
    """A threshold as a number in its measure's unit (seconds, a share of 1, a count, bytes); None when it is none."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    # A bare number is a duration or a share only where it cannot be misread.
    plain = unit not in ("s", "share") or raw in (0, 1)
    value = _from_text(unit, raw.strip()) if isinstance(raw, str) else float(raw) if plain else None
    return value if value is not None and math.isfinite(value) else None


def _from_text(unit: Unit, raw: str) -> float | None:
    try:
        if unit == "s":
            return durations.seconds(raw)
        if unit == "bytes":
            return float(parse(raw).nanos) / 1e9
        return float(raw.removesuffix("%")) / 100 if raw.endswith("%") and unit == "share" else None
    except (ValueError, QuantityError):
        return None


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
    workload: Name | None = Field(
        default=None, description="The workload whose pods must be on certain nodes.", examples=["train"]
    )
    nodes: list[str] | None = Field(
        default=None,
        description="The workload's pods are on these nodes and no others.",
        examples=["[a100-use1-0, a100-use1-1]"],
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        present = [name for name in BOUNDS if getattr(self, name) is not None]
        wrong: list[Problem] = []
        if bool(self.measure) == (self.nodes is not None):
            remedy = "write measure: allocation.gpu with atLeast: 99%, or workload: and nodes:"
            wrong.append(problem((), "says neither or both of measure and nodes", remedy))
        elif self.nodes is not None and (self.workload is None or present):
            wrong.append(problem((), "names nodes, which is about a workload", "write workload: and nodes: alone"))
        elif self.measure and not present:
            wrong.append(problem((), "has no threshold", "write atMost:, atLeast: or equals:"))
        elif self.measure:
            unit = UNITS[self.measure]
            wrong += [
                problem((name,), f"is {shown(getattr(self, name))}", f"write {_EXAMPLES[unit]}")
                for name in present
                if bound(unit, getattr(self, name)) is None
            ]
        if wrong:
            raise found(wrong)
        return self

    def bounds(self) -> dict[str, float]:
        """The thresholds as numbers in the measure's unit, by `atMost`, `atLeast` and `equals`."""
        unit = UNITS[self.measure] if self.measure else "count"
        values = {name: bound(unit, getattr(self, name)) for name in BOUNDS}
        return {name: value for name, value in values.items() if value is not None}
