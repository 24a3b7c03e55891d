"""A number of GPUs as workers on machines, for traces that do not say how a job was spread."""

from __future__ import annotations

from kumulus.extras.lab.policies.pod import WHOLE_GPU
from kumulus.extras.lab.traces.reading import Notes

PER_MACHINE = 8
"""GPUs of a machine, where the trace does not say: the usual ones have eight."""


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
