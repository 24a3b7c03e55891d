"""A sweep file: an experiment, and which of its fields vary."""

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr

from kumulus.extras.lab.file.fields import Name, Needed
from kumulus.extras.lab.file.measures import UNITS, instead
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.model import names
from kumulus.model.checks import problem, unknown_key_remedy
from kumulus.model.errors import Problem, SpecError, Where, shown
from kumulus.model.fields import Section, checked
from kumulus.model.fields.validation import validated
from kumulus.stackfile.location import read_text
from kumulus.stackfile.yamltext import read_yaml

SEED = "seed"
MOST_CELLS = 100_000
_RANGE = re.compile(r"(\d+)-(\d+)")
# The first words of a path: an experiment's fields, among them `stack`, and the trace of any workload.
_FIELDS = (*(field.alias or name for name, field in ExperimentSpec.model_fields.items()), "trace")
_LABELLED = {"name", "value"}
_RENAME = "write {name: …, value: …} with a name of its own"
_OFFLINE = ("policy.allocated", "policy.fragmented", "pods.scheduled")
_LIVE = ("timeToSchedule.p50", "timeToSchedule.p99", "allocation.gpuEnd", "gpuHours.stranded", "makespan")


def _matrix_problems(where: Where, raw: object) -> list[Problem]:
    if not isinstance(raw, Mapping) or not raw:
        return [problem(where, f"is {shown(raw)}", "write a mapping such as {policy: [FGD, BestFit], seed: 42-51}")]
    wrong = []
    for axis, values in raw.items():
        if not isinstance(axis, str) or not axis.strip("."):
            wrong.append(problem((*where, str(axis)), "is no field", "write a field such as policy"))
        elif (field := axis.partition(".")[0]) not in _FIELDS:
            message = "is not a known key" if axis == field else f"{field} is not a known key"
            wrong.append(problem((*where, axis), message, unknown_key_remedy(field, _FIELDS)))
        elif axis == SEED and isinstance(values, list) and values:
            wrong += [
                problem((*where, axis, index), f"is {shown(value)}", "write a whole number")
                for index, value in enumerate(values)
                if not _is_seed(value)
            ]
        elif not _values(axis, values):
            remedy = "write 42-51, or a list of numbers" if axis == SEED else "write a list with at least one value"
            wrong.append(problem((*where, axis), f"is {shown(values)}", remedy))
    return wrong


def _measure_problems(where: Where, raw: object) -> list[Problem]:
    if not isinstance(raw, list):
        return [problem(where, f"is {shown(raw)}", "write a list of measures of docs/experiments.md")]
    wrong = []
    for index, name in enumerate(raw):
        if name not in UNITS:
            wrong.append(problem((*where, index), f"{shown(name)} is not measured", f"write {instead(name)}"))
    return wrong


def _values(axis: str, raw: object) -> list[Any]:
    match = _RANGE.fullmatch(raw) if isinstance(raw, str) and axis == SEED else None
    if match:
        first, last = int(match[1]), int(match[2])
        return list(range(first, min(last, first + MOST_CELLS) + 1))
    found = list(raw) if isinstance(raw, list) else []
    return found if axis != SEED or all(map(_is_seed, found)) else []


def _is_seed(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _axes(raw: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {axis: _values(axis, values) for axis, values in raw.items()}


class Sweep(Section):
    """A sweep, as its file describes it."""

    name: Name = Field(examples=["policies"])
    """The sweep's name: where its results go."""
    description: str = Field(default="", examples=["which is best"])
    """What it is to show, in a sentence."""
    experiment: Needed = Field(examples=["openb.yaml"])
    """The experiment file, relative to this one; what the matrix does not name is as it says."""
    live: bool = Field(default=False, examples=["true"])
    """Each run on a cluster of its own, of the experiment's stackFile, made for it and taken down."""
    matrix: Annotated[dict[str, list[Any]], checked(_matrix_problems, _axes, form={"type": "object"})] = Field(
        examples=["{policy: [FGD, BestFit], seed: 42-51}"]
    )
    """The fields that vary, each with its values: policy, scheduler, seed (a range, 42-51), trace (a file), a path in
    the experiment file (`workloads.tasks.arrival.trace.inflate`) or, after `stack.`, in the `kumulus:cluster` of its
    stack file (`stack.nodeGroups.a100.placement.0.replicas`). Items of a list go by their name or their number from 0.
    A value of many words is `{name: …, value: …}`, and called by its name."""
    baseline: dict[str, Any] = Field(default_factory=dict, examples=["{policy: BestFit}"])
    """What everything else is compared with; the first value of every field unless it says otherwise."""
    measures: Annotated[list[str], checked(_measure_problems, list, form={"type": "array"})] = Field(
        default_factory=list, examples=["[policy.allocated, policy.fragmented]"]
    )
    """The measures on the page (docs/experiments.md); all that were taken are among the results."""

    _source: str = PrivateAttr(default="")

    @property
    def source(self) -> str:
        """The file that it was read from, for messages."""
        return self._source

    def shown(self) -> tuple[str, ...]:
        """The measures on the page."""
        return tuple(self.measures) or (_LIVE if self.live else _OFFLINE)

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Every combination of the matrix; the seed varies fastest, so that those of one group come together."""
        axes = [axis for axis in self.matrix if axis != SEED]
        axes += [SEED] if SEED in self.matrix else []
        for values in itertools.product(*(self.matrix[axis] for axis in axes)):
            yield dict(zip(axes, values, strict=True))


def label(value: Any) -> Any:
    """The label of a value of the matrix: the name of `{name: …, value: …}`, otherwise the value itself."""
    return value["name"] if isinstance(value, Mapping) and set(value) == _LABELLED else value


def content(value: Any) -> Any:
    """What is put into the file for a value of the matrix."""
    return value["value"] if isinstance(value, Mapping) and set(value) == _LABELLED else value


def words(values: Mapping[str, Any]) -> str:
    """Values of the matrix, for people: `policy FGD, seed 42`."""
    return ", ".join(f"{axis} {value}" for axis, value in values.items())


def group_of(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What runs that differ by seed alone have in common: their values of the matrix, as texts."""
    return tuple((axis, str(value)) for axis, value in values.items() if axis != SEED)


def load(file: Path) -> Sweep:
    """Read a sweep file."""
    _, text = read_text(str(file), Path(), "")
    sweep = validated(Sweep, read_yaml(text, str(file)), str(file))
    sweep._source = str(file)
    wrong = []
    count = 1
    for values in sweep.matrix.values():
        count *= len(values)
    if count > MOST_CELLS:
        wrong.append(Problem("matrix", f"has {count:,} combinations, more than {MOST_CELLS:,}", "write fewer values"))
    for axis, values in sweep.matrix.items():
        first: dict[str, Any] = {}
        for index, value in enumerate(values):
            if first.setdefault(called := str(label(value)), value) != value:
                wrong.append(Problem(f"matrix.{axis}[{index}]", f"is called {called}, as another is", _RENAME))
    for axis, value in sweep.baseline.items():
        if axis not in sweep.matrix or axis == SEED:
            fields = [each for each in sweep.matrix if each != SEED]
            remedy = names.instead(axis, fields) if fields else "leave it out"
            wrong.append(Problem(f"baseline.{axis}", "is no field of the matrix", remedy))
        elif value not in map(label, sweep.matrix[axis]):
            remedy = names.instead(value, (str(label(each)) for each in sweep.matrix[axis]))
            wrong.append(Problem(f"baseline.{axis}", f"{shown(value)} is not in the matrix", remedy))
    if wrong:
        raise SpecError(wrong, str(file))
    return sweep
