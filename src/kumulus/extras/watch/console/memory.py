"""What the page remembers of a live cluster: a bounded hour, in the format of recorded runs."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from kumulus.extras.schedulers.kinds import JobReport
from kumulus.extras.watch.history.document import History, Sort
from kumulus.extras.watch.history.forgetting import since
from kumulus.extras.watch.history.queues import Queues
from kumulus.extras.watch.history.recorder import Facts, JobKey, Recorder
from kumulus.extras.watch.live import fleet, reports
from kumulus.extras.watch.live.fleet import Live, Take
from kumulus.extras.watch.live.node import ClusterNode
from kumulus.extras.watch.live.pod import ClusterPod
from kumulus.kube.watch import WatchEvent
from kumulus.model.words import counted

# The job that a PodGroup without an owner belongs to: the one whose pods name the group.
KIND = "PodGroup"
Source = tuple[str, str]


class GroupReports:
    """Tracks the groups that pods name, and the reports of objects on each."""

    def __init__(self) -> None:
        self._jobs: dict[JobKey, JobKey] = {}
        self._reports: dict[JobKey, dict[Source, JobReport]] = {}
        self._of: dict[Source, JobKey] = {}

    def pod(self, group: JobKey, job: JobKey) -> dict[Source, JobReport]:
        """A pod of a job names a group; returns the reports on the group, if it now belongs to another job."""
        known = self._jobs.get(group)
        # A group that several jobs use belongs to none of them.
        found = job if known in (None, job) else group
        self._jobs[group] = found
        return self._reports.get(group, {}) if found != known else {}

    def record(self, source: Source, report: JobReport | None) -> None:
        """Record what an object reports on a job, or that the object is gone."""
        if before := self._of.pop(source, None):
            left = self._reports[before]
            del left[source]
            if not left:
                del self._reports[before]
                if report is None:
                    self._jobs.pop(before, None)
        if report is not None and report.kind == KIND:
            group = self._of[source] = JobKey(report.name, report.kind, report.namespace)
            self._reports.setdefault(group, {})[source] = report

    def job(self, named: JobKey) -> JobKey:
        """The job that a name refers to."""
        return self._jobs.get(named, named)


SPAN = 3600.0
"""Seconds that are remembered."""

MOST_EVENTS = 250_000
"""If more events than this were added to the state at the beginning, the older half is forgotten, whatever its age."""

_SLACK = 600.0
_PODS = "pods"


class Cursor(NamedTuple):
    """How much a client already has: of which history, and how many rows of each table."""

    history: int = -1
    known: tuple[int, ...] = ()


class Memory:
    """Remembers a fleet; registers itself as the fleet's witness.

    Args:
        span: seconds that are remembered.
        most: events that are remembered with the state at their beginning.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        stack: str,
        live: Live,
        span: float = SPAN,
        most: int = MOST_EVENTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._span, self._most, self._clock = span, most, clock
        self._began, self._wall = clock(), time.time()
        self._recorder = Recorder({"title": stack, "scheduler": "", "beganMs": round(self._wall * 1000)})
        self._age = 0
        self._facts: dict[JobKey, dict[str, Facts]] = {}
        self._sources: dict[tuple[str, str], JobKey] = {}
        self._groups = GroupReports()
        self._queues = Queues(self._recorder, self._now)
        self._pods: dict[str, JobKey] = {}
        self._counts: Counter[JobKey] = Counter()
        self._faults: Counter[str] = Counter()
        self._on: dict[str, tuple[str, ...]] = {}
        self._more = self._fewer = 0
        self._primed = False
        for name, node in live.fleet.nodes.items():
            self.node(name, node)
        for key, pod in live.fleet.pods.items():
            self.pod(key, pod)
        self._more, self._primed = 0, True
        self._standing = self._at_the_beginning()
        live.fleet.witness = self

    def collections(self) -> dict[str, Take]:
        """The collections to follow besides nodes and pods, and what handles each."""
        jobs: dict[str, Take] = {path: partial(self._job, path, read) for path, read in reports.JOBS.items()}
        return fleet.together(jobs, self._queues.collections())

    # --- what changes ---

    def node(self, name: str, node: ClusterNode | None) -> None:
        """See :class:`kumulus.extras.watch.live.model.Witness`."""
        at, before = self._now(), self._on.get(name)
        faults = node.faults if node is not None else ()
        self._more += before is None and node is not None
        self._fewer += before is not None and node is None
        for fault in set(faults) - set(before or ()):
            self._faults[fault] += 1
            if self._faults[fault] == 1:
                self._recorder.happened(f"{fault} began", Sort.FAULT, at)
        for fault in set(before or ()) - set(faults):
            self._faults[fault] -= 1
            if not self._faults[fault]:
                del self._faults[fault]
                self._recorder.happened(f"{fault} is over", Sort.FAULT, at)
        if node is None:
            self._on.pop(name, None)
        else:
            self._on[name] = faults
        self._recorder.node(name, node, at)

    def pod(self, key: str, pod: ClusterPod | None) -> None:
        """See :class:`kumulus.extras.watch.live.model.Witness`."""
        at, before = self._now(), self._pods.get(key)
        if pod is None:
            if before is not None:
                del self._pods[key]
                self._recorder.pod(key, None, before, at)
                self._leave(before)
            return
        kind, _, name = pod.job.partition("/")
        job = self._pods[key] = JobKey(name, kind, pod.namespace)
        if pod.group:
            for source, report in self._groups.pod(JobKey(pod.group, KIND, pod.namespace), job).items():
                self._take_report(source, report)
        if before != job:
            self._counts[job] += 1
        self._put(job, _PODS, Facts(0, pod.queue, pod.priority, "", self._when(pod.created)))
        self._recorder.pod(key, pod, job, at)
        if before not in (None, job):
            self._leave(before)

    def _leave(self, job: JobKey) -> None:
        self._counts[job] -= 1
        if not self._counts[job]:
            del self._counts[job]
            self._put(job, _PODS, None)

    def _job(self, path: str, read: Callable[[Any], JobReport | None], event: WatchEvent[Any]) -> None:
        source = path, event.key
        report = None if event.kind == "DELETED" or event.item is None else read(event.item)
        self._groups.record(source, report)
        self._take_report(source, report)

    def _take_report(self, source: Source, report: JobReport | None) -> None:
        job = self._groups.job(JobKey(report.name, report.kind, report.namespace)) if report is not None else None
        before = self._sources.get(source)
        if before is not None and before != job:
            del self._sources[source]
            self._put(before, "".join(source), None)
        if report is not None and job is not None:
            self._sources[source] = job
            facts = Facts(report.size, report.queue, report.priority, report.says, self._when(report.created))
            self._put(job, "".join(source), facts)

    def _put(self, job: JobKey, source: str, facts: Facts | None) -> None:
        facts_by_source = self._facts.setdefault(job, {})
        if source == _PODS and facts is not None and source in facts_by_source:
            # A job began when the first of its pods did.
            times = [each for each in (facts.since, facts_by_source[source].since) if each is not None]
            facts = facts._replace(since=min(times, default=None))
        if facts is None:
            facts_by_source.pop(source, None)
        else:
            facts_by_source[source] = facts
        if not facts_by_source:
            del self._facts[job]
        self._recorder.job(job, together(facts_by_source), self._now())

    def cleared(self) -> None:
        """Forget jobs and queues, as this is another cluster now; nodes and pods are reported one by one."""
        for source, job in list(self._sources.items()):
            self._put(job, "".join(source), None)
        self._sources.clear()
        self._groups = GroupReports()
        self._queues.cleared()

    # --- what is asked ---

    @property
    def history(self) -> History:
        """What is remembered."""
        return self._recorder.history

    def tick(self) -> None:
        """Called at intervals: report nodes that came or went together, and forget what is old."""
        at, history = self._now(), self.history
        for count, word in ((self._more, "more"), (self._fewer, "fewer")):
            if count:
                self._recorder.happened(f"{counted(count, 'node')} {word}", Sort.RESIZE, at)
        self._more = self._fewer = 0
        history.end = at
        # What was there at the beginning and still is cannot be forgotten, however much it is.
        added = len(history.events) // 5 - self._standing
        if added > self._most:
            self._forget(history.events[(self._standing + added // 2) * 5])
        elif at - history.begin > (self._span + _SLACK) * 1000:
            self._forget(at - round(self._span * 1000))

    def _forget(self, begin: int) -> None:
        self._recorder.go_on(since(self.history, begin))
        self._standing = self._at_the_beginning()
        self._age += 1

    def _at_the_beginning(self) -> int:
        """The number of events that describe the state at the beginning."""
        return sum(at <= self.history.begin for at in self.history.events[::5])

    def news(self, cursor: Cursor) -> tuple[dict[str, Any] | None, Cursor]:
        """What a client does not have yet, or None if it has all, and its new cursor."""
        history = self.history
        tables = [name for name, value in vars(history).items() if name not in ("about", "begin", "end")]
        there = tuple(len(getattr(history, name)) for name in tables)
        whole = cursor.history != self._age
        if not whole and cursor.known == there:
            return None, cursor
        known = (0,) * len(tables) if whole else cursor.known
        news = {name: list(getattr(history, name)[count:]) for name, count in zip(tables, known, strict=True)}
        circumstances = {"whole": whole, "about": history.about, "begin": history.begin, "end": history.end}
        return news | circumstances, Cursor(self._age, there)

    def _now(self) -> int:
        # Whatever exists at the start is recorded at time 0.
        return round((self._clock() - self._began) * 1000) if self._primed else 0

    def _when(self, seconds: float) -> int | None:
        """A Unix time on this clock, or None unless it is before the start."""
        return round((seconds - self._wall) * 1000) if 0 < seconds < self._wall else None


def together(facts_by_source: dict[str, Facts]) -> Facts | None:
    """The combined facts that several objects give of one job; None if no object is left."""
    if not facts_by_source:
        return None
    all_of = list(facts_by_source.values())
    return Facts(
        max(each.size for each in all_of),
        next((each.queue for each in all_of if each.queue), ""),
        next((each.priority for each in all_of if each.priority), 0),
        ", ".join(dict.fromkeys(each.says for each in all_of if each.says)),
        min((each.since for each in all_of if each.since is not None), default=None),
    )
