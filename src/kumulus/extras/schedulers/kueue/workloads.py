"""Workloads for Kueue: Jobs that wait in a LocalQueue until its ClusterQueue's quota has room for all of their pods.

Kueue admits Jobs; the cluster's own scheduler then places each pod separately. Kueue counts quota, not nodes: if free
resources are fragmented, only some pods of an admitted Job may run. A Job that has to be in one place of a topology
is admitted when a place has room for all of it, and its pods then get the nodes that Kueue has chosen.
Source: kueue.sigs.k8s.io/docs/concepts, kueue.sigs.k8s.io/docs/reference/kueue.v1beta2.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kumulus.extras.federation.federation import API
from kumulus.extras.schedulers import templates
from kumulus.extras.schedulers.descriptor import OF_THE_CLUSTER
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.templates import Manifest

SCHEDULER_NAME = OF_THE_CLUSTER
DEFAULT_QUEUE = "default"
_QUEUE = "kueue.x-k8s.io/queue-name"
_MANAGED = ("Job", "JobSet")
_TOGETHER = "kueue.x-k8s.io/podset-required-topology"
_SLICES = "kueue.x-k8s.io/podset-slice-required-topology"
_SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
# A flavor with a topology has to select nodes by a label: every node has this one.
_ANY_NODE = {"kubernetes.io/os": "linux"}


def gang(members: list[Manifest], name: str, minimum: int, queue: str) -> list[Manifest]:
    """See ``workloads.gang``: a single Job or JobSet is a gang by itself, without a further object."""
    if len(members) != 1:
        raise SchedulerError(f"gang {name!r}: kueue admits one Job or JobSet at a time\n  Write one of them per gang")
    found = templates.size(members)
    if minimum != found:
        raise SchedulerError(
            f"gang {name!r}: kueue admits all pods of a Job or none, and {minimum} of {found} are to suffice\n"
            "  Leave the minimum out, or use volcano or coscheduling"
        )
    return single(members[0], queue)


def single(made: Manifest, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.single`.

    The Job is created suspended: Kueue would suspend it, but a Job created while Kueue is down would run unadmitted.
    """
    if made.get("kind") not in _MANAGED:
        raise SchedulerError(
            f"{templates.label(made)}: kueue is set up for {' and '.join(_MANAGED)}\n  Write a Job, or use volcano"
        )
    templates.annotate(made, labels={_QUEUE: queue or DEFAULT_QUEUE})
    made["spec"] = {**(made.get("spec") or {}), "suspend": True}
    return [made]


def bind(made: Sequence[Manifest], topology: str) -> None:
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.bind`."""
    _annotate(made, {_TOGETHER: topology})


def slices(made: list[Manifest], topology: str, size: int) -> list[Manifest]:
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.slices`."""
    _annotate(made, {_SLICES: topology, _SLICE_SIZE: str(size)})
    return made


def _annotate(made: Sequence[Manifest], annotations: Mapping[str, str]) -> None:
    for each in made:
        for template, _ in templates.templates(each):
            templates.annotate(template, annotations=annotations)


def queue(
    name: str,
    namespace: str,
    quota: Mapping[str, str],
    levels: Sequence[str] = (),
    *,
    node_labels: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.queue`: a ResourceFlavor, a ClusterQueue and a LocalQueue.

    Args:
        quota: for every resource that Jobs may request; a Job that requests another resource is never admitted.
        levels: a Topology comes first, with these.
        node_labels: of the flavor: admitted Jobs get them as a node selector.
        tolerations: of the flavor: admitted Jobs get them too.
    """
    if not quota:
        raise SchedulerError(
            f"queue {name!r}: a queue of kueue needs a quota\n  Write cpu, memory and what else counts"
        )
    flavor: dict[str, Any] = {}
    if node_labels or levels:
        flavor["nodeLabels"] = dict(node_labels or _ANY_NODE)
    if levels:
        flavor["topologyName"] = name
    if tolerations:
        flavor["tolerations"] = [dict(each) for each in tolerations]
    resources = [{"name": resource, "nominalQuota": amount} for resource, amount in quota.items()]
    group = {"coveredResources": list(quota), "flavors": [{"name": name, "resources": resources}]}
    spec = {"namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO", "resourceGroups": [group]}
    topology = {"levels": [{"nodeLabel": each} for each in levels]}
    return [
        *([_object("Topology", {"name": name}, topology)] if levels else []),
        _object("ResourceFlavor", {"name": name}, flavor),
        _object("ClusterQueue", {"name": name}, spec),
        _object("LocalQueue", {"name": name, "namespace": namespace}, {"clusterQueue": name}),
    ]


def _object(kind: str, metadata: Mapping[str, str], spec: Mapping[str, Any]) -> Manifest:
    return {"apiVersion": API, "kind": kind, "metadata": dict(metadata), "spec": dict(spec)}
