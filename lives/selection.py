"""Which pods a selector means, in jq."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from spec.pod_selection import PodSelector

# Labels by which operators mark the pods of a workload whose owner is of another kind: JobSet's and MPIJob's pods are
# (partly) a Job's, RayJob's a RayCluster's (jobset v0.12, training-operator v1.9, kuberay v1.4).
_JOB_SET, _TRAINING, _RAY = "jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/operator-name", "ray.io/cluster"
_PART_OF_MORE = (_JOB_SET, _TRAINING, _RAY)


def _owned(kind: str, group: str = "") -> str:
    same = f".kind == {json.dumps(kind)}"
    if group:
        same += f" and (.apiVersion | startswith({json.dumps(group + '/')}))"
    return f"any(.metadata.ownerReferences[]?; {same})"


def _labelled(key: str) -> str:
    return f"(.metadata.labels // {{}} | has({json.dumps(key)}))"


_OWNERS = {
    "Job": f"({_owned('Job', 'batch')} and (any({', '.join(map(_labelled, _PART_OF_MORE))}; .) | not))",
    "JobSet": f"({_owned('JobSet')} or {_labelled(_JOB_SET)})",
    "MPIJob": f'({_owned("MPIJob")} or (.metadata.labels[{json.dumps(_TRAINING)}]? // "" | startswith("mpi")))',
    "PyTorchJob": _owned("PyTorchJob"),
    "RayJob": f"({_owned('RayJob')} or {_labelled(_RAY)})",
    "VolcanoJob": _owned("Job", "batch.volcano.sh"),
}


def condition(selector: PodSelector) -> str:
    """A jq expression that is true for the pods of a selector and false for all others."""
    parts = [f".metadata.labels[{json.dumps(key)}]? == {json.dumps(value)}" for key, value in selector.labels.items()]
    if selector.namespaces:
        parts.append(_any(f".metadata.namespace == {json.dumps(name)}" for name in selector.namespaces))
    if selector.ownerKinds:
        parts.append(_any(_OWNERS.get(kind) or _owned(kind) for kind in selector.ownerKinds))
    return " and ".join(parts) or "true"


def first_condition(selectors: Sequence[PodSelector], index: int) -> str:
    """As :func:`condition`, for the pods that no earlier one of several selectors has."""
    mine = selectors[index]
    earlier = [condition(other) for other in selectors[:index] if not other.apart_from(mine)]
    return (
        f"({condition(mine)}) and ({' or '.join(f'({each})' for each in earlier)} | not)"
        if earlier
        else condition(mine)
    )


def _any(parts: Iterable[str]) -> str:
    return f"({' or '.join(parts)})"
