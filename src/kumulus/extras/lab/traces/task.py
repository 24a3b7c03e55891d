"""A task of a trace, in units of our own."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from kumulus.extras.lab.file.trace import MOST_GPUS
from kumulus.extras.lab.file.workload import MOST_WORKERS
from kumulus.extras.lab.traces.reading import BadRow
from kumulus.model.durations import LONGEST

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
class Task:
    """One job as a trace has it.

    Raises:
        BadRow: it has more workers or GPUs than an experiment's job may have, or runs for longer.
    """

    name: str
    """The trace's; not necessarily unique."""
    arrival: float
    """Seconds of the trace's own epoch."""
    duration: float | None = None
    """Seconds it ran; None where that is not known."""
    workers: int = 1
    """How many pods it has."""
    cpu: int = 0
    """Milli-CPU of each; 0 where the trace does not say."""
    memory: int = 0
    """MiB of each; likewise."""
    gpus: int = 0
    """GPUs of each."""
    gpu_milli: int = 0
    """Milli-GPU of each GPU: 1000, or less of a single one; 0 without GPUs."""
    models: tuple[str, ...] = ()
    """GPU models that it may run on; none means any."""
    priority: int | None = None
    """Larger goes first; None where the trace does not say."""
    user: str = ""
    """A user, queue or virtual cluster; empty where the trace does not say."""
    qos: str = ""
    """The trace's word for its quality of service; likewise."""

    def __post_init__(self) -> None:
        if self.workers > MOST_WORKERS:
            raise BadRow(f"has {self.workers:,} workers, more than {MOST_WORKERS:,}")
        if self.gpus > MOST_GPUS:
            raise BadRow(f"has {self.gpus:,} GPUs for a worker, more than {MOST_GPUS:,}")
        if self.duration is not None and self.duration > LONGEST:
            raise BadRow(f"runs for {self.duration:,.0f} s, longer than a year")


class TasksFile:
    """Writes tasks into an open file."""

    def __init__(self, file: TextIO) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(COLUMNS.values())

    def write(self, task: Task) -> None:
        """Write a task's line."""
        self._writer.writerow(
            (
                task.name,
                f"{task.arrival:.15g}",
                "" if task.duration is None else f"{task.duration:.15g}",
                task.workers,
                f"{task.cpu}m",
                f"{task.memory}Mi",
                task.gpus,
                task.gpu_milli,
                "|".join(task.models),
                "" if task.priority is None else task.priority,
                task.user,
                task.qos,
            )
        )
