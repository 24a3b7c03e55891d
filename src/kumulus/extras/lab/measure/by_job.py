"""How long jobs waited, and how much longer they took for it: from a job's first pod to its last.

A job that is preempted begins anew, and what it had done is lost: both are part of what it waited and took.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence

from kumulus.extras.lab.measure.records import Records
from kumulus.extras.lab.measure.states import JobRecord, PodRecord, span
from kumulus.extras.lab.measure.statistics import Between

# A job that ran for less counts as having run this long: the slowdown of one that ends at once would be unbounded
# (Feitelson and Rudolph, "Metrics and Benchmarking for Parallel Job Scheduling", 1998).
_SHORTEST = 1.0


def waited(job: JobRecord) -> Between | None:
    """Seconds from a job's first pod until all of its workers had a node for good; None while one has none."""
    return None if job.broken else job.between("first", "last")


def slowdowns(records: Records) -> dict[str, Between]:
    """By the name of each job that has completed, the time that it took over the time that it takes if it never waits.

    It took from its first pod's creation to its last pod's end. If it never waits, the pods that succeeded run for as
    long as they did, in their order, as many at a time as it has workers.
    """
    pods: dict[str, list[PodRecord]] = defaultdict(list)
    for pod in records.pods.values():
        pods[pod.job].append(pod)
    jobs = ((name, of, records.jobs[name]) for name, of in pods.items())
    return {name: _slowdown(of, job) for name, of, job in jobs if _completed(of, job)}


def _completed(pods: Sequence[PodRecord], job: JobRecord) -> bool:
    if any(pod.ended is None for pod in pods) or job.succeeded < job.wanted:
        return False
    # One whose last pods were deleted, such as by the timeline, wants no more and has not completed.
    return max((pod.ended, pod.phase == "Succeeded") for pod in pods)[1]


def _slowdown(pods: Sequence[PodRecord], job: JobRecord) -> Between:
    took = span(pods, "created", "ended")
    assert took is not None, "each of its pods has ended"
    ran = [pod.ran() or Between(0.0, 0.0) for pod in pods if pod.phase == "Succeeded"]
    least, most = (max(_SHORTEST, _at_best(times, job.workers or len(ran))) for times in zip(*ran, strict=True))
    return Between(max(1.0, took.least / most), max(1.0, took.most / least))


def _at_best(seconds: Iterable[float], workers: int) -> float:
    """When the last of some pods ends if each begins as soon as one of so many workers is free."""
    free = [0.0] * workers
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)
