"""Read an experiment file and every file it names."""

from __future__ import annotations

import io
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file import KEPT_AS
from kumulus.extras.lab.file.expect import Expectation
from kumulus.extras.lab.file.manifest import Object, filled, objects_of, replacement_problems
from kumulus.extras.lab.file.model import OWN, ExperimentSpec
from kumulus.extras.lab.file.recording import MOST_BYTES, Recording, recording
from kumulus.extras.lab.file.trace import TraceJob, trace_jobs
from kumulus.extras.schedulers import SchedulerError, registry
from kumulus.model.checks import problem
from kumulus.model.errors import Problem, SpecError, Where, path_text, shown
from kumulus.nodes.catalog.prices import Prices, with_own
from kumulus.stackfile.location import large_file, read_text
from kumulus.stackfile.yamltext import read_yaml

if TYPE_CHECKING:
    from kumulus.extras.lab.report.model import Report


_REMEDY = "write it anew: kumulus experiment baseline RUN FILE"
_FILES = {
    ("setup",),
    ("workloads", "manifest"),
    ("workloads", "arrival", "trace", "file"),
    ("workloads", "replay", "file"),
    ("scheduler", "config"),
    ("baseline",),
}
"""Where an experiment names files, without indices; a policy may be a name, too."""


@dataclass(frozen=True)
class LoadedExperiment:
    """An experiment with what it takes from other files."""

    experiment: ExperimentSpec
    directory: Path
    """The file's, which paths in it are relative to."""
    manifests: dict[str, str] = field(default_factory=dict)
    """The text of each workload's manifest, by the workload's name."""
    traces: dict[str, list[TraceJob]] = field(default_factory=dict)
    """The jobs of each workload's trace, likewise."""
    recordings: dict[str, Recording] = field(default_factory=dict)
    """What each workload replays, likewise."""
    setup: list[Object] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    """The exact text of each file that was read, by the name it is kept under; for a trace of more than 4 MiB, the
    lines that are replayed."""
    kept: dict[Where, str] = field(default_factory=dict)
    """The names of these, by the place that names the file."""
    baseline: Report | None = None

    @property
    def profiles(self) -> tuple[str, ...]:
        """The `spec.schedulerName` values in the scheduler's own configuration; none without a configuration.

        Raises:
            SchedulerError: the configuration cannot be used.
        """
        wanted = self.experiment.scheduler
        return registry.get(wanted.name).names(self.directory / wanted.config) if wanted.config else ()


def load(file: Path) -> LoadedExperiment:
    """Read an experiment file."""
    _, text = read_text(str(file), Path(), "")
    return loaded_from(read_yaml(text, str(file)), file.resolve().parent, str(file), text)


def loaded_from(raw: object, directory: Path, source: str, text: str) -> LoadedExperiment:
    """Load an experiment from its file's content, with every file it names.

    Args:
        directory: the one that paths in it are relative to.
        source: the file's name in error messages.
        text: of its file, which a report keeps.
    """
    try:
        experiment = ExperimentSpec.checked(raw, source)
    except SpecError as error:
        raise SpecError([*error.problems, *_unreadable(raw, (), directory)], source) from None
    loaded = LoadedExperiment(experiment, directory, inputs={"experiment.yaml": text})
    problems: list[Problem] = []
    for where, location in references(experiment):
        try:
            _read(loaded, where, location, source)
        except SpecError as error:
            if error.source == source:
                problems += error.problems
            else:
                place = f"{path_text(where)}: {error.source}"
                problems += [
                    Problem(f"{place}: {each.path}" if each.path else place, each.message, each.remedy)
                    for each in error.problems
                ]
    problems += _profile_problems(loaded)
    if problems:
        raise SpecError(problems, source)
    return _with_baseline(loaded, source) if experiment.baseline else loaded


