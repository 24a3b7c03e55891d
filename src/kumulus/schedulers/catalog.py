"""Which schedulers there are, what each needs, and what it can."""

from __future__ import annotations

from dataclasses import dataclass

from kumulus.schedulers.errors import SchedulerError


@dataclass(frozen=True)
class Scheduler:
    """One scheduler that can run beside the cluster's own.

    Attributes:
        name: as an experiment or a command line has it.
        purpose: what it adds to the cluster's own scheduler.
        scheduler_name: what its pods have as `spec.schedulerName`.
        tools: its programs in pins.toml, the one that schedules first; the definitions of its kinds are kept with that.
        tool_set: what to pass to `./kumulus tools --with`; empty where the required tools suffice.
        gangs: whether it admits all of a gang's pods or none.
        queues: whether its workloads wait in queues with quotas.
    """

    name: str
    purpose: str
    scheduler_name: str
    tools: tuple[str, ...]
    tool_set: str
    gangs: bool
    queues: bool


_ALL = (
    Scheduler(
        name="kube-scheduler",
        purpose="another kube-scheduler, with a configuration or a binary of one's own",
        scheduler_name="second-scheduler",
        tools=("kube-scheduler",),
        tool_set="",
        gangs=False,
        queues=False,
    ),
    Scheduler(
        name="coscheduling",
        purpose="kube-scheduler with the plugin Coscheduling: gangs",
        scheduler_name="coscheduling",
        tools=("scheduler-plugins",),
        tool_set="coscheduling",
        gangs=True,
        queues=False,
    ),
    Scheduler(
        name="volcano",
        purpose="batch scheduler: gangs, queues, fair shares",
        scheduler_name="volcano",
        tools=("volcano-scheduler", "volcano-controller-manager"),
        tool_set="volcano",
        gangs=True,
        queues=True,
    ),
    Scheduler(
        name="kueue",
        purpose="job queueing by quota before the cluster's own scheduler",
        scheduler_name="default-scheduler",
        tools=("kueue",),
        tool_set="kueue",
        gangs=True,
        queues=True,
    ),
    Scheduler(
        name="yunikorn",
        purpose="batch scheduler: applications, gangs by placeholders, hierarchical queues",
        scheduler_name="yunikorn",
        tools=("yunikorn",),
        tool_set="yunikorn",
        gangs=True,
        queues=True,
    ),
)

NAMES: tuple[str, ...] = tuple(scheduler.name for scheduler in _ALL)


def get(name: str) -> Scheduler:
    """The scheduler of that name.

    Raises:
        SchedulerError: there is none.
    """
    for scheduler in _ALL:
        if scheduler.name == name:
            return scheduler
    raise SchedulerError(f"there is no scheduler {name!r}\n  Write one of {', '.join(NAMES)}")
