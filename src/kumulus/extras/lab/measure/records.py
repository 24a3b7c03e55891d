"""What became of each pod and of each job, updated as events arrive.

All times are seconds on the client's monotonic clock from the experiment's start to when the watch reported an event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.views import FINAL, PodView
from kumulus.extras.watch.live.amounts import Amounts

PREEMPTED = "PreemptionByScheduler"
_GATED = "SchedulingGated:"


@dataclass(slots=True)
class PodRecord:
    """A pod.

    Attributes:
        workload, job: what it belongs to.
        wants: what it requests.
        created, bound, running, ended: when it was first seen in this state; None if it was not.
        node: where it is, or was, bound.
        phase: its last phase; Deleted when it was deleted before it ended.
        waits: why it has no node, according to the scheduler.
        tried: whether the scheduler has tried it.
        disrupted: why it was evicted; empty when it was not.
        share: milli-GPU that it also requests of one GPU.
        owner: the name of the Job of batch/v1 that created it; empty for any other pod.
        cluster: its cluster's name among several that are measured together.
    """

    workload: str
    job: str
    wants: Amounts
    created: float
    bound: float | None = None
    running: float | None = None
    ended: float | None = None
    node: str = ""
    phase: str = "Pending"
    waits: str = ""
    tried: bool = False
    disrupted: str = ""
    share: int = 0
    owner: str = ""
    cluster: str = ""

    @property
    def pending(self) -> bool:
        """Whether it is alive and has no node."""
        return self.ended is None and self.bound is None


@dataclass(slots=True)
class JobRecord:
    """A job.

    Attributes:
        workload: what it belongs to.
        workers: how many pods it should have; 0 where that is not known.
        resized: whether a timeline has set that, so that 0 is none at all.
        first: when its first pod was created.
        last: when it became whole: its last worker was bound, or the others are no longer wanted; None if it never was.
        seen: all its pods, present and past.
        placed: pods that have a node now.
        succeeded: pods that completed.
    """

    workload: str
    workers: int
    resized: bool = False
    first: float | None = None
    last: float | None = None
    seen: int = 0
    placed: int = 0
    succeeded: int = 0

    @property
    def wanted(self) -> int:
        """How many of its workers should be placed."""
        return self.workers if self.workers or self.resized else self.seen

    @property
    def partly(self) -> bool:
        """Whether some of its workers have a node, or have completed, and some do not."""
        return 0 < self.placed + self.succeeded < self.wanted


class Records:
    """Everything that is known of an experiment's pods and jobs.

    Args:
        allocation: updated with the pods.
        jobs: name, workload and number of workers of each planned job.
    """

    def __init__(self, allocation: Allocation, jobs: Iterable[tuple[str, str, int]] = ()) -> None:
        self.pods: dict[str, PodRecord] = {}
        self.jobs = {name: JobRecord(workload, workers) for name, workload, workers in jobs}
        self.allocation = allocation
        self.counts: Counter[str] = Counter()
        self.changed = 0.0
        self.nodes_changed = 0.0
        self.first_bound: float | None = None
        self.partly = 0
        self.partly_peak = 0
        self.untried = 0
        self._strangers: dict[str, tuple[str, Amounts, int]] = {}

    def begin(self) -> None:
        """Count from now on, where the clock starts anew."""
        self.changed = self.nodes_changed = 0.0
        self.allocation.begin()

    def put(self, pod: PodView, now: float) -> None:
        """Add or update a pod."""
        if not pod.workload or pod.uid in self._strangers:
            self.stranger(pod)
            return
        record = self.pods.get(pod.uid)
        if record is None:
            record = self._created(pod, now)
        if record.ended is not None:
            return
        self._waits(record, pod, now)
        if pod.node and record.bound is None:
            self._bound(record, pod, now)
        if pod.disrupted and not record.disrupted:
            record.disrupted = pod.disrupted
            self.counts["preempted" if pod.disrupted == PREEMPTED else "disrupted"] += 1
        if pod.phase == "Running" and record.running is None:
            record.running, self.changed = now, now
            self.counts["ran"] += 1
        record.phase = pod.phase
        if pod.phase in FINAL:
            self._ended(record, pod.phase, now)

    def gone(self, uid: str, now: float) -> None:
        """Record that a pod was deleted."""
        if uid in self._strangers:
            self.allocation.release(*self._strangers.pop(uid))
        record = self.pods.get(uid)
        if record is not None and record.ended is None:
            record.phase = "Deleted"
            self._ended(record, "Deleted", now)

    def resized(self, job: str, workers: int, now: float) -> None:
        """Change the number of pods that a job should have: the ones that have a node may then be all of them.

        Args:
            job: its name.
            workers: how many pods; 0 also for a job that is deleted.
            now: seconds from the start.
        """
        record = self.jobs[job]
        before = record.partly
        record.workers, record.resized = workers, True
        self._whole(record, now)
        self._partly(before, record)

    @property
    def complete(self) -> bool:
        """Whether every job has had as many pods as it should."""
        return all(job.seen >= job.workers for job in self.jobs.values())

    @property
    def pending(self) -> int:
        """Pods that have not ended and have no node."""
        return self.counts["created"] - self.counts["bound"] - self.counts["ended unbound"]

    @property
    def live(self) -> int:
        """Pods that have not ended."""
        return self.counts["created"] - self.counts["ended"]

    @property
    def running(self) -> int:
        """Pods that run, as far as the watch knows."""
        return self.counts["ran"] - self.counts["ended ran"]

    def stranger(self, pod: PodView) -> None:
        """Add a pod of no workload: it takes up room on its node and is not counted.

        Examples are YuniKorn's placeholders, and pods that were there before.
        """
        if pod.phase in FINAL:
            self.gone(pod.uid, self.changed)
        elif pod.node and pod.uid not in self._strangers:
            self._strangers[pod.uid] = (pod.node, pod.wants, pod.share)
            self.allocation.bind(pod.node, pod.wants, pod.share)

    def pending_by_reason(self) -> Counter[str]:
        """Pods without a node, by the scheduler's reason."""
        return Counter(record.waits or "not tried yet" for record in self.pods.values() if record.pending)

    def _created(self, pod: PodView, now: float) -> PodRecord:
        record = PodRecord(
            pod.workload, pod.job, pod.wants, now, share=pod.share, owner=pod.owner[0], cluster=pod.cluster
        )
        self.pods[pod.uid] = record
        self.counts["created"] += 1
        self.untried += 1
        self.changed = now
        job = self._job(pod)
        before = job.partly
        job.seen += 1
        job.first = now if job.first is None else job.first
        self._partly(before, job)
        return record

    def _job(self, pod: PodView | PodRecord) -> JobRecord:
        return self.jobs.setdefault(pod.job, JobRecord(pod.workload, 0))

    def _waits(self, record: PodRecord, pod: PodView, now: float) -> None:
        if not pod.waits:
            return
        record.waits = pod.waits
        # A pod with scheduling gates waits for whoever removes them, and not for a node.
        if not record.tried and not pod.waits.startswith(_GATED):
            self._tried(record)
            self.changed = now

    def _tried(self, record: PodRecord) -> None:
        if not record.tried:
            record.tried = True
            self.untried -= 1

    def _bound(self, record: PodRecord, pod: PodView, now: float) -> None:
        self._tried(record)
        record.bound, record.node = now, pod.node
        self.counts["bound"] += 1
        self.first_bound = now if self.first_bound is None else self.first_bound
        self.changed = now
        self.allocation.bind(pod.node, record.wants, record.share)
        job = self._job(record)
        before = job.partly
        job.placed += 1
        self._whole(job, now)
        self._partly(before, job)

    @staticmethod
    def _whole(job: JobRecord, now: float) -> None:
        if job.last is None and 0 < job.wanted <= job.placed + job.succeeded:
            job.last = now

    def _ended(self, record: PodRecord, phase: str, now: float) -> None:
        record.ended = self.changed = now
        self.counts["ended"] += 1
        self.counts[phase.lower()] += 1
        if record.running is not None:
            self.counts["ended ran"] += 1
        job = self._job(record)
        before = job.partly
        if record.bound is None:
            self.counts["ended unbound"] += 1
            self._tried(record)
        else:
            self.allocation.release(record.node, record.wants, record.share)
            job.placed -= 1
        if phase == "Succeeded":
            job.succeeded += 1
        self._partly(before, job)

    def _partly(self, before: bool, job: JobRecord) -> None:
        self.partly += job.partly - before
        self.partly_peak = max(self.partly_peak, self.partly)
