"""Philly as adaptdl reduced it: one CSV line for each job.

Source: petuum/adaptdl, branch osdi21-artifact, simulator/traces/philly.csv (Qiao et al., OSDI 2021).

Columns: `timestamp`, when it was submitted, a date; `duration` in seconds; `num_gpus`; `gpu_time`, GPU-seconds, which
follows from these; `cluster`, the virtual cluster. CPU, memory, users and machines are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kumulus.extras.lab.traces.formats.base import Format, one_file
from kumulus.extras.lab.traces.formats.gangs import workers_of
from kumulus.extras.lab.traces.reading import BadRow, Notes, rows
from kumulus.extras.lab.traces.task import Task

_NEEDED = ("timestamp", "duration", "num_gpus")


def _tasks(file: Path, notes: Notes) -> Iterator[Task]:
    for line, row in rows(file, notes, _NEEDED):
        try:
            arrival = row.time("timestamp")
            assert arrival is not None
            workers, gpus, share = workers_of(row.whole("num_gpus", 1), notes)
            duration = row.number("duration")
            yield Task(f"job-{line}", arrival, duration, workers, gpus=gpus, gpu_milli=share, user=row.text("cluster"))
        except BadRow as error:
            notes.reject(file, line, str(error))


FORMAT = Format(
    "philly-csv", "philly.csv", "Microsoft's Philly, reduced to a CSV file by adaptdl",
    "https://github.com/petuum/adaptdl",
    one_file("philly.csv", _tasks),
)  # fmt: skip
