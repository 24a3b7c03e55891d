"""When each job of a workload arrives, in seconds from the experiment's start."""

from __future__ import annotations

from collections.abc import Sequence

from kumulus.extras.lab.file.trace import TraceJob
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.lab.plan.draws import stream


def arrivals(workload: Workload, seed: int, trace: Sequence[TraceJob] = ()) -> list[float]:
    """The times, in ascending order.

    Args:
        workload: whose jobs.
        seed: of the experiment.
        trace: the jobs of its trace, when it has one.
    """
    plan = workload.arrival
    if plan.trace is not None:
        return [plan.after + job.arrival for job in trace]
    if plan.rate is not None:
        return [plan.after + number / plan.rate for number in range(workload.jobs)]
    if plan.poisson is not None:
        source, now, times = stream(seed, workload.name, "arrival"), plan.after, []
        for _ in range(workload.jobs):
            times.append(now)
            now += source.expovariate(plan.poisson)
        return times
    return [plan.after] * workload.jobs
