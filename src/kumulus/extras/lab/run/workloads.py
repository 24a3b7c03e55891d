"""What a timeline does to workloads: deleting them, and scaling their Deployments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kumulus.extras.lab.cluster.creating import Kinds
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.timeline import Scale
from kumulus.extras.lab.measure.placement import PlacementRecorder
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.plan.plan import RepetitionPlan
from kumulus.extras.lab.plan.pods import PlannedJob
from kumulus.extras.lab.run.ending import Ending
from kumulus.kube.bulk import for_all
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.kube.objects import remove

if TYPE_CHECKING:
    from kumulus.kube import Client


class RepetitionWorkloads:
    """The workloads of a repetition, for its timeline.

    Args:
        records: updated with how many pods a job is to have.
        placement: updated with jobs that were deleted or scaled.
        ending: updated with how many pods are expected.
        gone: takes each job that was deleted.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        plan: RepetitionPlan,
        records: ExperimentRecords,
        placement: PlacementRecorder,
        ending: Ending,
        now: Callable[[], float],
        gone: Callable[[PlannedJob], None] = lambda _: None,
    ) -> None:
        self._gone = gone
        self._client = client
        self.namespace = namespace
        self._plan = plan
        self._records = records
        self._placement = placement
        self._ending = ending
        self._now = now

    async def delete(self, workload: str) -> None:
        """Delete a workload's objects and their pods; jobs that have not arrived do not come any more."""
        jobs = [job for job in self._plan.jobs if job.workload == workload]
        expected = sum(self._records.jobs[job.name].workers for job in jobs)
        self._ending.expect(-expected, -sum(job.later for job in jobs))
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        kinds = Kinds(self._client)

        async def delete(target: tuple[str, str, str]) -> None:
            version, kind, name = target
            await remove(self._client, f"{await kinds.path(version, kind, self.namespace)}/{name}", body)

        targets = [(each["apiVersion"], each["kind"], each["metadata"]["name"]) for job in jobs for each in job.objects]
        for job in jobs:
            self._records.resized(job.name, 0, self._now())
            self._placement.deleted(job.name)
            self._gone(job)
        await for_all(targets, delete, workers=self._client.connections)

    async def scale(self, wanted: Scale) -> str:
        """Scale a workload; returns what was done, in words."""
        jobs = [job for job in self._plan.jobs if job.workload == wanted.workload]
        names = {job.name: _deployment(job) for job in jobs}
        kinds = Kinds(self._client)
        collection = await kinds.path("apps/v1", "Deployment", self.namespace)
        before = sum(self._records.jobs[job.name].workers for job in jobs)
        # Before the request, so that pods deleted while it runs are not waited for.
        self._ending.expect(wanted.replicas * len(jobs) - before)
        for job in jobs:
            self._records.resized(job.name, wanted.replicas, self._now())
            self._placement.resized(job.name, wanted.replicas)

        async def one(name: str) -> None:
            body = {"spec": {"replicas": wanted.replicas}}
            await self._client.write("PATCH", f"{collection}/{name}", body, content_type=MERGE_PATCH)

        await for_all(list(names.values()), one, workers=self._client.connections)
        return f"{wanted.workload}: {before:,} → {wanted.replicas * len(jobs):,} pods"


def _deployment(job: PlannedJob) -> str:
    found = [each["metadata"]["name"] for each in job.objects if each["kind"] == "Deployment"]
    if len(found) != 1:
        raise LabError(f"the timeline scales {job.workload}, but {job.name} is not one Deployment")
    return str(found[0])
