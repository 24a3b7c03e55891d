"""A scheduler."""

from collections.abc import Mapping, Sequence
from typing import Any

from kumulus.extras.schedulers import readers, templates
from kumulus.extras.schedulers.descriptor import Manifest, Scheduler
from kumulus.extras.schedulers.forms import BARE, NAME
from kumulus.extras.schedulers.kinds import JobReport, Object, ObjectKind, Quota


def gang(workloads: Sequence[Mapping[str, Any]], name: str, minimum: int, queue: str) -> list[Manifest]:
    """A Band with its members."""
    members = templates.copied(workloads)
    group = {"apiVersion": "toy.example.com/v1", "kind": "Band", "metadata": {"name": name}, "spec": {"queue": queue}}
    templates.assign(members, "toy-scheduler")
    return [group, *members]


def queue(name: str, namespace: str, quota: Mapping[str, str], levels: Sequence[str]) -> list[Manifest]:
    """A Line."""
    return [{"apiVersion": "toy.example.com/v1", "kind": "Line", "metadata": {"name": name}, "spec": dict(quota)}]


def band(found: Object) -> JobReport | None:
    """A Band: what a group that pods name is called."""
    return readers.report(found, "PodGroup", 0, str(readers.part(found, "status").get("mood") or ""))


def line(found: Object) -> list[Quota]:
    """A Line."""
    return [readers.quota(found, "Line", readers.texts(found.get("spec")), {}, {})]


BAND = {"metadata": BARE, "spec": {"queue": NAME}}
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
    kinds=(
        ObjectKind("Band", "bands", "toy.example.com", fields=BAND, replayed=True, job=band, says_why=True),
        ObjectKind("Line", "lines", "toy.example.com", queues=line, started_with=True, of_nodes=True),
    ),
    group_keys=("toy.example.com/band",),
    queue_labels=("toy.example.com/line",),
    queue_annotations=("toy.example.com/queue",),
    known_keys=("toy.example.com/line",),
    users=("toy-scheduler",),
)
