"""The progress of each Job from the hub to a worker, followed through the hub's Workloads and the workers' pods.

All times are seconds on the client's clock, counted from the start: when the watch reported it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kumulus.extras.lab.measure.states import PodRecord, Timed, from_to, most_in_any_second, span
from kumulus.extras.lab.measure.statistics import Between, Measured, Times, known_time, only_known, rate
from kumulus.extras.lab.measure.views import PodView
from kumulus.extras.lab.plan.pods import PlannedJob
from kumulus.extras.schedulers.manifests import expected_pods
from kumulus.kube.objects import holds
from kumulus.kube.watch import WatchEvent

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"
CLUSTERS = "/apis/kueue.x-k8s.io/v1beta2/multikueueclusters"
# Pods that come, 1, and go, -1, at a time: by Job and cluster.
_Changes = dict[str, dict[str, list[tuple[Between, int]]]]
# A worker's Job controller creates the first pod, or the next one, well within these seconds; so does the hub learn
# that there will be none, as the Job is over.
_PODS_WITHIN = 30.0


@dataclass(slots=True)
class JobProgress(Timed):
    """The progress of a Job."""

    workers: int
    created: float | None = None
    """When the hub accepted it; None before."""
    dispatched: float | None = None
    """When the hub first knew that a worker had admitted it."""
    latest: float = 0.0
    """When the hub first knew so of its present worker."""
    cluster: str = ""
    """Its present worker; empty while it waits."""
    completed: float | None = None
    """When the hub first reported that it had."""
    failed: bool = False
    """Whether the hub reports that it has."""
    gone: bool = False
    """Whether its Workload was deleted before that, such as with its Job."""
    requeued: int = 0
    begun: dict[tuple[str, str], None] = field(default_factory=dict)
    """Where its pods have run: the cluster, and the UID of the Job there."""
    ended: set[str] = field(default_factory=set)
    """The clusters on which pods of it have completed."""

    @property
    def over(self) -> bool:
        """Whether it has completed or failed."""
        return self.completed is not None or self.failed


class Dispatching:
    """The progress of every Job of a repetition.

    Args:
        hub: what the hub is called.
        workers: what its workers are called.
    """

    def __init__(self, hub: str, workers: Sequence[str], jobs: Iterable[PlannedJob], namespace: str) -> None:
        self.hub = hub
        self.workers = tuple(workers)
        self.changed = 0.0
        self.connected: dict[str, bool] = {}
        self._namespace = namespace
        self._of_plan: dict[str, list[str]] = {}
        self.jobs: dict[str, JobProgress] = {}
        for job in jobs:
            for each in job.objects:
                if each["kind"] == "Job":
                    name = str(each["metadata"]["name"])
                    self.jobs[name] = JobProgress(max(1, expected_pods(each)))
                    self._of_plan.setdefault(job.name, []).append(name)
        self._deleted: set[str] = set()
        self._names: dict[str, str] = {}
        self._on: Counter[str] = Counter()

    def created(self, job: PlannedJob, now: float) -> None:
        """The hub has accepted a job."""
        for name in self._of_plan.get(job.name, ()):
            if self.jobs[name].created is None:
                self.jobs[name].created = now

    def deleted(self, job: PlannedJob) -> None:
        """The timeline deletes a job, which then does not count as lost."""
        self._deleted.update(self._of_plan.get(job.name, ()))

    def workload(self, event: WatchEvent[Any], now: float, since: float = math.inf) -> None:
        """Something has happened to a Workload of the hub.

        Args:
            event: as the watch reports it, objects as in JSON.
            since: since when it may be so; it was heard of at once unless that is earlier.
        """
        found = event.item
        name = self._names.get(event.key) or _job_of(found)
        if name not in self.jobs or not event.key.startswith(f"{self._namespace}/"):
            return
        self._names[event.key] = name
        job = self.jobs[name]
        if job.created is None:
            job.reach("created", now, since)
        if found is not None:
            self._status(job, found.get("status") or {}, now, since)
        # Kueue creates a Workload again if only the Workload was deleted, but not if its Job was.
        job.gone = event.kind == "DELETED" and not job.over
        if job.gone:
            self._leaves(job)

    def _status(self, job: JobProgress, status: Mapping[str, Any], now: float, since: float) -> None:
        cluster = str(status.get("clusterName") or "")
        if cluster != job.cluster and not job.over:
            if job.cluster:
                job.requeued += 1
                self._leaves(job)
            if cluster:
                self._on[cluster] += 1
                job.cluster, job.latest = cluster, now
                if job.dispatched is None:
                    job.reach("dispatched", now, since)
            self.changed = now
        for each in status.get("conditions") or ():
            if each.get("type") == "Finished" and each.get("status") == "True" and not job.over:
                self.changed = now
                if each.get("reason") == "Failed":
                    job.failed = True
                else:
                    job.completed = now
                if job.cluster:
                    self._on[job.cluster] -= 1

    def _leaves(self, job: JobProgress) -> None:
        if job.cluster:
            self._on[job.cluster] -= 1
            job.cluster = ""

    def reach(self, event: WatchEvent[Any]) -> tuple[str, bool] | None:
        """The worker of an event, and whether the hub reaches it now; None if that has not changed."""
        name, found = event.key, event.item
        if name not in self.workers or found is None or event.kind == "DELETED":
            return None
        before, active = self.connected.get(name), holds(found, "Active")
        self.connected[name] = active
        return None if before in (None, active) else (name, active)

    def pod(self, cluster: str, pod: PodView) -> None:
        """A pod was seen in a cluster."""
        name, uid = pod.owner
        job = self.jobs.get(name)
        if job is None:
            return
        if pod.phase in ("Running", "Succeeded"):
            job.begun[cluster, uid] = None
        if pod.phase == "Succeeded":
            job.ended.add(cluster)

    @property
    def waiting(self) -> int:
        """Jobs that the hub has accepted and that are on no worker."""
        return sum(job.created is not None and not (job.over or job.gone or job.cluster) for job in self.jobs.values())

    @property
    def unfinished(self) -> int:
        """Jobs that are still in progress."""
        return sum(not (job.over or job.gone) and name not in self._deleted for name, job in self.jobs.items())

    @property
    def dispatched(self) -> int:
        """Jobs that are, or were, on a worker."""
        return sum(job.dispatched is not None for job in self.jobs.values())

    def sampled(self) -> dict[str, float]:
        """How many Jobs are where at the moment, by columns of a series."""
        return {
            "jobs waiting": self.waiting,
            **{f"jobs on {name}": self._on[name] for name in self.workers},
            "jobs completed": sum(job.completed is not None for job in self.jobs.values()),
        }

    def lost(self, pods: Iterable[PodRecord], now: float, away: Iterable[str] = ()) -> list[str]:
        """Jobs that have neither completed, nor wait in the hub's queue, nor have a live pod.

        Args:
            away: workers that cannot be seen at the moment; their Jobs are not lost.
        """
        last: dict[str, float] = {}
        for each in pods:
            ended = math.inf if each.ended is None else each.ended
            last[each.owner] = max(ended, last.get(each.owner, 0.0))
        gone = frozenset(away)
        found = []
        for name, job in self.jobs.items():
            if job.created is None or job.completed is not None or name in self._deleted:
                continue
            if job.failed or job.gone:
                found.append(name)
                continue
            since = max(job.latest, last.get(name, 0.0))
            if job.cluster and job.cluster not in gone and now - since >= _PODS_WITHIN:
                found.append(name)
        return found

    def twice(self) -> dict[str, list[str]]:
        """Jobs that have run more than once as a whole, with the clusters on which they have."""
        return {name: [cluster for cluster, _ in job.begun] for name, job in self.jobs.items() if len(job.begun) > 1}

    def measures(self, pods: Iterable[PodRecord], lost: int) -> dict[str, Measured]:
        """The measures of dispatching, by their names."""
        jobs = self.jobs.values()
        found: dict[str, Measured] = {
            "jobs.dispatched": self.dispatched,
            "jobs.completed": sum(job.completed is not None for job in jobs),
            "jobs.requeued": sum(job.requeued for job in jobs),
            "jobs.lost": lost,
            "jobs.runTwice": len(self.twice()),
        }
        if self.dispatched:
            found["dispatch.ratePeak"] = most_in_any_second(jobs, "dispatched")
            took = known_time(span(jobs, "created", "dispatched"))
            if took is not None and (each := rate(self.dispatched, took)) is not None:
                found["dispatch.rate"] = each
        nodes, running = _whole(pods, self.jobs)
        for name, times in (("Dispatch", self._to_dispatch("")), ("Nodes", nodes), ("Run", running)):
            found |= times.measures(f"jobTimeTo{name}")
        return found

    def to_dispatch(self, cluster: str) -> dict[str, float]:
        """The spread of the time to dispatch, over the Jobs whose pods have run on a worker."""
        return only_known(self._to_dispatch(cluster).spread())

    def _to_dispatch(self, cluster: str) -> Times:
        times = Times()
        for job in self.jobs.values():
            if not cluster or cluster in {each for each, _ in job.begun}:
                times.add(job.between("created", "dispatched"))
        return times


def _whole(pods: Iterable[PodRecord], jobs: Mapping[str, JobProgress]) -> tuple[Times, Times]:
    """Seconds from each Job's creation until all of its pods had a node on one worker, and until all of them ran."""
    bound: _Changes = defaultdict(lambda: defaultdict(list))
    running: _Changes = defaultdict(lambda: defaultdict(list))
    for each in pods:
        for times, since in ((bound, each.when("bound")), (running, each.when("running"))):
            if since is not None:
                there = times[each.owner][each.cluster]
                there.append((since, 1))
                # A pod that has completed is not replaced; any other end leaves the Job without it.
                if (ended := each.when("ended")) is not None and each.phase != "Succeeded":
                    there.append((ended, -1))

    def until_whole(changes: _Changes) -> Times:
        times = Times()
        for name, job in jobs.items():
            whole = [at for each in changes[name].values() if (at := _reached(each, job.workers)) is not None]
            if (created := job.when("created")) is not None and whole:
                times.add(from_to(created, Between(*map(min, zip(*whole, strict=True)))))
        return times

    return until_whole(bound), until_whole(running)


def _reached(changes: Iterable[tuple[Between, int]], wanted: int) -> Between | None:
    """When there were first as many pods as wanted at one time, at the earliest and at the latest; None if never.

    It is the earliest if starts were as early, and ends as late, as they can have been.
    """
    changes = list(changes)
    early = _first(((when.least if change > 0 else when.most, change) for when, change in changes), wanted)
    late = _first(((when.most, change) for when, change in changes), wanted)
    return None if early is None or late is None else Between(early, late)


def _first(changes: Iterable[tuple[float, int]], wanted: int) -> float | None:
    there = 0
    # At the same moment, ends count before starts.
    for at, change in sorted(changes):
        there += change
        if there >= wanted:
            return at
    return None


def _job_of(workload: Any) -> str:
    owners = ((workload or {}).get("metadata") or {}).get("ownerReferences") or ()
    return next((str(each.get("name")) for each in owners if each.get("kind") == "Job"), "")
