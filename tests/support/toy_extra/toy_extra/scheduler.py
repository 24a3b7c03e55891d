"""A scheduler."""

from collections.abc import Mapping, Sequence
from typing import Any

from kumulus.extras.schedulers import templates
from kumulus.extras.schedulers.descriptor import Manifest, Scheduler


def gang(workloads: Sequence[Mapping[str, Any]], name: str, minimum: int, queue: str) -> list[Manifest]:
    """A Band with its members."""
    members = templates.copied(workloads)
    group = {"apiVersion": "toy.example.com/v1", "kind": "Band", "metadata": {"name": name}, "spec": {"queue": queue}}
    templates.assign(members, "toy-scheduler")
    return [group, *members]


def queue(name: str, namespace: str, quota: Mapping[str, str], levels: Sequence[str]) -> list[Manifest]:
    """A Line."""
    return [{"apiVersion": "toy.example.com/v1", "kind": "Line", "metadata": {"name": name}, "spec": dict(quota)}]


SCHEDULER = Scheduler(
    name="toy",
    runs="nothing at all",
    scheduler_name="toy-scheduler",
    tools=("kueue",),
    tool_set="kueue",
    plan=None,
    gang=gang,
    queues=True,
    queue=queue,
    needed_queue="waiting",
    gangs_are="a `Band`",
    api_groups=("toy.example.com",),
)
