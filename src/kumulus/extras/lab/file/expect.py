"""What is expected of an experiment: thresholds on measures, where pods are, and what becomes of faulted nodes."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from kumulus.extras.lab.file.amount import Margin, amount, bound, examples, towards_worse
from kumulus.extras.lab.file.fields import Name
from kumulus.extras.lab.file.measures import UNITS, Unit
from kumulus.extras.lab.file.workload import MOST_WORKERS
from kumulus.model import durations
from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import FORM, Section, checked, malformed, whole
from kumulus.model.names import nearest

BOUNDS = ("atMost", "atLeast", "equals")
LIMITS = (*BOUNDS, "within")
ABOUT = ("measure", "nodes", "onFaultedNodes")
"""Each expectation is about one of these."""
KEYS: tuple[tuple[str, ...], ...] = (
    (*LIMITS, "measure"),
    ("workload", "nodes"),
    ("nodes", "cordoned", "within"),
    ("workload", "onFaultedNodes", "within"),
)
"""The keys that go together: of a threshold, of pods on nodes, of the nodes of a fault, of pods on faulted nodes."""
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


def _is_bound(value: float | None, unit: Unit) -> bool:
    """Whether a measure can have such a value at all: none is below 0."""
    return value is not None and (value >= 0 or unit in ("s", "share", "bytes"))


def _measure_problems(where: Where, raw: object) -> list[Problem]:
    if isinstance(raw, str) and raw in UNITS:
        return []
    near = nearest(raw, UNITS, likeness=0.5) if isinstance(raw, str) else []
    remedy = f"write {' or '.join(near)}" if near else "write a measure of docs/experiments.md, such as allocation.gpu"
    return [problem(where, f"{shown(raw)} is not measured", remedy)]


@dataclass(frozen=True)
class OfFault:
    """The nodes of a fault."""

    fault: str


def _nodes_problems(where: Where, raw: object) -> list[Problem]:
    if isinstance(raw, Mapping):
        right = set(raw) == {"fault"} and isinstance(raw["fault"], str)
    else:
        right = isinstance(raw, list) and all(isinstance(each, str) for each in raw)
    remedy = "write nodes: [NAME, …], or nodes: {fault: NAME}"
    return [] if right else [problem(where, f"is {shown(raw)}", remedy)]


def _within_problems(where: Where, raw: object) -> list[Problem]:
    if not isinstance(raw, int | float) or isinstance(raw, bool):
        return []
    remedy = f"write {shown(raw)}s for the nodes of a fault, {shown(raw)}% of baseline for a measure"
    return [problem(where, f"is {shown(raw)}, which has no unit", remedy)]


def _nodes(raw: list[str] | dict[str, str]) -> list[str] | OfFault:
    return raw if isinstance(raw, list) else OfFault(raw["fault"])


_NODES_FORM = {
    "anyOf": [
        {"type": "array", "items": {"type": "string"}},
        {
            "type": "object",
            "required": ["fault"],
            "additionalProperties": False,
            "properties": {"fault": {"type": "string", "description": "The name of a fault of the timeline."}},
        },
    ]
}


class Expectation(Section):
    """One thing that must hold in every repetition."""

    model_config = ConfigDict(json_schema_extra={FORM: "expectationRules"})

    measure: Annotated[str, checked(_measure_problems, form={"enum": list(UNITS)})] = Field(
        default="", examples=["timeToSchedule.p99"]
    )
    """The measure that a threshold applies to (docs/experiments.md)."""
    atMost: str | int | float | None = Field(default=None, examples=["2s"])
    """The most that the measure may be, in its unit's form: a duration, a percentage, a number, a quantity."""
    atLeast: str | int | float | None = Field(default=None, examples=["99%"])
    """The least that the measure may be, written as for `atMost`."""
    equals: str | int | float | None = Field(default=None, examples=["0"])
    """What the measure must be, written as for `atMost`."""
    within: Annotated[str, checked(_within_problems, form={"type": "string"})] | None = Field(
        default=None, examples=["10% of baseline"]
    )
    """How much worse the measure may be than in the experiment's `baseline`: a part of it, points of a share (`1pt of
    baseline`), or an amount in its unit (`2s of baseline`). Better is never too far; where neither is better, it may be
    so far on both sides. Of a fault, the time that it may take, such as `10s`; the experiment does not end before
    that."""
    workload: Name | None = Field(default=None, examples=["train"])
    """The workload whose pods must be on certain nodes, or off them."""
    nodes: Annotated[list[str] | OfFault, checked(_nodes_problems, _nodes, form=_NODES_FORM)] | None = Field(
        default=None, examples=["[a100-use1-0, a100-use1-1]", "{fault: rack1}"]
    )
    """The workload's pods are on these nodes and no others; or the nodes of a fault."""
    cordoned: bool | None = Field(default=None, examples=["true"])
    """Whether the nodes of the fault are to be cordoned (true), or schedulable again after its end (false)."""
    onFaultedNodes: Annotated[int, whole(0, MOST_WORKERS)] | None = Field(default=None, examples=["0"])
    """How many pods of the workload may be on the nodes of each of the timeline's faults, from `within` after its begin
    until its end."""

    _baseline: float | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        present = self.limits
        wrong: list[Problem] = self._together()
        if wrong:
            pass
        elif self.measure and not present:
            wrong.append(problem((), "has no threshold", "write atMost:, atLeast:, equals: or within:"))
        elif not self.measure and self.within is not None and self.seconds is None:
            wrong.append(problem(("within",), f"is {shown(self.within)}", "write a duration such as 10s"))
        elif self.measure:
            unit = UNITS[self.measure]
            wrong += [
                problem((name,), f"is {shown(getattr(self, name))}", f"write {_EXAMPLES[unit]}")
                for name in present
                if name != "within" and not _is_bound(bound(unit, getattr(self, name)), unit)
            ]
            if self.within is not None and self.distance is None:
                remedy = " or ".join(f"{each} of baseline" for each in examples(self.measure))
                wrong.append(problem(("within",), f"is {shown(self.within)}", f"write {remedy}"))
        if wrong:
            raise malformed(wrong)
        return self

    def _together(self) -> list[Problem]:
        written = {key for keys in KEYS for key in keys if getattr(self, key) is not None}
        written -= set() if self.measure else {"measure"}
        about = [key for key in ABOUT if key in written]
        remedy = "write measure: allocation.gpu with atLeast: 99%, or workload: and nodes:"
        if len(about) != 1:
            what = f"says {' and '.join(about)} at once" if about else "says neither measure nor nodes"
            return [problem((), what, remedy)]
        if "measure" in written:
            wanted = KEYS[0]
        elif "nodes" in written:
            wanted = KEYS[2] if isinstance(self.nodes, OfFault) else KEYS[1]
        else:
            wanted = KEYS[3]
        if wanted is not KEYS[0] and written != set(wanted):
            message = f"is about {about[0]}, with {', '.join(sorted(written - {*about})) or 'nothing else'}"
            return [problem((), message, f"write {', '.join(f'{key}:' for key in wanted)} and no other")]
        if extra := sorted(written - set(wanted)):
            return [problem((), f"says measure and {' and '.join(extra)} at once", remedy)]
        return []

    @property
    def of_baseline(self) -> bool:
        """Whether it is compared with a baseline."""
        return bool(self.measure) and self.within is not None

    @property
    def seconds(self) -> float | None:
        """How long something may take after a fault; None for a threshold."""
        if self.measure or self.within is None or durations.duration_problems((), self.within):
            return None
        return durations.of(self.within)

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
    def distance(self) -> Margin | None:
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
