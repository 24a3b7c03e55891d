"""The file of tasks that an import writes and an experiment's trace reads: CSV, a line for each task, with units."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import TextIO

from kumulus.extras.lab.traces.task import Task

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
