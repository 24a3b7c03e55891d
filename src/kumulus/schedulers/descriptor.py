"""What there is to say of a scheduler: :class:`Scheduler`, one for each folder of this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kumulus.schedulers.launch.plan import Plan, Request

Manifest = dict[str, Any]
Gang = Callable[[Sequence[Mapping[str, Any]], str, int, str], list[Manifest]]
Single = Callable[[Mapping[str, Any], str], list[Manifest]]
Queue = Callable[[str, str, Mapping[str, str]], list[Manifest]]


@dataclass(frozen=True)
class Scheduler:
    """One scheduler that can run beside the cluster's own.

    Attributes:
        name: as an experiment or a command line has it.
        runs: what it is that runs, for docs/schedulers.md.
        scheduler_name: what its pods have as `spec.schedulerName`.
        tools: its programs in pins.toml, the one that schedules first; the definitions of its kinds are kept with that.
        plan: what a start of it consists of; raises SchedulerError for a program or a configuration it cannot have.
        tool_set: what to pass to `./kumulus tools --with`; empty where the required tools suffice.
        gang: declares a gang, see :func:`kumulus.schedulers.workloads.gang`; None where it knows none.
        single: declares a workload, see :func:`kumulus.schedulers.workloads.single`; None where a name suffices.
        queues: whether its workloads wait in queues with quotas.
        queue: declares a queue, see :func:`kumulus.schedulers.workloads.queue`; None where queues are no objects.
        needed_queue: has to be made for workloads that name no queue; empty where nothing has to.
        gangs_are: how a gang looks, for docs/schedulers.md.
        queues_are: how a queue looks, likewise.
        decisions: whether it logs how it decides, as kube-scheduler does (:mod:`kumulus.schedulers.decisions`).
        api_groups: those of its own kinds, by which an object that the cluster does not know is known to be of it.
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