def _unreadable(raw: object, where: Where, directory: Path) -> Iterator[Problem]:
    """The files that cannot be read, of those that an experiment names which has other mistakes."""
    if isinstance(raw, Mapping | list):
        for key, each in raw.items() if isinstance(raw, Mapping) else enumerate(raw):
            yield from _unreadable(each, (*where, key), directory)
    elif isinstance(raw, str) and tuple(key for key in where if isinstance(key, str)) in _FILES:
        try:
            if large_file(raw, directory, path_text(where), "", MOST_BYTES) is None:
                read_text(raw, directory, path_text(where))
        except SpecError as error:
            yield from error.problems


def _profile_problems(loaded: LoadedExperiment) -> list[Problem]:
    """What is wrong with the scheduler's own configuration, and workloads that ask for a profile it does not have."""
    experiment, wanted = loaded.experiment, loaded.experiment.scheduler
    if wanted.config and ("scheduler", "config") not in loaded.kept:
        return []
    try:
        there = loaded.profiles
    except SchedulerError as error:
        message, _, remedy = str(error).partition("\n  ")
        return [problem(("scheduler", "config"), message, remedy[:1].lower() + remedy[1:])]
    if not there and wanted.name != OWN:
        there = (registry.get(wanted.name).scheduler_name,)
    elif not there and not (experiment.policy or experiment.why):
        # The user's own scheduler may run in the cluster.
        return []
    message = f"is no profile of {wanted.config}" if wanted.config else "is no profile of the scheduler that is started"
    remedy = f"write {' or '.join(there)}" if there else "leave it out"
    return [
        problem(("workloads", index, "schedulerName"), f"{shown(each.schedulerName)} {message}", remedy)
        for index, each in enumerate(experiment.workloads)
        if each.schedulerName and each.schedulerName not in there
    ]


def references(experiment: ExperimentSpec) -> Iterator[tuple[Where, str]]:
    """Every file that an experiment names, with the place where it is named."""
    for index, location in enumerate(experiment.setup):
        yield ("setup", index), location
    for index, workload in enumerate(experiment.workloads):
        if workload.manifest:
            yield ("workloads", index, "manifest"), workload.manifest
        if workload.arrival.trace is not None:
            yield ("workloads", index, "arrival", "trace", "file"), workload.arrival.trace.file
        if workload.replay is not None:
            yield ("workloads", index, "replay", "file"), workload.replay.file
    if experiment.scheduler.config:
        yield ("scheduler", "config"), experiment.scheduler.config
    for key, policy in (("policy", experiment.policy), ("whyPolicy", experiment.whyPolicy)):
        if policy.endswith(".py"):
            yield (key,), policy
    if experiment.baseline:
        yield ("baseline",), experiment.baseline


def overridden(loaded: LoadedExperiment, experiment: ExperimentSpec, source: str) -> LoadedExperiment:
    """An experiment of the same workloads with other fields: the inputs are the files that it names then.

    Args:
        source: what overrides it, for errors.
    """
    before, now = dict(references(loaded.experiment)), dict(references(experiment))
    gone = {loaded.kept[where] for where, location in before.items() if now.get(where) != location}
    inputs = {name: text for name, text in loaded.inputs.items() if name not in gone}
    found = replace(loaded, experiment=experiment, inputs=inputs, kept=dict(loaded.kept))
    for where, location in now.items():
        if before.get(where) != location:
            _read(found, where, location, source)
    if problems := _profile_problems(found):
        raise SpecError(problems, source)
    return found


def with_prices(loaded: LoadedExperiment, file: Path) -> tuple[LoadedExperiment, Prices]:
    """An experiment whose inputs include the user's own file of machine prices, and these prices."""
    prices = with_own(file)
    kept_as = _kept_as(loaded, "prices.yaml")
    return replace(loaded, inputs={**loaded.inputs, kept_as: file.read_text(encoding="utf-8")}), prices


