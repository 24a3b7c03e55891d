"""The cells of a sweep: the experiment and the stack with the values of one combination, and a name for each."""

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file import recording
from kumulus.extras.lab.file.load import references
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.policies import load
from kumulus.extras.lab.sweep.file import SEED, Sweep, content, group_of, label, words
from kumulus.extras.lab.sweep.places import CLUSTER, MatrixPlace, check, put
from kumulus.host import pulumi_project
from kumulus.host.version import VERSION
from kumulus.kube.safe_yaml import MOST_BYTES
from kumulus.model.errors import Problem, SpecError, shown
from kumulus.stackfile.location import large_file, read_text
from kumulus.stackfile.nodes_file import MOST
from kumulus.stackfile.yamltext import read_yaml

_STACK = "stack."
_SCHEDULER = "scheduler"
# Fields that have an effect only on a cluster.
_OFCLUSTERS = (_SCHEDULER, "autoscaler")
# Fields that name the stack, which is read once for all runs.
_OF_ALL = ("stack", "stackFile")
# Fields that may name a policy's file.
_POLICIES = ("policy", "whyPolicy")
# Keys of a stack file that name another file, and the most bytes that it may have.
_OF_STACK = {"kumulus:prices": MOST_BYTES, "kumulus:nodes": MOST}


@dataclass(frozen=True)
class Cell:
    """One run of a sweep."""

    id: str
    """A digest of everything that its result depends on: equal runs have equal ids."""
    values: Mapping[str, Any]
    raw: Mapping[str, Any]
    """The experiment, as in a file."""
    stack: Mapping[str, Any]
    """The stack's configuration, likewise."""
    directory: Path
    """Where paths in both start from."""
    live: bool

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self.raw.get(SEED) or 0)

    @property
    def stack_elsewhere(self) -> Mapping[str, Any]:
        """Its stack for a project in another directory: paths of files are absolute."""
        found = {key: _absolute(named, self.directory) for key, named in _named(self.stack)}
        return {**self.stack, **found}

    @property
    def group(self) -> tuple[tuple[str, str], ...]:
        """The values that it shares with the cells that differ from it by seed alone, as texts."""
        return group_of(self.values)


def cells_of(sweep: Sweep, base: Path) -> list[Cell]:
    """The cells of a sweep, each experiment checked."""
    file = base / sweep.experiment
    _, text = read_text(str(file), Path(), "experiment", str(file))
    raw = read_yaml(text, str(file))
    if not isinstance(raw, Mapping):
        raise SpecError([Problem("", "is no mapping", "write an experiment")], str(file))
    directory = file.resolve().parent
    named = raw.get("stackFile") or _of_project(raw.get("stack"), directory)
    if not named:
        raise LabError(
            f"{file} names no stackFile, whose machines the runs of a sweep have, and no stack of the project\n"
            "  Write stackFile: s.yaml"
        )
    _, text = read_text(str(named), directory, "stackFile", str(file))
    described = read_yaml(text, str(directory / named))
    stack = described.get("config") if isinstance(described, Mapping) else None
    if not isinstance(stack, Mapping) or not isinstance(stack.get(CLUSTER), Mapping):
        raise LabError(f"{directory / named} has no {CLUSTER}, which a sweep can vary\n  Write one")
    if chosen := [axis for axis in sweep.matrix if axis in _OF_ALL]:
        message, remedy = f"has no effect: each run has the machines of {named}", "vary its fields: stack.nodeGroups.…"
        raise SpecError([Problem(f"matrix.{axis}", message, remedy) for axis in chosen], sweep.source)
    if not sweep.live and (idle := [axis for axis in sweep.matrix if axis.partition(".")[0] in _OFCLUSTERS]):
        remedy = "leave it out, or write live: true"
        raise SpecError(
            [Problem(f"matrix.{axis}", "has no effect without a cluster", remedy) for axis in idle], sweep.source
        )
    found, digests = [], _Digests(directory)
    checked: set[str] = set()
    for wanted in sweep.combinations():
        own_raw, own_stack = copy.deepcopy(dict(raw)), copy.deepcopy(dict(stack))
        places: dict[str, MatrixPlace] = {}
        for axis, value in wanted.items():
            if axis.startswith(_STACK):
                path = axis.removeprefix(_STACK).split(".")
                places[axis] = put(own_stack[CLUSTER], path, copy.deepcopy(content(value)), axis, sweep.source)
            else:
                _put(own_raw, axis, copy.deepcopy(content(value)), sweep.source)
        values = {axis: label(value) for axis, value in wanted.items()}
        source = f"{file} with {words(values)}"
        if (stack_with := words({axis: values[axis] for axis in places})) not in checked:
            checked.add(stack_with)
            check(own_stack, directory, f"{named} with {stack_with}" if places else named, places, sweep.source)
        experiment = ExperimentSpec.checked(own_raw, source)
        if not sweep.live and not experiment.policy:
            remedy = "write policy: FGD, or live: true in the sweep file"
            raise SpecError([Problem("policy", "is missing, which places the pods without a cluster", remedy)], source)
        known = _by_text([VERSION, sweep.live, own_raw, own_stack, digests.of(experiment, own_stack)])
        digest = hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode()).hexdigest()[:16]
        found.append(Cell(digest, values, own_raw, own_stack, directory, sweep.live))
    return list({cell.id: cell for cell in found}.values())


