"""The pods of a described workload: their template, and the labels by which a run knows pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kumulus.extras.lab.file.workload import Workload
from kumulus.model.pools import REGION_LABEL, ZONE_LABEL

Object = dict[str, Any]
WORKLOAD_LABEL = "kumulus.io/workload"
JOB_LABEL = "kumulus.io/workload-job"
DELAY_ANNOTATION = "pod-complete.stage.kwok.x-k8s.io/delay"
"""How long a Job's pod runs, a Go duration; see docs/pods.md."""

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
        workload: the workload.
        job: the name of the job they belong to.
        duration: seconds they run; None for no end.
        product_label: the key of the label that says which GPUs a node has.
        places: the label key of each level of the cluster's topology.

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
    if workload.priority != "":
        spec["priorityClassName"] = priority_class(workload.priority)
    return {"metadata": {"labels": labels, **({"annotations": annotations} if annotations else {})}, "spec": spec}


def priority_class(priority: str | int) -> str:
    """The name of a priority's class; the class of a number has the number in its name."""
    return priority if isinstance(priority, str) else f"experiment-{priority}".replace("--", "-minus-")


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