def _read(loaded: LoadedExperiment, where: Where, location: str, source: str) -> None:
    if "trace" in where:
        _read_trace(loaded, where, location, source)
        return
    # A recording may be larger than other files.
    most = {"most": MOST_BYTES} if "replay" in where else {}
    name, text = read_text(location, loaded.directory, path_text(where), source, **most)
    loaded.kept[where] = _kept_as(loaded, Path(location).name if where[0] != "baseline" else KEPT_AS)
    loaded.inputs[loaded.kept[where]] = text
    if where[0] == "setup":
        loaded.setup.extend(objects_of(text, name))
        return
    if where[0] != "workloads":
        return
    workload = loaded.experiment.workloads[int(where[1])]
    if where[-1] == "manifest":
        if wrong := replacement_problems(text, workload.replace, ("workloads", where[1], "replace")):
            raise SpecError(wrong, source)
        objects_of(filled(text, workload.replace, 1), name)
        loaded.manifests[workload.name] = text
    elif workload.replay is not None:
        loaded.recordings[workload.name] = recording(text, name)


def _read_trace(loaded: LoadedExperiment, where: Where, location: str, source: str) -> None:
    workload = loaded.experiment.workloads[int(where[1])]
    trace = workload.arrival.trace
    if trace is None:
        return
    place, kept_as = path_text(where), _kept_as(loaded, Path(location).name)
    loaded.kept[where] = kept_as
    file = large_file(location, loaded.directory, place, source, MOST_BYTES)
    if file is None:
        name, text = read_text(location, loaded.directory, place, source)
        loaded.inputs[kept_as] = text
        loaded.traces[workload.name] = trace_jobs(partial(io.StringIO, text), trace, name)
        return
    kept = io.StringIO()
    opened = partial(file.open, encoding="utf-8-sig", newline="")
    try:
        loaded.traces[workload.name] = trace_jobs(opened, trace, location, kept)
    except OSError as reason:
        raise SpecError([Problem(place, f"cannot be read: {reason.strerror}")], source) from None
    except UnicodeDecodeError:
        raise SpecError([Problem(place, "is not a text in UTF-8", "write the path of a CSV file")], source) from None
    # Of a large trace, a report keeps only the jobs that were replayed.
    loaded.inputs[kept_as] = kept.getvalue()


def _kept_as(loaded: LoadedExperiment, name: str) -> str:
    """A name for a copy of an input that no other input has."""
    stem, dot, suffix = name.partition(".")
    number = 1
    while name in loaded.inputs:
        number += 1
        name = f"{stem}-{number}{dot}{suffix}"
    return name


def _with_baseline(loaded: LoadedExperiment, source: str) -> LoadedExperiment:
    """An experiment whose expectations know the values of its baseline: the medians of its repetitions."""
    # Most experiments have none.
    from kumulus.extras.lab.report.model import report_of

    experiment, name = loaded.experiment, loaded.experiment.baseline
    try:
        report = report_of(loaded.inputs[KEPT_AS], name)
        if report.metadata.experiment != experiment.name:
            raise LabError(f"{name} is of the experiment {shown(report.metadata.experiment)}")
        if report.results.status == "partial":
            raise LabError(f"{name} is of a run that was cut off")
    except LabError as error:
        raise SpecError([Problem("baseline", str(error), _REMEDY)], source) from None
    wrong: list[Problem] = []
    found: list[Expectation] = []
    for index, each in enumerate(experiment.expect):
        if not each.of_baseline:
            found.append(each)
            continue
        measures = (test.details.measures for test in report.results.tests)
        if values := [known[each.measure] for known in measures if each.measure in known]:
            found.append(each.against(statistics.median(values)))
        else:
            wrong.append(Problem(f"expect[{index}].measure", f"{each.measure} is not in the baseline", _REMEDY))
    if wrong:
        raise SpecError(wrong, source)
    return replace(loaded, experiment=experiment.model_copy(update={"expect": found}), baseline=report)
