"""Planned jobs, and the pods of a described workload: their template, and the labels by which a run knows pods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kumulus.extras.lab.file.workload import NEVER, Kind, Workload
from kumulus.model.lifecycles import DELAY_ANNOTATION
from kumulus.model.pools import REGION_LABEL, ZONE_LABEL

Object = dict[str, Any]
WORKLOAD_LABEL = "kumulus.io/workload"
JOB_LABEL = "kumulus.io/workload-job"
_FOR_EVER = "876000h"
"""A hundred years: without a delay, KWOK ends a Job's pod at once."""
_WELL_KNOWN = {"host": "kubernetes.io/hostname", "zone": ZONE_LABEL, "region": REGION_LABEL}
TOLERATIONS = [{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}]
"""For the taint that emulated nodes have."""
PREFERENCE = 100


class UnknownPlace(Exception):
    """A level that no node of the cluster has; the message names it and the known ones."""


def pod_template(
    workload: Workload,
    job: str,
    *,
    duration: float | None,
    product_label: str,
    places: Mapping[str, str],
) -> Object:
    """The metadata and spec of a workload's pods.

    Args:
        duration: seconds they run; None for no end.

    Raises:
        UnknownPlace: the workload's affinity is to a level that the cluster does not have.
    """
    labels = {**workload.labels, WORKLOAD_LABEL: workload.name, JOB_LABEL: job}
    annotations = dict(workload.annotations)
    if duration is not None:
        annotations[DELAY_ANNOTATION] = f"{duration:.3f}s"
    elif workload.kind in ("Job", "JobSet"):
        annotations.setdefault(DELAY_ANNOTATION, _FOR_EVER)
    selector = dict(workload.nodeSelector)
    if workload.gpuProduct:
        selector[product_label] = workload.gpuProduct
    resources = {"requests": dict(workload.requests), "limits": dict(workload.requests)}
    spec: Object = {
        "containers": [{"name": "main", "image": "none", "resources": resources if workload.requests else {}}],
        "tolerations": TOLERATIONS,
    }
    if workload.kind in ("Job", "JobSet"):
        spec["restartPolicy"] = "Never"
    if selector:
        spec["nodeSelector"] = selector
    if affinity := _affinity(workload, job, places):
        spec["affinity"] = {"podAffinity": affinity}
    if name := priority_class(workload.priority, workload.preemptionPolicy):
        spec["priorityClassName"] = name
    if workload.preemptionPolicy == NEVER:
        spec["preemptionPolicy"] = NEVER
    return {"metadata": {"labels": labels, **({"annotations": annotations} if annotations else {})}, "spec": spec}


def priority_class(priority: str | int, policy: str) -> str:
    """The name of the class of pods with this priority, if they need one, and this preemption policy.

    The class of a number has the number in its name. Admission refuses a pod whose policy is not that of its class.
    """
    never = policy == NEVER
    if isinstance(priority, str) and (priority or not never):
        return priority
    return f"experiment-{priority or 0}".replace("--", "-minus-") + ("-never" if never else "")


def class_object(name: str, value: int, policy: str = "") -> Object:
    """A PriorityClass."""
    made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    return {**made, "preemptionPolicy": policy} if policy == NEVER else made


def place_label(place: str, places: Mapping[str, str]) -> str:
    """The key of the label for a level, which may be such a key already.

    Raises:
        UnknownPlace: the cluster has no such level.
    """
    if "/" in place:
        return place
    known = {**_WELL_KNOWN, **places}
    if place not in known:
        there = ", ".join(known)
        raise UnknownPlace(f"{place} is no level of this cluster's topology; there are {there}, or write a label's key")
    return known[place]


def _affinity(workload: Workload, job: str, places: Mapping[str, str]) -> Object:
    def together(place: str) -> Object:
        return {"labelSelector": {"matchLabels": {JOB_LABEL: job}}, "topologyKey": place_label(place, places)}

    found: Object = {}
    if workload.affinity.required:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = [together(workload.affinity.required)]
    if workload.affinity.preferred:
        term = {"weight": PREFERENCE, "podAffinityTerm": together(workload.affinity.preferred)}
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [term]
    return found


def job_objects(kind: Kind, name: str, workers: int, template: Object) -> list[Object]:
    """The objects of a job."""
    return _KINDS[kind](name, workers, template)


def _metadata(name: str, template: Object) -> Object:
    return {"name": name, "labels": dict(template["metadata"]["labels"])}


def _job_spec(workers: int, template: Object) -> Object:
    return {"completions": workers, "parallelism": workers, "backoffLimit": 1_000_000, "template": template}


def _job(name: str, workers: int, template: Object) -> list[Object]:
    spec = _job_spec(workers, template)
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(name, template), "spec": spec}]


def _job_set(name: str, workers: int, template: Object) -> list[Object]:
    workers_job = {"name": "workers", "replicas": 1, "template": {"spec": _job_spec(workers, template)}}
    spec: dict[str, Any] = {"replicatedJobs": [workers_job]}
    metadata = _metadata(name, template)
    return [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}]


def _pods(name: str, workers: int, template: Object) -> list[Object]:
    names = [name] if workers == 1 else [f"{name}-{number}" for number in range(workers)]
    head = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    return [{**head, "metadata": {**template["metadata"], "name": each}} for each in names]


def _deployment(name: str, workers: int, template: Object) -> list[Object]:
    spec = {"replicas": workers, "selector": {"matchLabels": template["metadata"]["labels"]}, "template": template}
    return [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(name, template), "spec": spec}]


_KINDS: dict[Kind, Callable[[str, int, Object], list[Object]]] = {
    "Job": _job,
    "JobSet": _job_set,
    "Pod": _pods,
    "Deployment": _deployment,
}


@dataclass(frozen=True)
class PlannedJob:
    """A job to create."""

    name: str
    workload: str
    at: float
    """Seconds from the start."""
    workers: int
    """How many pods it makes; 0 where that is not known."""
    objects: tuple[Object, ...]
    """What to create, in this order."""
    later: int = 0
    """How many more it makes as these complete."""
    once: bool = False
    """Whether `at` counts from when all pods of the jobs without it have a node."""
    recorded: bool = False
    """Whether it is from a recording: its objects name recorded namespaces, and the run has one of its own for each."""
