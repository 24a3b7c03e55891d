"""The objects of a job from the user's manifest: unchanged except for labels and repeated names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kumulus.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL, Object

COUNTED = ("Pod", "Job", "Deployment", "ReplicaSet", "StatefulSet", "JobSet")
"""Kinds of which it is known how many pods their objects have."""


def adopt(objects: list[Object], workload: str, job: str, index: int) -> int:
    """Name the objects, label their pods, and return how many pods they make.

    A `generateName` becomes a name, so that two runs create the same objects. If there are several jobs, the job's
    number is appended to plain names.

    Args:
        objects: of one job; changed in place.
        workload: the workload's name.
        job: the job's name.
        index: the job's number, from 1; 0 when the workload has only this one.
    """
    pods = 0
    for each in objects:
        metadata = each.setdefault("metadata", {})
        prefix = metadata.pop("generateName", None)
        if prefix is not None:
            metadata["name"] = f"{prefix}{index or 1}"
        elif index and "name" in metadata:
            metadata["name"] = f"{metadata['name']}-{index}"
        elif "name" not in metadata:
            metadata["name"] = job
        metadata.pop("namespace", None)
        for template in pod_templates(each):
            template.setdefault("metadata", {}).setdefault("labels", {}).update(
                {WORKLOAD_LABEL: workload, JOB_LABEL: job}
            )
        pods += expected_pods(each)
    return pods


def pod_templates(node: Any) -> Iterator[Object]:
    """Every pod template within an object, however deep; a Pod is its own."""
    if isinstance(node, Mapping):
        spec = node.get("spec")
        if isinstance(spec, Mapping) and isinstance(spec.get("containers"), list):
            assert isinstance(node, dict)
            yield node
            return
        for each in node.values():
            yield from pod_templates(each)
    elif isinstance(node, list):
        for each in node:
            yield from pod_templates(each)


def expected_pods(each: Object) -> int:
    """How many pods an object's controller makes; 0 where that is not known."""
    kind, spec = each.get("kind"), each.get("spec") or {}
    if kind == "Pod":
        return 1
    if kind == "Job":
        parallelism = spec.get("parallelism", 1)
        return int(min(parallelism, spec.get("completions", parallelism)))
    if kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        return int(spec.get("replicas", 1))
    if kind == "JobSet":
        return sum(
            int(part.get("replicas", 1)) * int(part.get("template", {}).get("spec", {}).get("parallelism", 1))
            for part in spec.get("replicatedJobs") or []
        )
    return 0
