"""The job that a PodGroup without an owner belongs to: the one whose pods name the group."""

from __future__ import annotations

from kumulus.extras.watch.history.recorder import JobKey
from kumulus.extras.watch.live.reports import JobReport

KIND = "PodGroup"
Source = tuple[str, str]


class Groups:
    """Tracks the groups that pods name, and the reports of objects on each."""

    def __init__(self) -> None:
        self._jobs: dict[JobKey, JobKey] = {}
        self._reports: dict[JobKey, dict[Source, JobReport]] = {}
        self._of: dict[Source, JobKey] = {}

    def pod(self, group: JobKey, job: JobKey) -> dict[Source, JobReport]:
        """A pod of a job names a group.

        Returns:
            The reports on the group, if it now belongs to another job.
        """
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
