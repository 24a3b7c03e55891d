"""What became of each pod, job and PodGroup, updated as events arrive; times are those of `states`."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.faulted import Faulted
from kumulus.extras.lab.measure.states import PREEMPTED, JobRecord, PodRecord, Timed
from kumulus.extras.lab.measure.statistics import Measured, Times
from kumulus.extras.lab.measure.views import FINAL, PodView
from kumulus.extras.watch.live.amounts import Amounts

_GATED = "SchedulingGated:"
GROUPS_VERSION = "scheduling.k8s.io/v1beta1"
_PLACED = "PodGroupInitiallyScheduled"


class ExperimentRecords:
    """Everything that is known of an experiment's pods and jobs.

    Args:
        jobs: name, workload and number of workers of each planned job.
        unmeasured: workloads whose pods are left out of the times and rates of scheduling.
    """

    def __init__(
        self,
        allocation: Allocation,
        jobs: Iterable[tuple[str, str, int]] = (),
        unmeasured: Collection[str] = frozenset(),
    ) -> None:
        self.unmeasured = unmeasured
        self.pods: dict[str, PodRecord] = {}
        self.jobs = {name: JobRecord(workload, workers) for name, workload, workers in jobs}
        self.allocation = allocation
        self.faulted = Faulted()
        self.groups = ObservedPodGroups()
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
        self.faulted.begin()

    def put(self, pod: PodView, now: float, since: float = math.inf) -> None:
        """Add or update a pod.

        Args:
            since: since when it may be so; it was heard of at once unless that is earlier.
        """
        if not pod.workload or pod.uid in self._strangers:
            self.stranger(pod)
            return
        record = self.pods.get(pod.uid) or self._created(pod, now, since)
        if record.ended is not None:
            return
        self._waits(record, pod, now)
        if pod.node and record.bound is None:
            self._bound(record, pod, now, since)
        if pod.disrupted and not record.disrupted:
            record.disrupted = pod.disrupted
            self.counts["preempted" if pod.disrupted == PREEMPTED else "disrupted"] += 1
        if pod.phase in ("Running", "Succeeded") and record.running is None:
            # What has succeeded has run: at some time since it was bound, where that was not heard of.
            bound = record.when("bound") if pod.phase == "Succeeded" else None
            record.reach("running", now, min(since, bound.least) if bound else since)
            self.changed = now
            self.counts["ran"] += 1
        record.phase = pod.phase
        if pod.phase in FINAL:
            self.counts["assumed"] += pod.assumed
            self._ended(record, now, since)

    def gone(self, uid: str, now: float, since: float = math.inf) -> None:
        """Record that a pod was deleted; the arguments are those of :meth:`put`."""
        if uid in self._strangers:
            self.allocation.release(*self._strangers.pop(uid))
        record = self.pods.get(uid)
        if record is not None and record.ended is None:
            record.phase = "Deleted"
            self._ended(record, now, since)

    def resized(self, job: str, workers: int, now: float) -> None:
        """Change the number of pods that a job should have: the ones that have a node may then be all of them.

        Args:
            workers: how many pods; 0 also for a job that is deleted.
        """
        record = self.jobs[job]
        before = record.partly
        record.workers, record.resized = workers, True
        self._whole(record, now, now)
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

    def _created(self, pod: PodView, now: float, since: float) -> PodRecord:
        record = PodRecord(pod.workload, pod.job, pod.wants, now)
        record.share, record.owner, record.cluster, record.group = pod.share, pod.owner[0], pod.cluster, pod.group
        record.bare = pod.bare
        record.reach("created", now, since)
        self.pods[pod.uid] = record
        self.counts["created"] += 1
        self.untried += 1
        self.changed = now
        job = self._job(pod)
        before = job.partly
        job.seen += 1
        if job.first is None:
            job.reach("first", now, since)
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

    def _bound(self, record: PodRecord, pod: PodView, now: float, since: float) -> None:
        self._tried(record)
        record.reach("bound", now, since)
        record.node = pod.node
        self.counts["bound"] += 1
        self.first_bound = now if self.first_bound is None else self.first_bound
        self.changed = now
        self.allocation.bind(pod.node, record.wants, record.share)
        job = self._job(record)
        before = job.partly
        job.placed += 1
        self._whole(job, now, since)
        self._partly(before, job)

    @staticmethod
    def _whole(job: JobRecord, now: float, since: float) -> None:
        if (job.last is None or job.broken) and 0 < job.wanted <= job.placed + job.succeeded:
            job.reach("last", now, since)
            job.broken = False

    def _ended(self, record: PodRecord, now: float, since: float) -> None:
        record.reach("ended", now, since)
        self.changed = now
        self.counts["ended"] += 1
        self.counts[record.phase.lower()] += 1
        self.counts["preempted for good"] += record.bare and record.disrupted == PREEMPTED
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
        if record.phase == "Succeeded":
            job.succeeded += 1
        else:
            self._lost(job)
        self._partly(before, job)

    @staticmethod
    def _lost(job: JobRecord) -> None:
        job.lost += 1
        # A job of unknown size may have wanted every worker that it had.
        if job.placed + job.succeeded < job.wanted or not (job.workers or job.resized):
            job.broken = True

    def _partly(self, before: bool, job: JobRecord) -> None:
        self.partly += job.partly - before
        self.partly_peak = max(self.partly_peak, self.partly)


@dataclass(slots=True)
class GroupRecord(Timed):
    """A PodGroup of a gang."""

    created: float
    minimum: int
    """How many of its pods get nodes together or not at all."""
    bound: float | None = None
    """When its condition said that it was placed; None if it did not."""
    judged: bool = False
    """Whether its condition has said that it was placed, or that it was not."""


class ObservedPodGroups:
    """The PodGroups of gangs that were seen, by `namespace/name`."""

    def __init__(self) -> None:
        self._seen: dict[str, GroupRecord] = {}

    def put(self, name: str, found: Mapping[str, Any], now: float, since: float) -> None:
        """Add or update a group; the times are those of :meth:`ExperimentRecords.put`.

        That of a Job that is no gang, which Kubernetes makes too, is placed with its first pod: it would say nothing.
        """
        gang = found["spec"]["schedulingPolicy"].get("gang")
        if gang is None:
            return
        record = self._seen.get(name)
        if record is None:
            record = self._seen[name] = GroupRecord(now, gang.get("minCount", 1))
            record.reach("created", now, since)
        conditions = (found.get("status") or {}).get("conditions") or ()
        said = [each["status"] for each in conditions if each["type"] == _PLACED]
        record.judged |= bool(said)
        if "True" in said and record.bound is None:
            record.reach("bound", now, since)

    def measures(self, pods: Iterable[PodRecord]) -> dict[str, Measured]:
        """The measures of the groups of gangs that an experiment's pods name; none if they name none.

        Nor are there any if pods have nodes and no group's condition says a word: another scheduler places the pods
        without looking at it.
        """
        placed: Counter[str] = Counter()
        preempted = set[str]()
        for pod in pods:
            if pod.group in self._seen:
                placed[pod.group] += pod.bound is not None and (pod.ended is None or pod.phase == "Succeeded")
                if pod.disrupted == PREEMPTED:
                    preempted.add(pod.group)
        groups = {name: self._seen[name] for name in placed}
        if not groups or (placed.total() and not any(group.judged for group in groups.values())):
            return {}
        took = Times()
        for group in groups.values():
            took.add(group.between("created", "bound"))
        return {
            "groups.total": len(groups),
            "groups.admitted": sum(group.bound is not None for group in groups.values()),
            "groups.partlyPlaced": sum(0 < placed[name] < group.minimum for name, group in groups.items()),
            "groups.preempted": len(preempted),
            **took.measures("groupTimeToPlacement"),
        }


def victims(pods: Iterable[PodRecord]) -> dict[str, int]:
    """How many pods of each group the scheduler evicted for others, the most first."""
    return dict(Counter(pod.group for pod in pods if pod.group and pod.disrupted == PREEMPTED).most_common())
