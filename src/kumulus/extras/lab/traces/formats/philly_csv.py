"""Philly as adaptdl reduced it: one CSV line for each job.

Source: petuum/adaptdl, branch osdi21-artifact, simulator/traces/philly.csv (Qiao et al., OSDI 2021).

Columns: `timestamp`, when it was submitted, a date; `duration` in seconds; `num_gpus`; `gpu_time`, GPU-seconds, which
follows from these; `cluster`, the virtual cluster. CPU, memory, users and machines are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kumulus.extras.lab.policies.pod import WHOLE_GPU
from kumulus.extras.lab.traces.formats.base import Format, one_file
from kumulus.extras.lab.traces.reading import BadRow, Notes, rows
from kumulus.extras.lab.traces.task import Task

_NEEDED = ("timestamp", "duration", "num_gpus")
PER_MACHINE = 8
"""GPUs of a machine, where the trace does not say: the usual ones have eight."""


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


def workers_of(gpus: int, notes: Notes) -> tuple[int, int, int]:
    """How many workers a job of so many GPUs has, the GPUs of each, and the milli-GPU of each GPU.

    Args:
        gpus: of the job.
        notes: counts jobs that cannot be divided evenly, whose last worker is given as many GPUs as the others.
    """
    if gpus <= PER_MACHINE:
        return 1, gpus, WHOLE_GPU if gpus else 0
    workers = -(-gpus // PER_MACHINE)
    each = -(-gpus // workers)
    if workers * each != gpus:
        notes.left_out[f"has GPUs that are no multiple of its workers: asks for up to {PER_MACHINE - 1} more"] += 1
    return workers, each, WHOLE_GPU
