"""Import a trace: read its files once, write tasks, stack and experiment, and sum up the result."""

import csv
import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.fields import MOST_JOBS
from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.traces.reading import TraceNotes
from kumulus.extras.lab.traces.summary import Sums, summary
from kumulus.extras.lab.traces.task import COLUMNS, Format
from kumulus.extras.lab.traces.writing import (
    EXPERIMENT_BEGINS,
    STACK_BEGINS,
    WantedExperiment,
    experiment_text,
    stack_text,
)
from kumulus.host import files as whole
from kumulus.host.pulumi_project import salt

LISTED = 10
"""Bad rows that are printed; all of them are in a file."""

_TASKS, _BAD_ROWS = ".tasks.csv", ".bad-rows.csv"
_OF_BAD_ROWS = ("file", "line", "why")


@dataclass(frozen=True)
class WrittenExperiment:
    """What an import wrote."""

    tasks: Path
    bad: Path | None
    lines: list[str]
    listed: list[str]
    """The first bad rows, a line each."""


class _BadRows:
    """Writes bad rows into a file, which is created for the first one."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path, self._stack = path, stack
        self._writer: Any = None
        self.first: list[str] = []

    def __call__(self, file: str, line: int, why: str) -> None:
        if self._writer is None:
            self._writer = csv.writer(self._stack.enter_context(_replacing(self.path)), lineterminator="\n")
            self._writer.writerow(_OF_BAD_ROWS)
        self._writer.writerow((file, line, why))
        if len(self.first) < LISTED:
            self.first.append(f"{file}, line {line}: {why}")


def import_trace(
    kind: Format,
    files: Sequence[Path],
    stack: Path,
    experiment: Path,
    *,
    machines: Sequence[EmptyNode] = (),
    columns: Mapping[str, str] = MappingProxyType({}),
    wanted: WantedExperiment | None = None,
) -> WrittenExperiment:
    """Import a trace.

    Args:
        stack: the stack file to write; the salt that Pulumi has put into it stays.
        experiment: the experiment file to write; tasks and bad rows are written next to it, under its name.
        columns: of the format csv, each column's heading by what it contains.
        machines: of the cluster, for traces that do not list them; added to those that do.
    """
    wanted = wanted or WantedExperiment()
    tasks_path, bad_path = experiment.with_suffix(_TASKS), experiment.with_suffix(_BAD_ROWS)
    _refuse_overwriting(files, (stack, experiment, tasks_path, bad_path))
    with ExitStack() as opened:
        bad = _BadRows(bad_path, opened)
        notes, sums = TraceNotes(bad), Sums()
        found = kind.read(files, notes, columns)
        everything = [*found.machines, *machines]
        if not everything:
            raise LabError(
                f"the format {kind.name} has no list of machines\n"
                "  Write --machines count=550,gpus=8,cpu=64,memory=512Gi for the cluster to play it on"
            )
        tasks = csv.writer(opened.enter_context(_replacing(tasks_path)), lineterminator="\n")
        tasks.writerow(COLUMNS.values())
        for task in found.tasks:
            sums.add(task)
            tasks.writerow(task.cells())
        if not sums.tasks:
            first = f": {bad.first[0]}" if bad.first else ""
            raise LabError(f"no row is a task{first}\n  {notes.rows:,} rows were read, {notes.bad:,} of them bad")
        for path, text in (
            (stack, stack_text(everything, kind.source, wanted) + salt(stack)),
            (experiment, experiment_text(experiment, stack, tasks_path, kind.source, wanted, sums)),
        ):
            with _replacing(path) as file:
                file.write(text)
    if not notes.bad:
        bad_path.unlink(missing_ok=True)
    if wanted.stay:
        # Unknown durations do not matter then.
        notes.left_out = type(notes.left_out)({k: n for k, n in notes.left_out.items() if "duration" not in k})
    lines = list(summary(everything, sums, notes, stay=wanted.stay))
    if sums.tasks > MOST_JOBS and wanted.limit is None and wanted.window is None:
        lines.append(f"an experiment takes {MOST_JOBS:,} tasks at most: choose a part by --window or --limit")
    return WrittenExperiment(tasks_path, bad.path if notes.bad else None, lines, bad.first)


def _refuse_overwriting(files: Sequence[Path], outputs: Sequence[Path]) -> None:
    inputs = {each.resolve() for each in files}
    for each in outputs:
        if each.resolve() in inputs:
            raise LabError(
                f"{each} would be overwritten, and is read\n  Write another --experiment, or another --stack"
            )


def first_lines(stack: Path, experiment: Path) -> dict[Path, str]:
    """The files that an import may write, with how the first line of each begins."""
    return {
        stack: STACK_BEGINS,
        experiment: EXPERIMENT_BEGINS,
        experiment.with_suffix(_TASKS): ",".join(COLUMNS.values()),
        experiment.with_suffix(_BAD_ROWS): ",".join(_OF_BAD_ROWS),
    }


@contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    """Write a text of any length, which replaces the file when the block ends without an error."""
    try:
        with whole.replacing_text(path) as text:
            yield text
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "\n  Make room, or write --experiment and --stack on another disk" if full else ""
        raise LabError(f"{path} cannot be written: {error.strerror}{remedy}") from None
