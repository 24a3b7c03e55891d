"""The jobs of a recorded trace in the order in which they are created: as recorded, or drawn by the seed."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from kumulus.extras.lab.file.load import Loaded
from kumulus.extras.lab.file.trace import TraceJob
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.lab.offline.stream import drawn_from
from kumulus.extras.lab.plan.claims import as_taken
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.pod import WHOLE_GPU

State = tuple[Any, ...]
"""The state of a source of random numbers."""


def jobs_drawn(loaded: Loaded, workload: Workload, gpus: int, source: random.Random) -> list[TraceJob]:
    """A workload's recorded jobs, in the order of their creation.

    Drawn jobs come one right after the other, as their recorded times do not fit the drawn order.

    Args:
        loaded: the experiment.
        workload: whose jobs.
        gpus: of the cluster.
        source: of random numbers, of the experiment's seed.

    Raises:
        LabError: the trace cannot be inflated.
    """
    recorded, trace = loaded.traces.get(workload.name, []), workload.arrival.trace
    if trace is None or (trace.inflate is None and trace.shuffle is None):
        return recorded
    stream = drawn_from(recorded, lambda job: _asks(job, workload), gpus * WHOLE_GPU, trace.inflate, source)
    return [replace(job, arrival=0.0) for job in stream]


def pods_recorded(loaded: Loaded) -> list[Pod]:
    """What the pods of all traces ask for, with an entry for each pod."""
    return [
        as_taken(pod, workload)
        for workload in loaded.experiment.workloads
        for job in loaded.traces.get(workload.name, [])
        if (pod := pod_recorded(job)) is not None
        for _ in range(job.size or workload.workers)
    ]


def pod_recorded(job: TraceJob) -> Pod | None:
    """What a pod of a recorded job asks for; None where the trace does not say."""
    asked = job.asked
    if asked is None:
        return None
    return Pod(asked.name, asked.cpu, asked.memory, asked.gpus, asked.gpu_milli, asked.models)


def _asks(job: TraceJob, workload: Workload) -> int:
    pod = pod_recorded(job)
    return pod.total_gpu_milli * (job.size or workload.workers) if pod is not None else 0
