"""Kueue's objects. Source: kueue.sigs.k8s.io/docs/reference/kueue.v1beta2."""

from collections.abc import Iterable, Mapping
from typing import Any

from kumulus.extras.schedulers.forms import (
    BARE,
    KEY,
    LABELS,
    NAME,
    QUANTITY,
    RESOURCE,
    SELECTOR,
    TAINTS,
    TOLERATION,
    WORD,
    Form,
)
from kumulus.extras.schedulers.kinds import JobReport, Object, ObjectKind, Quota
from kumulus.extras.schedulers.readers import message, number, owners, part, quota, report, true

GROUP, _VERSIONS = "kueue.x-k8s.io", ("v1beta2", "v1beta1")
_NAMES = "queue-name priority-class pod-group-name pod-group-total-count managed topology"
KEYS = tuple(f"{GROUP}/{name}" for name in _NAMES.split())
_QUOTAS: Form = {
    "name": NAME,
    "resources": [
        {"name": RESOURCE, "nominalQuota": QUANTITY, "borrowingLimit": QUANTITY, "lendingLimit": QUANTITY},
    ],
}
_RESOURCE_GROUPS: Form = [{"coveredResources": [RESOURCE], "flavors": [_QUOTAS]}]
_FAIR: Form = {"weight": QUANTITY}
_FLAVOR: Form = {"nodeLabels": LABELS, "nodeTaints": TAINTS, "tolerations": [TOLERATION], "topologyName": NAME}
_CLUSTER_QUEUE: Form = {
    "cohort": NAME,
    "cohortName": NAME,
    "queueingStrategy": WORD,
    "namespaceSelector": SELECTOR,
    "resourceGroups": _RESOURCE_GROUPS,
    "preemption": {
        "reclaimWithinCohort": WORD,
        "withinClusterQueue": WORD,
        "borrowWithinCohort": {"policy": WORD, "maxPriorityThreshold": WORD},
    },
    "flavorFungibility": {"whenCanBorrow": WORD, "whenCanPreempt": WORD},
    "fairSharing": _FAIR,
    "stopPolicy": WORD,
}
_COHORT: Form = {"parent": NAME, "parentName": NAME, "resourceGroups": _RESOURCE_GROUPS, "fairSharing": _FAIR}
_LOCAL_QUEUE: Form = {"clusterQueue": NAME, "stopPolicy": WORD, "fairSharing": _FAIR}


def workload(found: Object) -> JobReport | None:
    """A Workload, which says where and why the job that owns it waits."""
    spec, its_owners = part(found, "spec"), owners(found)
    conditions = part(found, "status").get("conditions")
    size = sum(number(each.get("count"), 0) for each in spec.get("podSets") or ())
    says = true(conditions, "Finished", "Evicted", "Admitted", "QuotaReserved") or message(conditions, "QuotaReserved")
    made = report(found, "Workload", size, says)._replace(
        queue=str(spec.get("queueName") or ""),
        priority=number(spec.get("priority"), 0),
        admitted=says == "Admitted",
    )
    if len(its_owners) == 1:
        return made._replace(kind=str(its_owners[0].get("kind")), name=str(its_owners[0].get("name")))
    # A Workload of several pods has the name of their group.
    return made._replace(kind="PodGroup")


def cluster_queue(found: Object) -> list[Quota]:
    """A ClusterQueue; amounts of several flavors are joined by plus signs."""
    spec, status = part(found, "spec"), part(found, "status")
    flavors = [flavor for group in spec.get("resourceGroups") or () for flavor in group.get("flavors") or ()]
    most = _amounts((each for flavor in flavors for each in flavor.get("resources") or ()), "nominalQuota")
    usage = status.get("flavorsUsage") or ()
    used = _amounts((each for flavor in usage for each in flavor.get("resources") or ()), "total")
    return [quota(found, "ClusterQueue", most, used, status)]


def local_queue(found: Object) -> list[Quota]:
    """A LocalQueue, named ``namespace/name``; its quota is its ClusterQueue's."""
    made = quota(found, "LocalQueue", {}, {}, part(found, "status"))
    return [made._replace(name=f"{part(found, 'metadata').get('namespace', '')}/{made.name}")]


def _amounts(resources: Iterable[Mapping[str, Any]], key: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in resources:
        name, amount = str(each.get("name")), str(each.get(key, 0))
        found[name] = f"{found[name]} + {amount}" if name in found else amount
    return found


def _kind(name: str, plural: str, fields: Mapping[str, Form], **more: Any) -> ObjectKind:
    return ObjectKind(name, plural, GROUP, _VERSIONS, fields={"metadata": BARE, **fields}, **more)


KINDS = (
    _kind("ResourceFlavor", "resourceflavors", {"spec": _FLAVOR}),
    _kind("ClusterQueue", "clusterqueues", {"spec": _CLUSTER_QUEUE}, queues=cluster_queue),
    _kind("Cohort", "cohorts", {"spec": _COHORT}),
    _kind("LocalQueue", "localqueues", {"spec": _LOCAL_QUEUE}, replayed=True, queues=local_queue),
    _kind("WorkloadPriorityClass", "workloadpriorityclasses", {"value": WORD}),
    _kind("Topology", "topologies", {"spec": {"levels": [{"nodeLabel": KEY}]}}),
    ObjectKind("Workload", "workloads", GROUP, _VERSIONS, job=workload, says_why=True, finalized=True),
)
