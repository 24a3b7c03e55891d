"""The description of a scheduler: :class:`Scheduler`, one for each subpackage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.schedulers.kinds import ObjectKind
from kumulus.extras.schedulers.launch.plan import LaunchPlan, LaunchRequest

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.model.pools import Pool

Manifest = dict[str, Any]
Gang = Callable[[list[Manifest], str, int, str], list[Manifest]]
"""Gets copies of the workloads, which it may change."""
Single = Callable[[Manifest, str], list[Manifest]]
Queue = Callable[[str, str, Mapping[str, str], Sequence[str]], list[Manifest]]
OF_THE_CLUSTER = "default-scheduler"
"""The `spec.schedulerName` of pods that name none, which the cluster's own kube-scheduler places."""
Bind = Callable[[Sequence[Manifest], str], None]
Slices = Callable[[list[Manifest], str, int], list[Manifest]]
Places = Callable[["Client", Sequence["Pool"], Iterable[str]], Awaitable[list[Manifest]]]


@dataclass(frozen=True)
class Scheduler:
    """One scheduler that can run alongside the cluster's own."""

    name: str
    """As in an experiment or on the command line."""
    runs: str
    """The programs that run, for docs/schedulers.md."""
    scheduler_name: str
    """The `spec.schedulerName` of its pods."""
    tools: tuple[str, ...]
    """Its programs in pins.toml, the one that schedules first; the definitions of its kinds are kept with that."""
    plan: Callable[[LaunchRequest], LaunchPlan] | None
    """Gives the plan of a start; raises SchedulerError if a program is missing or a configuration is unusable. None if
    nothing is started, because it is the cluster's own."""
    require: Callable[[Client], Awaitable[None]] | None = None
    """Checks, if nothing is started, that the cluster's own can do it; raises SchedulerError."""
    tool_set: str = ""
    """What to pass to `./kumulus tools --with`; empty if the required tools suffice."""
    gang: Gang | None = None
    """Declares a gang, see :func:`kumulus.extras.schedulers.workloads.gang`; None if it supports none."""
    bind: Bind | None = None
    """Puts a declared gang into one domain of a topology, by the key of its label, or by the name of its level if it
    has :attr:`places`; None if it cannot."""
    places: Places | None = None
    """Gives the objects that say which places of given levels there are, of those pools, to create before it starts;
    raises SchedulerError for a level without any. None if nodes' labels say so."""
    slices: Slices | None = None
    """Divides a declared gang, which is one Job, into slices of so many pods, each in one domain of a topology, by the
    key of its label, and returns all of it; None if it cannot."""
    disrupt: Bind | None = None
    """Says how a declared gang is preempted, `all` or `single`; None if it cannot."""
    never: bool = False
    """Whether pods with `preemptionPolicy: Never`, and a PriorityClass of that policy, preempt no others with it."""
    single: Single | None = None
    """Declares a workload, see :func:`kumulus.extras.schedulers.workloads.single`; None if a name suffices."""
    queues: bool = False
    """Whether its workloads wait in queues with quotas."""
    queue: Queue | None = None
    """Declares a queue, see :func:`kumulus.extras.schedulers.workloads.queue`; None if queues are not objects."""
    counted: tuple[str, ...] = ()
    """The resources that its queues have a quota of; empty for any."""
    needed_queue: str = ""
    """A queue that must be created for workloads that name none; empty if none is needed."""
    gangs_are: str = ""
    """How a gang is declared, for docs/schedulers.md."""
    queues_are: str = ""
    """How a queue is declared, likewise."""
    decisions: bool = False
    """Whether it logs how it decides, as kube-scheduler does (:mod:`kumulus.extras.schedulers.decisions`)."""
    api_groups: tuple[str, ...] = ()
    """The API groups of its own kinds, to recognize its objects when the cluster does not know their kind."""
    kinds: tuple[ObjectKind, ...] = ()
    """The kinds of objects by which gangs and queues are seen, captured and replayed."""
    group_keys: tuple[str, ...] = ()
    """The labels or annotations by which a pod names its group."""
    queue_labels: tuple[str, ...] = ()
    """The labels by which a workload or its pods name their queue."""
    queue_annotations: tuple[str, ...] = ()
    """The annotations, likewise; a capture keeps them."""
    kept_annotations: tuple[str, ...] = ()
    """Further annotations of pods that a capture keeps; the values are names of objects."""
    known_keys: tuple[str, ...] = ()
    """Its keys that mean the same in every cluster, so that a capture with anonymised names keeps them."""
    users: tuple[str, ...] = ()
    """How its users or programs begin in an audit log, if the pods that they delete are preempted."""
    profiles: Callable[[Path], tuple[str, ...]] | None = None
    """Reads the `spec.schedulerName` values from the user's configuration; raises SchedulerError. None if the
    configuration does not decide them."""

    def names(self, config: Path | None) -> tuple[str, ...]:
        """The `spec.schedulerName` values of the pods that it places; the first is for pods that choose none.

        Args:
            config: the user's configuration, if any.
        """
        return (self.scheduler_name,) if config is None or self.profiles is None else self.profiles(config)

    @property
    def is_own(self) -> bool:
        """Whether it is the cluster's own kube-scheduler."""
        return self.plan is None

    @property
    def gangs(self) -> bool:
        """Whether it admits all of a gang's pods or none."""
        return self.gang is not None
