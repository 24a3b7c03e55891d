"""When a pod, and a job, was first seen in each of its states.

All times are seconds on the client's monotonic clock from the experiment's start to when the watch reported an event.
What a client hears after it was cut off, or stood still, has no such time: it is only known since when it may be so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from kumulus.extras.lab.measure.statistics import Between, Measured, known, most_in_a_second
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.watch.live.amounts import Amounts

State = Literal["created", "bound", "running", "ended", "first", "last", "dispatched"]
PREEMPTED = "PreemptionByScheduler"
CAUSES = ("Preempted", "Disrupted", "Failed", "Deleted")
"""Why a pod ended without success."""
# What most of them have, which is heard of at once in each of its states.
_HEARD: Mapping[State, float] = MappingProxyType({})


@dataclass(slots=True, kw_only=True)
class Timed:
    """Something with times of its states."""

    since: Mapping[State, float] = field(default_factory=lambda: _HEARD)
    """Of each of these times that is not known, the earliest that it can be."""

    def reach(self, state: State, now: float, since: float) -> None:
        """Note a state.

        Args:
            since: since when it may have been so; now if it was heard of at once.
        """
        setattr(self, state, now)
        if since < now or state in self.since:
            self.since = {**self.since, state: min(since, now)}

    def between(self, start: State, end: State) -> Between | None:
        """Seconds from one state to another, at least and at most; None if it was not in both."""
        began, ended = self.when(start), self.when(end)
        return None if began is None or ended is None else from_to(began, ended)

    def when(self, state: State) -> Between | None:
        """Since when it may have been in a state, and when that was heard of; None if it was not."""
        at: float | None = getattr(self, state)
        return None if at is None else Between(self.since.get(state, at), at)


@dataclass(slots=True)
class PodRecord(Timed):
    """A pod.

    Attributes:
        created, bound, running, ended: when it was first seen in this state; None if it was not.
        node: where it is, or was, bound.
        phase: its last phase; Deleted when it was deleted before it ended by itself.
        waits: why it has no node, according to the scheduler.
        tried: whether the scheduler has tried it.
        disrupted: why it was evicted; empty when it was not.
        share: milli-GPU that it also requests of one GPU.
        owner: the name of the Job of batch/v1 that created it; empty for any other pod.
        cluster: its cluster's name among several that are measured together.
        group: `namespace/name` of the PodGroup of Kubernetes' own that it names; empty if none.
        bare: whether no controller makes another one when it is gone.
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
    group: str = ""
    bare: bool = False

    @property
    def pending(self) -> bool:
        """Whether it is alive and has no node."""
        return self.ended is None and self.bound is None

    @property
    def gpus(self) -> float:
        """How many GPUs it requests, parts included."""
        return self.wants.gpus + self.share / WHOLE_GPU

    @property
    def cause(self) -> str | None:
        """Which of :data:`CAUSES` ended it; None while it lives, and if it succeeded."""
        if self.ended is None or self.phase == "Succeeded":
            return None
        return {"": self.phase, PREEMPTED: "Preempted"}.get(self.disrupted, "Disrupted")

    def ran(self) -> Between | None:
        """Seconds from its start, or its binding if that was not seen, to its end; None before."""
        return self.between("bound" if self.running is None else "running", "ended")

    def held(self, until: float) -> Between:
        """Seconds for which it had its node, until an end at the latest."""
        bound = self.when("bound")
        return Between(0.0, 0.0) if bound is None else from_to(bound, self.when("ended") or Between(until, until))


@dataclass(slots=True)
class JobRecord(Timed):
    """A job."""

    workload: str
    workers: int
    """How many pods it should have; 0 where that is not known."""
    resized: bool = False
    """Whether a timeline has set that, so that 0 is none at all."""
    first: float | None = None
    last: float | None = None
    """When it became whole: its last worker was bound, or the others are no longer wanted; None if it never was. A
    worker in place of one that was lost is the last one again."""
    seen: int = 0
    placed: int = 0
    succeeded: int = 0
    lost: int = 0
    """Pods that ended otherwise."""
    broken: bool = False
    """Whether it has lost a worker and has not been whole since."""

    @property
    def wanted(self) -> int:
        """How many of its workers should be placed."""
        return self.workers if self.workers or self.resized else self.seen - self.lost

    @property
    def admitted(self) -> bool:
        """Whether all of its workers had a node at one time, or had completed."""
        return self.last is not None

    @property
    def partly(self) -> bool:
        """Whether some of its workers have a node, or have completed, and some do not."""
        return 0 < self.placed + self.succeeded < self.wanted


def span(items: Iterable[Timed], start: State, end: State) -> Between | None:
    """Seconds from when the first was in one state to when the last was in another, at least and at most.

    Returns:
        None if none was in them.
    """
    there = list(items)
    began = [when for each in there if (when := each.when(start)) is not None]
    ended = [when for each in there if (when := each.when(end)) is not None]
    if not began or not ended:
        return None
    first = Between(min(each.least for each in began), min(each.most for each in began))
    last = Between(max(each.least for each in ended), max(each.most for each in ended))
    return from_to(first, last)


def most_in_any_second(items: Iterable[Timed], state: State) -> Measured:
    """The most that came into a state in any one second."""
    times = [when for each in items if (when := each.when(state)) is not None]
    heard = most_in_a_second(sorted(when.most for when in times if when.least == when.most))
    return known(heard, Between(heard, heard + sum(when.least < when.most for when in times)))


def from_to(began: Between, ended: Between) -> Between:
    """Seconds from one time to another, at least and at most, by the earliest and the latest that each can be."""
    return Between(max(0.0, ended.least - began.most), max(0.0, ended.most - began.least))
