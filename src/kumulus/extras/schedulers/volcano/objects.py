"""Volcano's objects.

A Queue reports how much of it is in use, but since 1.10 not how many PodGroups wait in it: they are counted, as
Volcano's own controller counts them for its metrics.

Sources: volcano.sh/en/docs/queue, volcano.sh/en/docs/podgroup, and pkg/controllers/queue of Volcano 1.14.
"""

from typing import Any

from kumulus.extras.schedulers.forms import BARE, NAME, RESOURCES, WORD, Form
from kumulus.extras.schedulers.kinds import Object, ObjectKind, QueueMember, Quota
from kumulus.extras.schedulers.readers import part, pod_group, quota, texts

GROUP = "scheduling.volcano.sh"
GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
QUEUE_ANNOTATIONS = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")
"""By which its controllers find the queue of a pod, and of a job."""
_QUEUE: Form = {
    "weight": WORD,
    "priority": WORD,
    "reclaimable": WORD,
    "capability": RESOURCES,
    "deserved": RESOURCES,
    "guarantee": {"resource": RESOURCES},
    "parent": NAME,
}
_POD_GROUP: Form = {"minMember": WORD, "minResources": RESOURCES, "queue": NAME}


def queues(found: Object) -> list[Quota]:
    """A Queue; :func:`member` says what is in it."""
    spec, status = part(found, "spec"), part(found, "status")
    return [quota(found, "Queue", texts(spec.get("capability")), texts(status.get("allocated")), {})]


def member(found: Object) -> QueueMember | None:
    """The queue that a PodGroup is in; None when it has ended."""
    phase = part(found, "status").get("phase")
    queue = str(part(found, "spec").get("queue") or "default")
    # Volcano says "Unknown" of a group that ran in full and has lost pods: the others keep running.
    return None if phase == "Completed" else QueueMember("Queue", queue, phase in ("Running", "Unknown"))


def _kind(name: str, plural: str, spec: Form, **more: Any) -> ObjectKind:
    return ObjectKind(name, plural, GROUP, ("v1beta1",), fields={"metadata": BARE, "spec": spec}, **more)


KINDS = (
    _kind("Queue", "queues", _QUEUE, queues=queues, started_with=True),
    _kind("PodGroup", "podgroups", _POD_GROUP, replayed=True, job=pod_group, says_why=True, member=member),
    ObjectKind("HyperNode", "hypernodes", "topology.volcano.sh", ("v1alpha1",), started_with=True, of_nodes=True),
)
