"""What each user, or queue, had: how long jobs waited, how much longer they took for it, their share over time.

A user is one that the trace names, or else the queue of the workload. Shares are of GPUs, including parts of them; if
no pod wants any, they are of CPUs. A job that is preempted begins anew, and what it had done is lost: both are part of
what it waited and took.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.states import JobRecord, PodRecord, span
from kumulus.extras.lab.measure.statistics import Between, Measured, Times, known

MOST_DRAWN = 9
"""How many users, those who had most, have a line of their own over time; the others share one."""
OTHERS = "others"
_MOMENTS = 200
# A job that ran for less counts as having run this long: the slowdown of one that ends at once would be unbounded
# (Feitelson and Rudolph, "Metrics and Benchmarking for Parallel Job Scheduling", 1998).
_SHORTEST = 1.0


@dataclass
class User:
    """One user."""

    pods: int = 0
    scheduled: int = 0
    waited: Times = field(default_factory=Times)
    """How long each job waited, see :mod:`kumulus.extras.lab.measure.by_user`."""
    slowdown: Times = field(default_factory=lambda: Times(resolution=0.0))
    """Of each job that completed."""
    had: float = 0.0
    """Resource-seconds of GPUs, or of CPUs."""
    unsure: float = 0.0
    """So many of them may be more, or fewer."""
    asked: float = 0.0
    """Likewise, if every pod had had its node at once."""
    allocations: list[tuple[float, float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Users:
    """All users of a repetition."""

    by_name: Mapping[str, User]
    of: str
    """Gpus or cpus: what shares are of."""
    until: float

    def measures(self) -> dict[str, Measured]:
        """Slowdowns of all jobs, and how fairly users were served; the latter only for two users or more."""
        slowed = [user.slowdown for user in self.by_name.values()]
        all_jobs = Times(0.0, [*chain(*(each.heard for each in slowed))], [*chain(*(each.unheard for each in slowed))])
        found = all_jobs.measures("slowdown")
        named = [user for name, user in self.by_name.items() if name and user.asked]
        if len(named) < 2:
            return found
        found["fairness.users"] = len(named)
        fair = {
            "fairness.jain": jain([min(1.0, user.had / user.asked) for user in named]),
            "fairness.jainShare": jain([user.had for user in named]),
        }
        had, unsure = (math.fsum(values) for values in zip(*((user.had, user.unsure) for user in named), strict=True))
        if isinstance(known(had, Between(had - unsure, had + unsure)), Between):
            # Whatever it is, it is one of so many users.
            return found | dict.fromkeys(fair, Between(1 / len(named), 1.0))
        return found | fair

    def shares(self) -> dict[str, list[float]]:
        """Each user's share of what all users had, at moments `t` in seconds; 0 where nobody had anything."""
        named = sorted((name for name in self.by_name if name), key=lambda name: (-self.by_name[name].had, name))
        if not named or not self.until:
            return {}
        times = [self.until * number / _MOMENTS for number in range(_MOMENTS + 1)]
        drawn = {name: _allocated_at(self.by_name[name].allocations, times) for name in named[:MOST_DRAWN]}
        if rest := named[MOST_DRAWN:]:
            drawn[OTHERS] = _allocated_at((each for name in rest for each in self.by_name[name].allocations), times)
        totals = [math.fsum(column) for column in zip(*drawn.values(), strict=True)]
        share = {
            name: [round(value / total, 4) if total > 0 else 0.0 for value, total in zip(values, totals, strict=True)]
            for name, values in drawn.items()
        }
        return {"t": [round(each, 3) for each in times], **share}


def users_of(records: ExperimentRecords, names: Mapping[str, str], until: float) -> Users:
    """What each user had.

    Args:
        names: the user of each job; pods of other jobs have none.
        until: seconds until the measurement ended.
    """
    pods = list(records.pods.values())
    gpus = any(record.gpus for record in pods)
    found: dict[str, User] = defaultdict(User)
    for record in pods:
        _count(found[names.get(record.job, "")], record, record.gpus if gpus else record.wants.cpu / 1000, until)
    for name, job in records.jobs.items():
        if job.seen:
            found[names.get(name, "")].waited.add(waited(job))
    for name, slowdown in slowdowns(records).items():
        found[names.get(name, "")].slowdown.add(slowdown)
    return Users(dict(found), "gpus" if gpus else "cpus", until)


def _count(user: User, record: PodRecord, amount: float, until: float) -> None:
    user.pods += 1
    end = until if record.ended is None else record.ended
    user.asked += amount * (end - record.created)
    if record.bound is None:
        return
    user.scheduled += 1
    user.had += amount * (end - record.bound)
    held = record.held(until)
    user.unsure += amount * (held.most - held.least)
    if amount:
        user.allocations.append((record.bound, end, amount))


def _allocated_at(allocations: Iterable[tuple[float, float, float]], times: Sequence[float]) -> list[float]:
    changes = sorted(change for start, end, amount in allocations for change in ((start, amount), (end, -amount)))
    now, next_change, found = 0.0, 0, []
    for time in times:
        while next_change < len(changes) and changes[next_change][0] <= time:
            now += changes[next_change][1]
            next_change += 1
        found.append(max(0.0, round(now, 6)))
    return found


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 where all are equal, 1/n where one of n has everything; 1 where nobody has anything.

    Source: Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301, 1984.

    Args:
        values: at least one, none negative.
    """
    squares = math.fsum(value * value for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else 1.0


def waited(job: JobRecord) -> Between | None:
    """Seconds from a job's first pod until all of its workers had a node for good; None while one has none."""
    return None if job.broken else job.between("first", "last")


def slowdowns(records: ExperimentRecords) -> dict[str, Between]:
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
