"""Workloads for Kubernetes' own API, if it is on: a Job says that it is a gang, other pods belong to a PodGroup.

Source: k8s.io/api scheduling/v1beta1 and batch/v1 (JobSchedulingConfiguration), of Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kumulus.extras.schedulers import registry, templates
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.templates import Manifest
from kumulus.kube.errors import tolerating

if TYPE_CHECKING:
    from kumulus.kube import Client

VERSION = "scheduling.k8s.io/v1beta1"


def gang(workloads: Sequence[Mapping[str, Any]], name: str, minimum: int, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.gang`."""
    if queue:
        raise SchedulerError(
            f"native has no queues, and gang {name!r} names queue {queue!r}\n"
            f"  Leave the queue out, or use {registry.with_queues()}"
        )
    members = templates.copied(workloads)
    templates.require_together(members, name, minimum)
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    if len(members) == 1 and members[0]["kind"] == "Job":
        # Its controller makes the group, and removes it with the Job.
        members[0]["spec"]["scheduling"] = policy
        return members
    pods = [template for member in members for template, _ in templates.templates(member)]
    # A group's priority is its own: the pods' would not count.
    priority = templates.priority_class(members)
    spec = {**policy, **({"priorityClassName": priority} if priority else {})}
    for each in pods:
        each["spec"]["schedulingGroup"] = {"podGroupName": name}
    metadata = {"name": name, "namespace": templates.namespace(members[0])}
    return [{"apiVersion": VERSION, "kind": "PodGroup", "metadata": metadata, "spec": spec}, *members]


def bind(made: Sequence[Manifest], topology: str) -> None:
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.bind`."""
    for group in _groups(made):
        group["schedulingConstraints"] = {"topology": [{"key": topology}]}


def disrupt(made: Sequence[Manifest], disruption: str) -> None:
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.disrupt`."""
    for group in _groups(made):
        group["disruptionMode"] = {disruption: {}}


def _groups(made: Sequence[Manifest]) -> Iterator[dict[str, Any]]:
    for each in made:
        if each["kind"] == "PodGroup":
            yield each["spec"]
        elif "scheduling" in each["spec"]:
            yield each["spec"]["scheduling"]


_ASKED = "kumulus-asks"
_REMEDY = "Write kwok: {workloads: native} in the stack file, with Kubernetes 1.37 or later"


async def require(client: Client) -> None:
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.require`.

    Raises:
        SchedulerError: it is not, or not all of it.
    """
    served: dict[str, Any] = {}
    with tolerating(404):
        served = await client.get(f"/apis/{VERSION}")
    if not any(each["name"] == "podgroups" for each in served.get("resources", ())):
        raise SchedulerError(f"native: the cluster does not serve {VERSION}\n  {_REMEDY}")
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "none"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": _ASKED},
        "spec": {"template": template},
    }
    asked = gang([job], _ASKED, 1, "")
    bind(asked, "kubernetes.io/hostname")
    disrupt(asked, "all")
    # An API server drops fields whose feature gate is off, without a word.
    answer = await client.request(
        "POST", "/apis/batch/v1/namespaces/default/jobs", params={"dryRun": "All"}, body=asked[0]
    )
    wanted, found = asked[0]["spec"]["scheduling"], answer["spec"].get("scheduling") or {}
    if dropped := [field for field in wanted if field not in found]:
        raise SchedulerError(f"native: the cluster drops {', '.join(dropped)} of a Job's scheduling\n  {_REMEDY}")