def _of_project(stack: object, directory: Path) -> str:
    """The file of a stack of the project that the experiment is in; empty if there is none."""
    project = pulumi_project.find(directory) if isinstance(stack, str) and stack else None
    file = project.stack_file(str(stack)) if project else None
    return str(file) if file is not None and file.is_file() else ""


class _Digests:
    """The digests of files that experiments name, each read once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, str] = {}
        self._imported: dict[str, list[Path]] = {}

    def of(self, experiment: ExperimentSpec, stack: Mapping[str, Any]) -> list[str]:
        """The digests for a cell."""
        found = []
        for where, location in references(experiment):
            found.append(self._digest(location))
            if where[0] in _POLICIES:
                found += self._imported_by(location)
        if binary := experiment.scheduler.binary:
            found.append(
                self._of_file(binary, self._directory / binary, "scheduler.binary", "write the path of a program")
            )
        return found + [self._digest(location, key, _OF_STACK[key]) for key, location in _named(stack)]

    def _imported_by(self, policy: str) -> list[str]:
        if policy not in self._imported:
            self._imported[policy] = load.files(self._directory / policy)
        return [self._of_file(str(file), file, "policy", "make it readable") for file in self._imported[policy]]

    def _digest(self, location: str, place: str = "", most: int = recording.MOST_BYTES) -> str:
        if location not in self._known:
            # A trace, or a recording, may be larger than a text that is read at once.
            if file := large_file(location, self._directory, place, "", most):
                return self._of_file(location, file, place, "write the path of a file that can be read")
            _, text = read_text(location, self._directory, place)
            self._known[location] = hashlib.sha256(text.encode()).hexdigest()
        return self._known[location]

    def _of_file(self, location: str, file: Path, place: str, remedy: str) -> str:
        if location not in self._known:
            try:
                with file.open("rb") as opened:
                    self._known[location] = hashlib.file_digest(opened, "sha256").hexdigest()
            except OSError as error:
                message = f"{shown(location)} cannot be read: {error.strerror}"
                raise SpecError([Problem(place, message, remedy)]) from None
        return self._known[location]


def _by_text(node: Any) -> Any:
    """A value with texts for keys, which YAML does not require: only these have an order."""
    if isinstance(node, Mapping):
        return {str(key): _by_text(each) for key, each in node.items()}
    return [_by_text(each) for each in node] if isinstance(node, list) else node


def _named(stack: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in _OF_STACK:
        if isinstance(named := stack.get(key), str) and named:
            yield key, named


def _absolute(location: str, directory: Path) -> str:
    return location if "://" in location else str((directory / Path(location).expanduser()).absolute())


def _put(raw: dict[str, Any], axis: str, value: Any, source: str) -> None:
    if axis == "trace":
        try:
            traced = [each for each in raw.get("workloads") or () if ((each.get("arrival") or {}).get("trace"))]
            for each in traced:
                each["arrival"]["trace"]["file"] = value
        except (AttributeError, TypeError):
            return  # Not of the form of an experiment, which is checked next.
        if not traced:
            raise SpecError([Problem("matrix.trace", "has no effect: no workload has a trace", "leave it out")], source)
    else:
        path = [_SCHEDULER, "name"] if axis == _SCHEDULER and isinstance(value, str) else axis.split(".")
        put(raw, path, value, axis, source)
