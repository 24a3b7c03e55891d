"""Which pods belong to a workload of a kind, in jq, as KWOK's stages ask it. The provider plugin imports this file."""

from __future__ import annotations

import json

# Labels by which operators mark the pods of a workload whose owner is of another kind: JobSet's and MPIJob's pods are
# (partly) a Job's, RayJob's a RayCluster's (jobset v0.12, training-operator v1.9, kuberay v1.4).
_JOB_SET, _TRAINING, _RAY = "jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/operator-name", "ray.io/cluster"
_PART_OF_MORE = (_JOB_SET, _TRAINING, _RAY)


def belongs_to(kind: str) -> str:
    """A jq expression that is true for the pods of workloads of a kind and false for all others.

    Args:
        kind: one of :data:`OWNER_KINDS`, or the kind of an owner, such as StatefulSet.
    """
    return _WORKLOADS.get(kind) or _owned(kind)


def _owned(kind: str, group: str = "") -> str:
    same = f".kind == {json.dumps(kind)}"
    if group:
        same += f" and (.apiVersion | startswith({json.dumps(group + '/')}))"
    return f"any(.metadata.ownerReferences[]?; {same})"


def _labelled(key: str) -> str:
    return f"(.metadata.labels // {{}} | has({json.dumps(key)}))"


_WORKLOADS = {
    "Job": f"({_owned('Job', 'batch')} and (any({', '.join(map(_labelled, _PART_OF_MORE))}; .) | not))",
    "JobSet": f"({_owned('JobSet')} or {_labelled(_JOB_SET)})",
    "MPIJob": f'({_owned("MPIJob")} or (.metadata.labels[{json.dumps(_TRAINING)}]? // "" | startswith("mpi")))',
    "PyTorchJob": _owned("PyTorchJob"),
    "RayJob": f"({_owned('RayJob')} or {_labelled(_RAY)})",
    "VolcanoJob": _owned("Job", "batch.volcano.sh"),
}
OWNER_KINDS = tuple(_WORKLOADS)
"""Workloads whose pods are known by more than the kind of their owner."""
