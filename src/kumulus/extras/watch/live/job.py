"""Which job a pod belongs to, and in which queue it waits, according to its labels and owners.

Sources: jobset.sigs.k8s.io/docs/concepts, kueue.sigs.k8s.io/docs/tasks/run/plain_pods, volcano.sh/en/docs/podgroup,
scheduler-plugins.sigs.k8s.io/docs/plugins/coscheduling and yunikorn.apache.org/docs/user_guide/labels_and_annotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_JOB_SET = "jobset.sigs.k8s.io/jobset-name"
_HASH = "pod-template-hash"
_GROUPS = (
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.x-k8s.io/pod-group",
    "scheduling.k8s.io/group-name",
    "pod-group-name",
)
_QUEUES = (
    "kueue.x-k8s.io/queue-name",
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name",
    "kai.scheduler/queue",
    "queue",
)
_APPLICATION = "applicationId"


def job_of(
    name: str, labels: Mapping[str, str], annotations: Mapping[str, str], owners: Sequence[tuple[str, str]]
) -> str:
    """``Kind/name`` of the top-level owner of a pod: a Deployment, not its ReplicaSet; a JobSet, not its Job.

    Args:
        name: the pod's.
        labels: the pod's.
        annotations: the pod's.
        owners: kind and name of each.
    """
    if job_set := labels.get(_JOB_SET):
        return f"JobSet/{job_set}"
    for kind, owner in owners:
        suffix = f"-{labels.get(_HASH, '')}"
        if kind == "ReplicaSet" and suffix != "-" and owner.endswith(suffix):
            return f"Deployment/{owner.removesuffix(suffix)}"
        if kind not in ("PodGroup", "Workload", "Node"):
            return f"{kind}/{owner}"
    if group := group_of(labels, annotations):
        return f"PodGroup/{group}"
    if application := labels.get(_APPLICATION):
        return f"Application/{application}"
    return f"Pod/{name}"


def group_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The group that a pod is to be scheduled with; empty if there is none."""
    return next((found for key in _GROUPS if (found := labels.get(key) or annotations.get(key, ""))), "")


def queue_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The queue that an object itself names; empty if there is none."""
    return next((found for key in _QUEUES if (found := labels.get(key) or annotations.get(key, ""))), "")
