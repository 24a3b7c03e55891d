"""The description of a scheduler: :class:`Scheduler`, one for each subpackage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kumulus.extras.schedulers.launch.plan import Plan, Request

Manifest = dict[str, Any]
Gang = Callable[[Sequence[Mapping[str, Any]], str, int, str], list[Manifest]]
Single = Callable[[Mapping[str, Any], str], list[Manifest]]
Queue = Callable[[str, str, Mapping[str, str]], list[Manifest]]


@dataclass(frozen=True)
class Scheduler:
    """One scheduler that can run alongside the cluster's own.

    Attributes:
        name: as in an experiment or on the command line.
        runs: the programs that run, for docs/schedulers.md.
        scheduler_name: the `spec.schedulerName` of its pods.
        tools: its programs in pins.toml, the one that schedules first; the definitions of its kinds are kept with that.
        plan: gives the plan of a start; raises SchedulerError if a program is missing or a configuration is unusable.
        tool_set: what to pass to `./kumulus tools --with`; empty if the required tools suffice.
        gang: declares a gang, see :func:`kumulus.extras.schedulers.workloads.gang`; None if it supports none.
        single: declares a workload, see :func:`kumulus.extras.schedulers.workloads.single`; None if a name suffices.
        queues: whether its workloads wait in queues with quotas.
        queue: declares a queue, see :func:`kumulus.extras.schedulers.workloads.queue`; None if queues are not objects.
        needed_queue: a queue that must be created for workloads that name none; empty if none is needed.
        gangs_are: how a gang is declared, for docs/schedulers.md.
        queues_are: how a queue is declared, likewise.
        decisions: whether it logs how it decides, as kube-scheduler does (:mod:`kumulus.extras.schedulers.decisions`).
        api_groups: the API groups of its own kinds, to recognize its objects when the cluster does not know their kind.
    """

    name: str
    runs: str
    scheduler_name: str
    tools: tuple[str, ...]
    plan: Callable[[Request], Plan]
    tool_set: str = ""
    gang: Gang | None = None
    single: Single | None = None
    queues: bool = False
    queue: Queue | None = None
    needed_queue: str = ""
    gangs_are: str = ""
    queues_are: str = ""
    decisions: bool = False
    api_groups: tuple[str, ...] = ()

    @property
    def gangs(self) -> bool:
        """Whether it admits all of a gang's pods or none."""
        return self.gang is not None
