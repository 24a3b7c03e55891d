"""A pod as the views see it, read from a watch.

Which job a pod belongs to, and in which queue it waits, its labels and owners say; each scheduler's are in its folder.
Source: jobset.sigs.k8s.io/docs/concepts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kumulus.extras.schedulers.pod_requests import lenient, pod_requests
from kumulus.extras.schedulers.readers import group_of, queue_of
from kumulus.extras.watch.live.admission import ANYWHERE, AdmissionRule, rule_of
from kumulus.extras.watch.live.amounts import Amounts, of_requests
from kumulus.model.quantity import NANO, Quantity

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
"""A pod's phases, in Kubernetes' order."""

NOT_SEEN = "not looked at by the scheduler yet"
"""Why a pod is pending if no scheduler has reported anything."""

_ENDED = frozenset({"Succeeded", "Failed"})
# k8s.io/kubernetes pkg/scheduler/framework/types.go, FitError.Error: the reasons follow in one sentence, each with the
# number of its nodes; what preemption tried comes in a sentence of its own. Checked against Kubernetes 1.35 to 1.37.
_UNSCHEDULABLE = re.compile(r"0/\d+ nodes are available: (.*?)(?:\. (?:preemption|no new claims)\b.*)?\.?", re.DOTALL)
_NUMBERED = re.compile(r"(?:^|, )\d+ ")

_Written = tuple[tuple[str, str], ...]
_Asked = tuple[tuple[str, int], ...]
_JOB_SET = "jobset.sigs.k8s.io/jobset-name"
_HASH = "pod-template-hash"
_APPLICATION = "applicationId"


@dataclass(frozen=True, slots=True)
class ClusterPod:
    """A pod.

    Attributes:
        owner: ``Kind/name`` of what made it; empty for a bare pod.
        node: the node it is bound to; empty while it is not.
        phase: one of :data:`PHASES`.
        requests: what the scheduler counts for it.
        reasons: why it is not bound, in the scheduler's own words; empty once it is.
        created: when, in seconds since 1970.
        bound: when it was bound, likewise; 0 if it is not, or the time is unknown.
        ending: it is being deleted.
        job: ``Kind/name`` of its top-level owner; its own for a bare pod.
        queue: the queue that it names; empty if none.
        priority: the greater goes first.
        disrupted: the reason of its condition DisruptionTarget; empty if none.
        rule: where it may go.
        group: the PodGroup that it names; empty if none.
    """

    namespace: str
    name: str
    owner: str
    node: str
    phase: str
    requests: Amounts
    reasons: tuple[str, ...]
    created: int
    bound: int
    ending: bool
    job: str = ""
    queue: str = ""
    priority: int = 0
    disrupted: str = ""
    rule: AdmissionRule = ANYWHERE
    group: str = ""

    @property
    def holds(self) -> bool:
        """Whether it takes room on a node: bound, and not ended."""
        return bool(self.node) and self.phase not in _ENDED

    @property
    def waits(self) -> bool:
        """Whether it waits for a scheduler."""
        return not self.node and self.phase not in _ENDED


def pod_from(message: Any) -> ClusterPod:
    """Read a ``ClusterPod`` of :mod:`kumulus.kube.messages`."""
    metadata, spec, status = message.metadata, message.spec, message.status
    phase = status.phase or "Pending"
    owners = metadata.ownerReferences
    requests, asked = _asked(spec)
    group = spec.schedulingGroup.podGroupName or group_of(metadata.labels, metadata.annotations)
    return ClusterPod(
        namespace=metadata.namespace,
        name=metadata.name,
        owner=f"{owners[0].kind}/{owners[0].name}" if owners else "",
        node=spec.nodeName,
        phase=phase if phase in PHASES else "Unknown",
        requests=requests,
        reasons=() if spec.nodeName or phase in _ENDED else _reasons(status.conditions),
        created=metadata.creationTimestamp.seconds,
        bound=_bound(status.conditions) if spec.nodeName else 0,
        ending=metadata.HasField("deletionTimestamp"),
        job=job_of(metadata.name, metadata.labels, [(owner.kind, owner.name) for owner in owners], group),
        queue=queue_of(metadata.labels, metadata.annotations),
        priority=spec.priority,
        disrupted=_disrupted(status.conditions),
        rule=rule_of(spec, asked),
        group=group,
    )


def requests_of(spec: Any) -> Amounts:
    """What the scheduler counts for a pod with such a ``PodSpec`` of :mod:`kumulus.kube.messages`."""
    return _asked(spec)[0]


def amounts_asked(spec: Any) -> _Asked:
    """The same by resource, in thousandths."""
    return _asked(spec)[1]


def _asked(spec: Any) -> tuple[Amounts, _Asked]:
    return _counted(
        tuple(_written(container.resources.requests) for container in spec.containers),
        tuple(
            (_written(container.resources.requests), container.restartPolicy == "Always")
            for container in spec.initContainers
        ),
        _written(spec.resources.requests) if spec.HasField("resources") else (),
        _written(spec.overhead),
    )


def _written(requests: Any) -> _Written:
    return tuple(sorted((name, quantity.string) for name, quantity in requests.items()))


# Thousands of pods are alike.
@lru_cache(maxsize=4096)
def _counted(
    containers: tuple[_Written, ...], first: tuple[tuple[_Written, bool], ...], pod: _Written, overhead: _Written
) -> tuple[Amounts, _Asked]:
    """What a pod requests, and the same by resource, in thousandths."""
    total = pod_requests(
        map(_read, containers), [(_read(each), sidecars) for each, sidecars in first], _read(pod), _read(overhead)
    )
    asked = tuple(sorted((name, -(-amount.nanos * 1000 // NANO)) for name, amount in total.items() if amount.nanos))
    return of_requests(total)._replace(pods=1), asked


def _read(written: _Written) -> dict[str, Quantity]:
    return lenient(dict(written))


def _bound(conditions: Any) -> int:
    for condition in conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            return int(condition.lastTransitionTime.seconds)
    return 0


def _disrupted(conditions: Any) -> str:
    for condition in conditions:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return str(condition.reason)
    return ""


def _reasons(conditions: Any) -> tuple[str, ...]:
    for condition in conditions:
        if condition.type == "PodScheduled" and condition.status != "True":
            return explain(condition.reason, condition.message)
    return (NOT_SEEN,)


def explain(reason: str, message: str) -> tuple[str, ...]:
    """The reasons in a PodScheduled condition, without the numbers of nodes, which differ from pod to pod.

    Args:
        reason: of the condition, such as Unschedulable or SchedulingGated.
        message: of the condition; if it is not in kube-scheduler's form, its first line or the reason is returned.
    """
    if not message:
        return (reason or NOT_SEEN,)
    match = _UNSCHEDULABLE.fullmatch(message.strip())
    if match is None:
        return (message.strip().splitlines()[0],) if reason in ("", "Unschedulable") else (reason,)
    found = [part.strip().rstrip(".") for part in _NUMBERED.split(match[1])]
    return tuple(dict.fromkeys(filter(None, found))) or (reason,)


def job_of(name: str, labels: Mapping[str, str], owners: Sequence[tuple[str, str]], group: str = "") -> str:
    """``Kind/name`` of the top-level owner of a pod: a Deployment, not its ReplicaSet; a JobSet, not its Job.

    Or of the PodGroup ``group`` that it names, if any.
    """
    if job_set := labels.get(_JOB_SET):
        return f"JobSet/{job_set}"
    for kind, owner in owners:
        suffix = f"-{labels.get(_HASH, '')}"
        if kind == "ReplicaSet" and suffix != "-" and owner.endswith(suffix):
            return f"Deployment/{owner.removesuffix(suffix)}"
        if kind not in ("PodGroup", "Workload", "Node"):
            return f"{kind}/{owner}"
    if group:
        return f"PodGroup/{group}"
    if application := labels.get(_APPLICATION):
        return f"Application/{application}"
    return f"Pod/{name}"
