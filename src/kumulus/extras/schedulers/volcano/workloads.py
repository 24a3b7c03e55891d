"""Workloads for Volcano: a PodGroup of scheduling.volcano.sh for a gang, queues with a capability.

Source: volcano.sh/en/docs: podgroup, queue, network_topology_aware_scheduling; the definitions of Volcano's own module.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kumulus.extras.schedulers import templates
from kumulus.extras.schedulers.fabrics import tier_name
from kumulus.extras.schedulers.templates import Manifest

SCHEDULER_NAME = "volcano"
DEFAULT_QUEUE = "default"
_API_VERSION = "scheduling.volcano.sh/v1beta1"
_GROUP = "scheduling.k8s.io/group-name"
_QUEUE = "scheduling.volcano.sh/queue-name"


def gang(members: list[Manifest], name: str, minimum: int, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.gang`."""
    templates.require_together(members, name, minimum)
    group: Manifest = {
        "apiVersion": _API_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": templates.namespace(members[0])},
        "spec": {
            "minMember": minimum,
            # Without this, Volcano admits gangs to its queue that could never fit, and tries them in every cycle.
            "minResources": templates.total_requests(members, minimum),
            "queue": queue or DEFAULT_QUEUE,
        },
    }
    if priority := templates.priority_class(members):
        group["spec"]["priorityClassName"] = priority
    for member in members:
        for template, _ in templates.templates(member):
            templates.annotate(template, annotations={_GROUP: name})
    templates.assign(members, SCHEDULER_NAME)
    return [group, *members]


def bind(made: Sequence[Manifest], topology: str) -> None:
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.bind`: the name of a tier of HyperNodes."""
    made[0]["spec"]["networkTopology"] = {"mode": "hard", "highestTierName": tier_name(topology)}


def single(made: Manifest, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.single`: Volcano's controller creates a PodGroup for it."""
    templates.assign([made], SCHEDULER_NAME)
    if queue:
        for template, _ in templates.templates(made):
            templates.annotate(template, annotations={_QUEUE: queue})
    return [made]


def queue(name: str, namespace: str, quota: Mapping[str, str], levels: Sequence[str] = ()) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.queue`; a queue of Volcano is for all namespaces."""
    spec: dict[str, Any] = {"weight": 1, "reclaimable": True}
    if quota:
        spec["capability"] = dict(quota)
    return [{"apiVersion": _API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}]
