"""Workloads for KAI: a PodGroup of scheduling.run.ai for a gang, queues of two levels, a Topology for places.

Source: KAI-Scheduler, docs/queues, docs/topology, docs/batch ("external PodGroups") and docs/gpu-sharing.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from kumulus.extras.schedulers import templates
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.templates import Manifest
from kumulus.model.quantity import NANO, QuantityError, parse

SCHEDULER_NAME = "kai-scheduler"
DEFAULT_QUEUE = "default"
ROOT_QUEUE = "kumulus-root"
COUNTED = {
    "cpu": ("cpu", Fraction(1000)),
    "memory": ("memory", Fraction(1, 10**6)),
    "nvidia.com/gpu": ("gpu", Fraction(1)),
}
"""What a queue has shares and limits of, by the resource: its name in a Queue, and how many there are one here."""
_GROUP = "pod-group-name"
_QUEUE = "kai.scheduler/queue"
_SKIP = {"kai.scheduler/skip-podgrouper": "true"}
_UNLIMITED = -1


def gang(members: list[Manifest], name: str, minimum: int, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.gang`: the podgrouper leaves these pods in this group."""
    templates.require_together(members, name, minimum)
    spec: dict[str, Any] = {"minMember": minimum, "queue": queue or DEFAULT_QUEUE}
    if priority := templates.priority_class(members):
        spec["priorityClassName"] = priority
    for member in members:
        templates.annotate(member, annotations=_SKIP)
        for template, _ in templates.templates(member):
            templates.annotate(template, labels={_QUEUE: spec["queue"]}, annotations={_GROUP: name, **_SKIP})
    templates.assign(members, SCHEDULER_NAME)
    metadata = {"name": name, "namespace": templates.namespace(members[0])}
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}
    return [group, *members]


def bind(made: Sequence[Manifest], topology: str) -> None:
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.bind`; the Topology is called as the queue."""
    spec = made[0]["spec"]
    spec["topologyConstraint"] = {"topology": spec["queue"], "requiredTopologyLevel": topology}


def single(made: Manifest, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.single`: the podgrouper makes a group for each of its pods."""
    templates.assign([made], SCHEDULER_NAME)
    for template, _ in templates.templates(made):
        templates.annotate(template, labels={_QUEUE: queue or DEFAULT_QUEUE})
    return [made]


def queue(name: str, namespace: str, quota: Mapping[str, str], levels: Sequence[str] = ()) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.queue`: the quota is the queue's share, and its limit too.

    A queue of KAI is for all namespaces. A Topology comes first if its workloads have to be in one place.
    """
    amounts = {resource: _amount(name, resource, text) for resource, text in quota.items()}
    shares = {
        kind: {"quota": amount, "limit": amount, "overQuotaWeight": 1}
        for resource, (kind, _) in COUNTED.items()
        for amount in (amounts.get(resource, _UNLIMITED),)
    }
    keys = {"levels": [{"nodeLabel": each} for each in levels]}
    topology = {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": name}, "spec": keys}
    return [*([topology] if levels else []), _queue(name, {"parentQueue": ROOT_QUEUE, "resources": shares})]


def root() -> Manifest:
    """The queue above all others, which has no limit."""
    unlimited = {"quota": _UNLIMITED, "limit": _UNLIMITED, "overQuotaWeight": 1}
    return _queue(ROOT_QUEUE, {"resources": {kind: dict(unlimited) for kind, _ in COUNTED.values()}})


def _queue(name: str, spec: Mapping[str, Any]) -> Manifest:
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": dict(spec)}


def _amount(queue: str, resource: str, text: str) -> float:
    if resource not in COUNTED:
        raise SchedulerError(f"queue {queue!r}: a queue of kai has no {resource}\n  Write {', '.join(COUNTED)}")
    try:
        amount = Fraction(parse(text).nanos, NANO) * COUNTED[resource][1]
    except QuantityError as error:
        message = f"queue {queue!r}: {resource}: {text!r} {error}\n  Write a quantity such as 64 or 16Gi"
        raise SchedulerError(message) from None
    return amount.numerator if amount.denominator == 1 else float(amount)
