"""The jobs of a recorded trace in the order in which they are created: as recorded, or drawn by the seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import Loaded
from kumulus.extras.lab.file.trace import TraceJob
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.lab.plan.claims import as_taken
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.pod import WHOLE_GPU

State = tuple[Any, ...]
"""The state of a source of random numbers."""
T = TypeVar("T")


def jobs_drawn(loaded: Loaded, workload: Workload, gpus: int, source: random.Random) -> list[TraceJob]:
    """A workload's recorded jobs, in the order of their creation.

    Drawn jobs come one right after the other, as their recorded times do not fit the drawn order.

    Args:
        loaded: the experiment.
        workload: whose jobs.
        gpus: of the cluster.
        source: of random numbers, of the experiment's seed.
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


def drawn(pods: Sequence[Pod], gpu_milli: int, inflate: float | None, source: random.Random) -> list[Pod]:
    """The stream of pods: :func:`drawn_from` with what each of them asks for.

    Args:
        pods: of the trace.
        gpu_milli: milli-GPU of all GPUs together.
        inflate: the share, such as 1.3 for 130 %; None for every pod once.
        source: of random numbers.
    """
    return drawn_from(pods, lambda pod: pod.total_gpu_milli, gpu_milli, inflate, source)


def drawn_from(
    items: Sequence[T], asks: Callable[[T], int], gpu_milli: int, inflate: float | None, source: random.Random
) -> list[T]:
    """All pods once in a random order, then pods drawn from them until all together ask for a share of the GPUs.

    As in the published study, the first pod that would exceed the share ends the stream. If the pods exceed the share
    to begin with, pods drawn at random are left out.

    Args:
        items: pods of the trace, or jobs.
        asks: the milli-GPU that one asks for.
        gpu_milli: milli-GPU of all GPUs together.
        inflate: the share, such as 1.3 for 130 %; None for every pod once.
        source: of random numbers.
    """
    stream = list(items)
    source.shuffle(stream)
    if inflate is None:
        return stream
    wanted, demand = inflate * gpu_milli, sum(map(asks, stream))
    if not demand:
        raise LabError("no task asks for a GPU, so inflate has nothing to reach\n  Leave inflate out")
    while demand > wanted:
        demand -= asks(stream.pop(source.randrange(len(stream))))
    if len(stream) < len(items):
        return stream
    while True:
        item = items[source.randrange(len(items))]
        if demand + asks(item) > wanted:
            return stream
        demand += asks(item)
        stream.append(item)
