"""Workloads for Kubernetes' own API, if it is on: a Job says that it is a gang, other pods belong to a PodGroup.

Source: k8s.io/api scheduling/v1beta1, scheduling/v1alpha3 and batch/v1 (JobSchedulingConfiguration), of 1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kumulus.extras.schedulers import templates
from kumulus.extras.schedulers.descriptor import OF_THE_CLUSTER
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.templates import Manifest
from kumulus.kube.errors import tolerating

if TYPE_CHECKING:
    from kumulus.kube import Client

VERSION = "scheduling.k8s.io/v1beta1"
_COMPOSITE = "scheduling.k8s.io/v1alpha3"


def gang(members: list[Manifest], name: str, minimum: int, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.gang`."""
    templates.require_together(members, name, minimum)
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    if len(members) == 1 and members[0]["kind"] == "Job" and not templates.never_preempt(members):
        # Its controller makes the group, and removes it with the Job.
        members[0]["spec"]["scheduling"] = policy
        return members
    return [_grouped(members, name, policy), *members]


def single(made: Manifest, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.single`."""
    templates.assign([made], OF_THE_CLUSTER)
    if made["kind"] != "Job" or not templates.never_preempt([made]):
        return [made]
    return [_grouped([made], str(made["metadata"]["name"]), {"schedulingPolicy": {"basic": {}}}), made]


def _grouped(members: Sequence[Manifest], name: str, policy: Mapping[str, Any]) -> Manifest:
    """A group to which the members' pods then belong, of their priority: the pods' own would not count.

    Its preemption policy is written, too. Without it, Kubernetes 1.37.2 takes PreemptLowerPriority and then refuses the
    group, as its PriorityClass says Never; so the controller of Jobs makes no group, and no pods, for a Job of such a
    class (SetDefaults_PodGroup, pkg/apis/scheduling/v1beta1; admitPodGroup, plugin/pkg/admission/priority).
    """
    spec = dict(policy)
    if priority := templates.priority_class(members):
        spec["priorityClassName"] = priority
    if templates.never_preempt(members):
        spec["preemptionPolicy"] = "Never"
    for member in members:
        for each, _ in templates.templates(member):
            each["spec"]["schedulingGroup"] = {"podGroupName": name}
    metadata = {"name": name, "namespace": templates.namespace(members[0])}
    return {"apiVersion": VERSION, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def slices(made: list[Manifest], topology: str, size: int) -> list[Manifest]:
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.slices`: a PodGroup and a Job for each.

    The gang is the CompositePodGroup that they belong to, which a Job could not name by itself. Kubernetes wants both
    to name templates of a Workload, but 1.37.2 does not look for it.
    """
    *groups, job = made
    (group,) = groups or [_grouped([job], str(job["metadata"]["name"]), job["spec"].pop("scheduling"))]
    name, spec = group["metadata"]["name"], group["spec"]
    parts = -(-spec["schedulingPolicy"]["gang"]["minCount"] // size)
    whole = {**spec, "schedulingPolicy": {"gang": {"minGroupCount": parts}}}
    part = {**spec, "schedulingPolicy": {"gang": {"minCount": size}}}
    bind([{"kind": "PodGroup", "spec": part}], topology)
    template = {"name": "gang", **whole, "podGroupTemplates": [{"name": "slice", **part}]}
    whole["workloadRef"] = {"workloadName": name, "templateName": "gang"}
    part |= {"workloadRef": {"workloadName": name, "templateName": "slice"}, "parentCompositePodGroupName": name}
    found = [
        {**group, "kind": "Workload", "spec": {"compositePodGroupTemplates": [template]}},
        {**group, "kind": "CompositePodGroup", "apiVersion": _COMPOSITE, "spec": whole},
    ]
    for number in range(templates.size([job]) // size):
        one, each = templates.copied([{**group, "spec": part}, job])
        one["metadata"]["name"] += f"-{number}"
        each["metadata"]["name"] += f"-{number}"
        each["spec"] |= {"parallelism": size, "completions": size}
        each["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": one["metadata"]["name"]}
        found += [one, each]
    return found


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
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.require`."""
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
