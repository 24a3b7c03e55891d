"""The objects of one job of a described workload, by its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kumulus.extras.lab.file.workload import Kind
from kumulus.extras.lab.plan.pods import Object


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


def _pod(name: str, _: int, template: Object) -> list[Object]:
    metadata = {**template["metadata"], "name": name}
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}]


def _deployment(name: str, workers: int, template: Object) -> list[Object]:
    spec = {"replicas": workers, "selector": {"matchLabels": template["metadata"]["labels"]}, "template": template}
    return [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(name, template), "spec": spec}]


_KINDS: dict[Kind, Callable[[str, int, Object], list[Object]]] = {
    "Job": _job,
    "JobSet": _job_set,
    "Pod": _pod,
    "Deployment": _deployment,
}
