"""Which pods belong to a workload of a kind: as jq for KWOK's stages, and as a Python check of a pod."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Labels by which operators mark the pods of a workload whose owner is of another kind: a Job owns JobSet's and (some
# of) MPIJob's pods, a RayCluster owns RayJob's (jobset v0.12, training-operator v1.9, kuberay v1.4).
_JOB_SET, _TRAINING, _RAY = "jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/operator-name", "ray.io/cluster"
_OF_A_LARGER_WORKLOAD = (_JOB_SET, _TRAINING, _RAY)


@dataclass(frozen=True)
class _Workload:
    """How a workload's pods are recognised."""

    kind: str
    """The kind of their owner."""
    group: str = ""
    """The API group of that kind; empty for any."""
    label: str = ""
    """A label that identifies them too, whatever their owner."""
    value_prefix: str = ""
    """How that label's value begins."""
    unless: tuple[str, ...] = ()
    """Labels that mark pods of another workload."""

    def jq(self) -> str:
        """The jq expression that is true for its pods."""
        same = f".kind == {json.dumps(self.kind)}"
        if self.group:
            same += f" and (.apiVersion | startswith({json.dumps(self.group + '/')}))"
        owned = f"any(.metadata.ownerReferences[]?; {same})"
        if self.value_prefix:
            value = f'.metadata.labels[{json.dumps(self.label)}]? // ""'
            return f"({owned} or ({value} | startswith({json.dumps(self.value_prefix)})))"
        if self.label:
            return f"({owned} or {_labelled(self.label)})"
        if self.unless:
            return f"({owned} and (any({', '.join(map(_labelled, self.unless))}; .) | not))"
        return owned

    def has(self, pod: Mapping[str, Any]) -> bool:
        """Whether a pod is one of its pods; the same as `jq`."""
        labels = pod["metadata"].get("labels") or {}
        if self.label in labels and str(labels[self.label]).startswith(self.value_prefix):
            return True
        owned = any(
            owner["kind"] == self.kind and (not self.group or owner["apiVersion"].startswith(f"{self.group}/"))
            for owner in pod["metadata"].get("ownerReferences") or ()
        )
        return owned and not any(label in labels for label in self.unless)


def _labelled(key: str) -> str:
    return f"(.metadata.labels // {{}} | has({json.dumps(key)}))"


BATCH_JOB = _Workload("Job", "batch")
"""All Jobs of Kubernetes' own, including those that belong to a JobSet or MPIJob: their pods end by themselves."""

_WORKLOADS = {
    "Job": _Workload("Job", "batch", unless=_OF_A_LARGER_WORKLOAD),
    "JobSet": _Workload("JobSet", label=_JOB_SET),
    "MPIJob": _Workload("MPIJob", label=_TRAINING, value_prefix="mpi"),
    "PyTorchJob": _Workload("PyTorchJob"),
    "RayJob": _Workload("RayJob", label=_RAY),
    "VolcanoJob": _Workload("Job", "batch.volcano.sh"),
}
OWNER_KINDS = tuple(_WORKLOADS)
"""Workloads whose pods are recognised by more than the kind of their owner."""

OWNER_LABELS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Job": ("batch.kubernetes.io/job-name", ()),
    "JobSet": (_JOB_SET, ()),
    "MPIJob": (_TRAINING, ("mpi-operator", "mpijob-controller")),
    "PyTorchJob": (_TRAINING, ("pytorchjob-controller",)),
    "RayJob": (_RAY, ()),
    "VolcanoJob": ("volcano.sh/job-name", ()),
}
"""The label by which the pods of a kind of workload are recognised, and the values that it then has; none for any."""


def belongs_to(kind: str) -> str:
    """A jq expression that is true for the pods of workloads of a kind, such as StatefulSet, and for no others."""
    return _workload(kind).jq()


def is_of(pod: Mapping[str, Any], kind: str) -> bool:
    """Whether a pod, as the API server returns it, belongs to a workload of a kind."""
    return _workload(kind).has(pod)


def _workload(kind: str) -> _Workload:
    return _WORKLOADS.get(kind) or _Workload(kind)
