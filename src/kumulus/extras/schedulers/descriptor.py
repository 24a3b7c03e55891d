"""The description of a scheduler: :class:`Scheduler`, one for each subpackage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.schedulers.launch.plan import Plan, Request

if TYPE_CHECKING:
    from kumulus.kube import Client

Manifest = dict[str, Any]
Gang = Callable[[Sequence[Mapping[str, Any]], str, int, str], list[Manifest]]
Single = Callable[[Mapping[str, Any], str], list[Manifest]]
Queue = Callable[[str, str, Mapping[str, str], Sequence[str]], list[Manifest]]
OF_THE_CLUSTER = "default-scheduler"
"""The `spec.schedulerName` of pods that name none, which the cluster's own kube-scheduler places."""
Bind = Callable[[Sequence[Manifest], str], None]


@dataclass(frozen=True)
class Scheduler:
    """One scheduler that can run alongside the cluster's own.

    Attributes:
        name: as in an experiment or on the command line.
        runs: the programs that run, for docs/schedulers.md.
        scheduler_name: the `spec.schedulerName` of its pods.
        tools: its programs in pins.toml, the one that schedules first; the definitions of its kinds are kept with that.
        plan: gives the plan of a start; raises SchedulerError if a program is missing or a configuration is unusable.
            None if nothing is started, because it is the cluster's own.
        require: checks, if nothing is started, that the cluster's own can do it; raises SchedulerError.
        tool_set: what to pass to `./kumulus tools --with`; empty if the required tools suffice.
        gang: declares a gang, see :func:`kumulus.extras.schedulers.workloads.gang`; None if it supports none.
        single: declares a workload, see :func:`kumulus.extras.schedulers.workloads.single`; None if a name suffices.
        bind: puts a declared gang into one domain of a topology, by the key of its label; None if it cannot.
        disrupt: says how a declared gang is preempted, `all` or `single`; None if it cannot.
        queues: whether its workloads wait in queues with quotas.
        queue: declares a queue, see :func:`kumulus.extras.schedulers.workloads.queue`; None if queues are not objects.
        counted: the resources that its queues have a quota of; empty for any.
        needed_queue: a queue that must be created for workloads that name none; empty if none is needed.
        gangs_are: how a gang is declared, for docs/schedulers.md.
        queues_are: how a queue is declared, likewise.
        decisions: whether it logs how it decides, as kube-scheduler does (:mod:`kumulus.extras.schedulers.decisions`).
        api_groups: the API groups of its own kinds, to recognize its objects when the cluster does not know their kind.
        profiles: reads the `spec.schedulerName` values from the user's configuration; raises SchedulerError. None if
            the configuration does not decide them.
    """

    name: str
    runs: str
    scheduler_name: str
    tools: tuple[str, ...]
    plan: Callable[[Request], Plan] | None
    require: Callable[[Client], Awaitable[None]] | None = None
    tool_set: str = ""
    gang: Gang | None = None
    bind: Bind | None = None
    disrupt: Bind | None = None
    single: Single | None = None
    queues: bool = False
    queue: Queue | None = None
    counted: tuple[str, ...] = ()
    needed_queue: str = ""
    gangs_are: str = ""
    queues_are: str = ""
    decisions: bool = False
    api_groups: tuple[str, ...] = ()
    profiles: Callable[[Path], tuple[str, ...]] | None = None

    def names(self, config: Path | None) -> tuple[str, ...]:
        """The `spec.schedulerName` values of the pods that it places; the first is for pods that choose none.

        Args:
            config: the user's configuration, if any.

        Raises:
            SchedulerError: the configuration cannot be used.
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
