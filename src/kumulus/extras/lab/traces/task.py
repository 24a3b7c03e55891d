"""A task of a trace, in units of our own; and a format of traces, which reads files into machines and tasks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.trace import MOST_GPUS
from kumulus.extras.lab.file.workload import MOST_WORKERS
from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.traces.reading import BadRow, TraceNotes
from kumulus.model.durations import LONGEST_S

COLUMNS: Mapping[str, str] = {
    "name": "name",
    "arrival": "arrival",
    "duration": "duration",
    "size": "workers",
    "cpu": "cpu",
    "memory": "memory",
    "gpus": "gpus",
    "gpuMilli": "gpuMilli",
    "gpuModels": "gpuModels",
    "priority": "priority",
    "user": "user",
    "qos": "qos",
}
"""The `columns` of an experiment that reads this file."""


@dataclass(frozen=True, slots=True)
class TraceTask:
    """One job as a trace has it.

    Raises:
        BadRow: it has more workers or GPUs than an experiment's job may have, or runs for longer.
    """

    name: str
    arrival: float
    """Seconds of the trace's own epoch."""
    duration: float | None = None
    """Seconds it ran; None where that is not known."""
    workers: int = 1
    cpu: int = 0
    """Milli-CPU of each; 0 where the trace does not say."""
    memory: int = 0
    """MiB of each; likewise."""
    gpus: int = 0
    """GPUs of each."""
    gpu_milli: int = 0
    """Milli-GPU of each GPU: 1000, or less of a single one; 0 without GPUs."""
    models: tuple[str, ...] = ()
    priority: int | None = None
    """Larger goes first; None where the trace does not say."""
    user: str = ""
    qos: str = ""

    def __post_init__(self) -> None:
        if self.workers > MOST_WORKERS:
            raise BadRow(f"has {self.workers:,} workers, more than {MOST_WORKERS:,}")
        if self.gpus > MOST_GPUS:
            raise BadRow(f"has {self.gpus:,} GPUs for a worker, more than {MOST_GPUS:,}")
        if self.duration is not None and self.duration > LONGEST_S:
            raise BadRow(f"runs for {self.duration:,.0f} s, longer than a year")

    def cells(self) -> tuple[str | int, ...]:
        """Its line in a file of tasks, whose headings are those of `COLUMNS`."""
        return (
            self.name,
            f"{self.arrival:.15g}",
            "" if self.duration is None else f"{self.duration:.15g}",
            self.workers,
            f"{self.cpu}m",
            f"{self.memory}Mi",
            self.gpus,
            self.gpu_milli,
            "|".join(self.models),
            "" if self.priority is None else self.priority,
            self.user,
            self.qos,
        )


@dataclass(frozen=True)
class TraceContents:
    """What a trace's files contain."""

    machines: list[EmptyNode]
    tasks: Iterator[TraceTask]
    """Read lazily, one at a time."""


Read = Callable[[Sequence[Path], TraceNotes, Mapping[str, str]], TraceContents]
"""Reads files; takes the user's headings of columns as well, by what they contain."""


@dataclass(frozen=True)
class Format:
    """A format of traces."""

    name: str
    files: str
    about: str
    source: str
    read: Read
    """Opens the files."""


def exactly(files: Sequence[Path], least: int, most: int, wanted: str) -> None:
    """Check the number of files."""
    if not least <= len(files) <= most:
        raise LabError(f"{len(files)} files are named; this format takes {wanted}")


def one_file(wanted: str, tasks: Callable[[Path, TraceNotes], Iterator[TraceTask]]) -> Read:
    """The function of a format that has one file of tasks, and no machines.

    Args:
        wanted: the file, for the message about too many.
    """

    def read(files: Sequence[Path], notes: TraceNotes, columns: Mapping[str, str]) -> TraceContents:
        exactly(files, 1, 1, wanted)
        return TraceContents([], tasks(files[0], notes))

    return read
