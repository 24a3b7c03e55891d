"""Records a run for later inspection: which pod was where and when, as the watches saw it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kumulus.extras.lab.measure.views import in_cluster, labelled
from kumulus.extras.lab.plan.pods import PlannedJob
from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.kinds import JobReport
from kumulus.extras.watch.history.document import History, Sort
from kumulus.extras.watch.history.queues import Queues
from kumulus.extras.watch.history.recorder import Facts, JobKey, Recorder
from kumulus.extras.watch.live import reports
from kumulus.extras.watch.live.fleet import Take, together
from kumulus.extras.watch.live.node import PlaceLabels, node_from
from kumulus.extras.watch.live.pod import ClusterPod, pod_from
from kumulus.kube.watch import WatchEvent

_WAITING_ROOMS = tuple(kind.read_at for kind in registry.object_kinds() if kind.says_why)
"""Where jobs wait before any of their pods is tried, so that no pod says why they wait."""
_HELPERS = frozenset({"PriorityClass", *(kind.name for kind in registry.object_kinds() if kind.job)})


class PlacementRecorder:
    """Records a repetition.

    Args:
        about: what is run, see :class:`History`.
        places: which labels say where nodes are.
        queues: in which queue the jobs of each workload wait.

    Attributes:
        collections: which other collections to follow, and what takes their events: the queues, and objects in which a
            scheduler says why a job waits.
        admitted: the jobs that a queue has admitted, by name.
    """

    def __init__(
        self, about: dict[str, Any], places: PlaceLabels, clock: Callable[[], float], queues: Mapping[str, str]
    ) -> None:
        self._recorder = Recorder(about)
        self._places = places
        self._clock = clock
        self._queues = queues
        self._begun = False
        says: dict[str, Take] = {path: partial(self._take_report, reports.JOBS[path]) for path in _WAITING_ROOMS}
        self.collections = together(Queues(self._recorder, self._now).collections(), says)
        self._jobs: dict[str, tuple[JobKey, Facts]] = {}
        self._states: dict[str, str] = {}
        self.admitted: set[str] = set()

    @property
    def history(self) -> History:
        """What has happened so far."""
        return self._recorder.history

    def begin(self) -> None:
        """Use the clock from now on; everything earlier is recorded at time 0."""
        self._begun = True

    def end(self) -> None:
        """End the repetition: its history covers the time until now."""
        self.history.end = max(self.history.end, self._now())

    def node(self, name: str, message: Any) -> None:
        """Record the state of a node, by its name; None if it is gone."""
        node = node_from(message, self._places) if message is not None else None
        if node is not None and node.name != name:
            node = replace(node, name=name)
        self._recorder.node(name, node, self._now())

    def pod(self, key: str, message: Any, gone: bool, cluster: str = "") -> None:
        """Record the state of a pod, or its last state if it is gone; None when not even that is known.

        Args:
            message: as received by the watch.
        """
        at, key = self._now(), in_cluster(cluster, key)
        if message is not None:
            pod = pod_from(message)
            pod = replace(pod, node=in_cluster(cluster, pod.node)) if cluster else pod
            job = self._job_of(*labelled(message.metadata.labels), pod, at)
            self._recorder.pod(key, pod, job, at)
        if gone:
            self._recorder.pod(key, None, JobKey("", "", ""), at)

    def job(self, planned: PlannedJob) -> None:
        """Record that a job was created."""
        kinds = [str(each["kind"]) for each in planned.objects if each["kind"] not in _HELPERS]
        key = JobKey(planned.name, kinds[0] if kinds else "Job", planned.workload)
        # Its pods may have been seen first, which gives more facts.
        _, facts = self._jobs.get(planned.name, (key, Facts(queue=self._queues.get(planned.workload, ""))))
        self._note(planned.name, key, facts._replace(size=planned.workers), self._now())

    def resized(self, name: str, workers: int) -> None:
        """Record that a job, by its name, should have this many pods from now on."""
        if known := self._jobs.get(name):
            self._note(name, known[0], known[1]._replace(size=workers), self._now())

    def deleted(self, name: str) -> None:
        """Record that a job, by its name, was deleted."""
        if known := self._jobs.get(name):
            self._recorder.job(known[0], None, self._now())

    def happened(self, what: str, sort: Sort) -> None:
        """Record that something else has happened."""
        self._recorder.happened(what, sort, self._now())

    def _job_of(self, workload: str, job: str, pod: ClusterPod, at: int) -> JobKey:
        kind, _, name = pod.job.partition("/")
        if not job:
            return JobKey(name, kind, pod.namespace)
        # Bare pods have nothing above them but the group that they name.
        kind = "Pod" if kind in _HELPERS else kind
        key, facts = self._jobs.get(job, (JobKey(job, kind, workload), Facts(queue=self._queues.get(workload, ""))))
        self._note(job, key, facts._replace(priority=pod.priority), at)
        return key

    def _take_report(self, read: Callable[[Any], JobReport | None], event: WatchEvent[Any]) -> None:
        # A deleted object has no news.
        if event.kind == "DELETED" or event.item is None:
            return
        report = read(event.item)
        if report is None or report.namespace != self.history.about.get("namespace"):
            return
        # The slices of a gang speak for it: kube-scheduler 1.37 writes no conditions of a CompositePodGroup.
        name = str((event.item.get("spec") or {}).get("parentCompositePodGroupName") or report.name)
        self._states[name] = report.says
        if report.admitted:
            self.admitted.add(name)
        else:
            self.admitted.discard(name)
        if known := self._jobs.get(name):
            self._note(name, *known, self._now())

    def _note(self, name: str, key: JobKey, facts: Facts, at: int) -> None:
        facts = facts._replace(says=self._states.get(name, ""))
        known = self._jobs.get(name)
        if known != (key, facts):
            self._jobs[name] = key, facts
            self._recorder.job(key, facts, at)

    def _now(self) -> int:
        return int(self._clock() * 1000) if self._begun else 0
