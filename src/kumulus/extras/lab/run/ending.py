"""When a repetition is over: all that could happen has happened."""

from collections.abc import Awaitable, Callable, Collection
from typing import Literal

from kumulus.extras.lab.file.model import OWN, SchedulerName
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.schedulers import registry
from kumulus.kube import ApiError, Client, Unreachable
from kumulus.model.words import counted

Until = Literal["scheduled", "running", "completed", "steady"]

# A scheduler that reports nothing about a pod for this many settling times will not do so later.
_PATIENCE = 6.0
_LEAST_PATIENCE = 30.0
_AT_ONCE = 1.0


def nothing() -> str:
    """Nothing else is waited for."""
    return ""


def unseen(records: ExperimentRecords, scheduler: SchedulerName, names: Collection[str]) -> str:
    """That no scheduler has looked at any pod, and whom the pods wait for; empty if one has, or if that is not known.

    Args:
        names: the `spec.schedulerName` values of its pods.
    """
    # Others than kube-scheduler do not say of each pod that they have looked at it.
    if scheduler != OWN and not (registry.get(scheduler).decisions or registry.get(scheduler).is_own):
        return ""
    waiting = [each for each in records.pods.values() if each.pending]
    if not waiting or len(waiting) < len(records.pods) or any(each.tried or each.waits for each in waiting):
        return ""
    asked = " or ".join(sorted(names))
    return (
        f"no scheduler looked at any of the {counted(len(waiting), 'pod')}, which ask for schedulerName {asked}: "
        "none of that name runs, or it hangs"
    )


def starting(records: ExperimentRecords, admitted: Collection[str]) -> bool:
    """Whether pods are still to be made of a job that a queue has admitted."""
    jobs = (records.jobs[name] for name in admitted if name in records.jobs)
    return any(job.seen < job.workers for job in jobs)


async def refused(client: Client, namespace: str) -> str:
    """Why the API server refused a controller's last pod, such as for a quota; empty if it refused none."""
    try:
        page = await client.get(f"/api/v1/namespaces/{namespace}/events", {"fieldSelector": "reason=FailedCreate"})
    except (ApiError, Unreachable):
        return ""
    each = [(event.get("lastTimestamp") or event.get("eventTime") or "", event["message"]) for event in page["items"]]
    return max(each)[1] if each else ""


class Ending:
    """Tells when a repetition is over.

    Args:
        settle: seconds without a change after which pods that fit nowhere are not waited for any longer; with `steady`,
            seconds in which no pod and no node has come, gone or changed.
        expected: how many pods are expected; 0 if that is not known.
        waits: says what else is waited for; empty for nothing.
        later: how many more pods follow as the expected ones complete.
    """

    def __init__(
        self,
        records: ExperimentRecords,
        until: Until,
        settle: float,
        expected: int,
        waits: Callable[[], str] = nothing,
        later: int = 0,
    ) -> None:
        self._waits = waits
        self._records = records
        self._until = until
        self._settle = settle
        self._expected = expected
        self._later = later

    def expect(self, more: int, later: int = 0) -> None:
        """Expect so many pods more than before, or fewer; the same of those that follow."""
        self._expected += more
        self._later += later

    async def over(self, clock: Clock, ask: Callable[[], Awaitable[None]]) -> str:
        """As :meth:`reason`; silence ends it only if the client listened and the server answers at once."""
        asked = clock()
        if clock.heard_since(asked) < asked:
            self._records.changed = asked
        why = self.reason(asked)
        if not why or self.done:
            return why
        await ask()
        if clock() - asked < _AT_ONCE:
            return why
        # Whatever kept the answer may have kept other news.
        self._records.changed = clock()
        return ""

    def reason(self, now: float) -> str:
        """Why it is over; empty while it is not. Only valid once everything is created and the timeline is done."""
        records, quiet = self._records, now - self._records.changed
        if self._until == "steady":
            return self._steady(min(quiet, now - records.nodes_changed))
        if self.done:
            return f"all pods are {self._until}"
        missing, all_there = self._missing()
        more = self._waits()
        # The scheduler has tried every pod, and there is nothing else to wait for.
        judged = all_there and not records.untried and not more
        if judged and quiet >= self._settle and self._reached():
            return "1 pod fits nowhere" if records.pending == 1 else f"{records.pending:,} pods fit nowhere"
        if quiet >= max(_LEAST_PATIENCE, _PATIENCE * self._settle) and (records.pending or not all_there or more):
            if self._until == "completed" and records.running:
                return ""
            pods = f"{records.pending:,} pods are left pending" if all_there else f"{missing:,} pods are missing"
            what = more if more and all_there and not records.pending else pods
            return f"nothing happens any more; {what}"
        return ""

    @property
    def done(self) -> bool:
        """Whether all that is waited for has happened; otherwise it is over once nothing happens any more."""
        all_there = self._missing()[1]
        reached = self._until != "steady" and all_there and not self._records.pending and self._reached()
        return reached and not self._waits()

    @property
    def lacking(self) -> bool:
        """Whether pods are missing that should be there."""
        return not self._missing()[1]

    def _missing(self) -> tuple[int, bool]:
        """How many pods are missing, and whether all are there that can be."""
        records, later = self._records, self._later if self._until == "completed" else 0
        # A deleted pod is created again by its controller some seconds later, if it has one.
        there = records.live + records.counts["succeeded"] + records.counts["preempted for good"]
        missing = max(0, self._expected + later - there)
        # Those that follow need not be there while others are that may still complete.
        return missing, missing <= (later if records.live else 0)

    def _steady(self, quiet: float) -> str:
        """As :meth:`reason`, for `steady`: an autoscaler may change nodes even after all pods have one."""
        records = self._records
        # Pods that are still to be created or deleted are waited for longer.
        as_many = records.live + records.counts["succeeded"] == self._expected
        if quiet < (self._settle if as_many else max(_LEAST_PATIENCE, _PATIENCE * self._settle)):
            return ""
        message = f"no pod and no node has changed for {self._settle if as_many else round(quiet):g} s"
        return f"{message}; {records.pending:,} pods are pending" if records.pending else message

    def _reached(self) -> bool:
        records = self._records
        placed = records.live - records.pending
        if self._until == "scheduled":
            return True
        return placed == 0 if self._until == "completed" else placed == records.running
