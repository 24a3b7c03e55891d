"""What a format is: a function from files to machines and tasks, with a description."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.offline.placing import Machine
from kumulus.extras.lab.traces.reading import Notes
from kumulus.extras.lab.traces.task import Task


@dataclass(frozen=True)
class Found:
    """What a trace's files contain."""

    machines: list[Machine]
    """Of the cluster, where the trace lists them."""
    tasks: Iterator[Task]
    """Read lazily, one at a time."""


@dataclass(frozen=True)
class Options:
    """What the user says about the files."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """For the generic format, each column's heading by what it contains."""


Read = Callable[[Sequence[Path], Notes, Options], Found]


@dataclass(frozen=True)
class Format:
    """A format of traces."""

    name: str
    """Used in the command."""
    files: str
    """Which files it takes, for the help."""
    about: str
    """What it is, in a line."""
    source: str
    """Where it is described or available."""
    read: Read
    """Opens the files."""


def exactly(files: Sequence[Path], least: int, most: int, wanted: str) -> None:
    """Check the number of files."""
    if not least <= len(files) <= most:
        raise LabError(f"{len(files)} files are named; this format takes {wanted}")


def one_file(wanted: str, tasks: Callable[[Path, Notes], Iterator[Task]]) -> Read:
    """The function of a format that has one file of tasks, and no machines.

    Args:
        wanted: the file, for the message about too many.
    """

    def read(files: Sequence[Path], notes: Notes, options: Options) -> Found:
        exactly(files, 1, 1, wanted)
        return Found([], tasks(files[0], notes))

    return read
