"""What jobs and queues report, read from the objects of Kubernetes, Kueue, Volcano, KAI and scheduler-plugins.

YuniKorn's queues are not objects of the cluster: quotas are read from its configuration, and their use follows from the
pods that name a queue. A Queue of Volcano reports how much of it is in use, but since 1.10 not how many PodGroups wait
in it: they are counted here, as Volcano's own controller counts them for its metrics.
Sources: kueue.sigs.k8s.io/docs/reference/kueue.v1beta2, volcano.sh/en/docs/queue, volcano.sh/en/docs/podgroup, and
pkg/controllers/queue of Volcano 1.14.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import yaml

from kumulus.extras.watch.live.pod import queue_of
from kumulus.kube.yaml_limits import FAST_LOADER, check_limits

YUNIKORN_QUEUE = "YuniKorn queue"
"""The kind of queues that do not report how much of them is in use."""
_VOLCANO_QUEUE = "Queue"
_LONGEST = 300


class JobReport(NamedTuple):
    """What an object says about a job.

    Attributes:
        kind, name, namespace: of the job.
        size: pods it wants; 0 if the object does not say.
        queue: empty if it does not say.
        priority: 0 if it does not say.
        says: its state in the object's words.
        created: seconds since 1970; 0 if it does not say.
    """

    kind: str
    name: str
    namespace: str
    size: int = 0
    queue: str = ""
    priority: int = 0
    says: str = ""
    created: float = 0.0


class Quota(NamedTuple):
    """What an object says about a queue; amounts as Kubernetes writes them."""

    kind: str
    name: str
    quota: dict[str, str]
    used: dict[str, str]
    waiting: int
    admitted: int


class Member(NamedTuple):
    """The queue that an object is in, for queues that do not report their own counts.

    Attributes:
        kind, queue: the queue's.
        admitted: whether it has what it waited for.
    """

    kind: str
    queue: str
    admitted: bool


def job(found: Mapping[str, Any]) -> JobReport | None:
    """A Job; None for one that a JobSet created."""
    spec, status = _part(found, "spec"), _part(found, "status")
    if any(owner.get("kind") == "JobSet" for owner in _owners(found)):
        return None
    size = min(
        _number(spec.get("parallelism"), 1), _number(spec.get("completions"), _number(spec.get("parallelism"), 1))
    )
    ended = _true(status.get("conditions"), "Failed", "Complete")
    return _report(found, "Job", size, ended or ("suspended" if spec.get("suspend") else ""))


def job_set(found: Mapping[str, Any]) -> JobReport | None:
    """A JobSet."""
    spec = _part(found, "spec")
    size = 0
    for each in spec.get("replicatedJobs") or ():
        template = _part(_part(each, "template"), "spec")
        size += _number(each.get("replicas"), 1) * _number(template.get("parallelism"), 1)
    ended = _true(_part(found, "status").get("conditions"), "Failed", "Completed")
    return _report(found, "JobSet", size, ended or ("suspended" if spec.get("suspend") else ""))


def replicated(kind: str) -> Callable[[Mapping[str, Any]], JobReport | None]:
    """A Deployment or a StatefulSet."""
    return lambda found: _report(found, kind, _number(_part(found, "spec").get("replicas"), 1), "")


def workload(found: Mapping[str, Any]) -> JobReport | None:
    """A Workload of Kueue, which says where and why the job that owns it waits."""
    spec, owners = _part(found, "spec"), _owners(found)
    conditions = _part(found, "status").get("conditions")
    size = sum(_number(each.get("count"), 0) for each in spec.get("podSets") or ())
    says = _true(conditions, "Finished", "Evicted", "Admitted", "QuotaReserved") or _message(
        conditions, "QuotaReserved"
    )
    report = _report(found, "Workload", size, says)._replace(
        queue=str(spec.get("queueName") or ""), priority=_number(spec.get("priority"), 0)
    )
    if len(owners) == 1:
        return report._replace(kind=str(owners[0].get("kind")), name=str(owners[0].get("name")))
    # A Workload of several pods has the name of their group.
    return report._replace(kind="PodGroup")


def pod_group(found: Mapping[str, Any]) -> JobReport | None:
    """A PodGroup of Volcano or of scheduler-plugins; a job's own PodGroup speaks for the job."""
    spec, status, owners = _part(found, "spec"), _part(found, "status"), _owners(found)
    phase = str(status.get("phase") or "")
    # Volcano does not reset the condition when the group is placed after all.
    message = "" if phase == "Running" else _message(status.get("conditions"), "Unschedulable", "True")
    says = ": ".join(filter(None, (phase, message)))
    report = _report(found, "PodGroup", _number(spec.get("minMember"), 0), says)
    report = report._replace(queue=str(spec.get("queue") or report.queue))
    return report._replace(kind=str(owners[0]["kind"]), name=str(owners[0]["name"])) if owners else report


def native_group(kind: str) -> Callable[[Mapping[str, Any]], JobReport | None]:
    """A PodGroup or a CompositePodGroup of Kubernetes' own, since 1.37; a Job's own speaks for the Job.

    Its first condition stays True once it was placed; then the second says more, that it is preempted.
    Source: k8s.io/api scheduling/v1beta1 and v1alpha3. Checked against Kubernetes 1.35 to 1.37.
    """
    return lambda found: _native_group(found, kind)


def _native_group(found: Mapping[str, Any], kind: str) -> JobReport | None:
    spec = _part(found, "spec")
    gang = _part(_part(spec, "schedulingPolicy"), "gang")
    conditions = {each.get("type"): each for each in _part(found, "status").get("conditions") or ()}
    said = conditions.get(f"{kind}InitiallyScheduled") or {}
    if (disrupted := conditions.get("DisruptionTarget", {})).get("status") == "True":
        said = disrupted
    report = _report(found, kind, _number(gang.get("minCount"), 0), ": ".join(_words(said)))
    report = report._replace(priority=_number(spec.get("priority"), 0))
    # Of a Job, that Job's Workload owns the group.
    owners = [each for each in _owners(found) if each.get("controller") and each.get("kind") != "Workload"]
    return report._replace(kind=str(owners[0]["kind"]), name=str(owners[0]["name"])) if owners else report


def kai_pod_group(found: Mapping[str, Any]) -> JobReport | None:
    """A PodGroup of KAI, which says in its conditions why none of its pods is placed; they go when all are."""
    conditions = _part(found, "status").get("schedulingConditions") or ()
    reasons = [each for condition in conditions for each in condition.get("reasons") or (condition,)]
    says = "; ".join(dict.fromkeys(": ".join(_words(each)) for each in reasons))
    report = pod_group({**found, "status": {}})
    return report._replace(says=says[:_LONGEST]) if report else None


def cluster_queue(found: Mapping[str, Any]) -> list[Quota]:
    """A ClusterQueue of Kueue; amounts of several flavors are joined by plus signs."""
    spec, status = _part(found, "spec"), _part(found, "status")
    flavors = [flavor for group in spec.get("resourceGroups") or () for flavor in group.get("flavors") or ()]
    quota = _amounts((each for flavor in flavors for each in flavor.get("resources") or ()), "nominalQuota")
    usage = status.get("flavorsUsage") or ()
    used = _amounts((each for flavor in usage for each in flavor.get("resources") or ()), "total")
    return [_quota(found, "ClusterQueue", quota, used, status)]


def local_queue(found: Mapping[str, Any]) -> list[Quota]:
    """A LocalQueue of Kueue, named ``namespace/name``; its quota is its ClusterQueue's."""
    report = _quota(found, "LocalQueue", {}, {}, _part(found, "status"))
    return [report._replace(name=f"{_part(found, 'metadata').get('namespace', '')}/{report.name}")]


def volcano_queue(found: Mapping[str, Any]) -> list[Quota]:
    """A Queue of Volcano; :func:`volcano_member` says what is in it."""
    spec, status = _part(found, "spec"), _part(found, "status")
    return [_quota(found, _VOLCANO_QUEUE, _texts(spec.get("capability")), _texts(status.get("allocated")), {})]


def volcano_member(found: Mapping[str, Any]) -> Member | None:
    """The queue that a PodGroup of Volcano is in; None when it has ended."""
    phase = _part(found, "status").get("phase")
    queue = str(_part(found, "spec").get("queue") or "default")
    # Volcano says "Unknown" of a group that ran in full and has lost pods: the others keep running.
    return None if phase == "Completed" else Member(_VOLCANO_QUEUE, queue, phase in ("Running", "Unknown"))


def resource_quota(found: Mapping[str, Any]) -> list[Quota]:
    """A ResourceQuota, named ``namespace/name``."""
    status, metadata = _part(found, "status"), _part(found, "metadata")
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return [Quota("ResourceQuota", name, _texts(status.get("hard")), _texts(status.get("used")), 0, 0)]


def yunikorn_queues(found: Mapping[str, Any]) -> list[Quota]:
    """The queues with a quota in YuniKorn's ConfigMap, by their full names; none if the text cannot be read."""
    text = str(_part(found, "data").get("queues.yaml") or "")
    try:
        check_limits(text)
        plain = yaml.load(text, Loader=FAST_LOADER)  # noqa: S506  # it is the safe one
        return [
            quota
            for partition in plain["partitions"]
            for queue in partition["queues"]
            for quota in _below(queue, str(queue["name"]))
        ]
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError):
        # YuniKorn itself refuses such a text, and says so in its log.
        return []


def _below(queue: Mapping[str, Any], name: str) -> list[Quota]:
    most = _texts((queue.get("resources") or {}).get("max"))
    own = [Quota(YUNIKORN_QUEUE, name, most, {}, 0, 0)] if most else []
    return own + [each for child in queue.get("queues") or () for each in _below(child, f"{name}.{child['name']}")]


JOBS: Mapping[str, Callable[[Mapping[str, Any]], JobReport | None]] = {
    "/apis/batch/v1/jobs": job,
    "/apis/apps/v1/deployments": replicated("Deployment"),
    "/apis/apps/v1/statefulsets": replicated("StatefulSet"),
    "/apis/jobset.x-k8s.io/v1alpha2/jobsets": job_set,
    "/apis/kueue.x-k8s.io/v1beta2/workloads": workload,
    "/apis/scheduling.volcano.sh/v1beta1/podgroups": pod_group,
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups": pod_group,
    "/apis/scheduling.run.ai/v2alpha2/podgroups": kai_pod_group,
    "/apis/scheduling.k8s.io/v1beta1/podgroups": native_group("PodGroup"),
    "/apis/scheduling.k8s.io/v1alpha3/compositepodgroups": native_group("CompositePodGroup"),
}
"""What reads the objects that describe jobs, by API path."""

QUEUES: Mapping[str, Callable[[Mapping[str, Any]], list[Quota]]] = {
    "/apis/kueue.x-k8s.io/v1beta2/clusterqueues": cluster_queue,
    "/apis/kueue.x-k8s.io/v1beta2/localqueues": local_queue,
    "/apis/scheduling.volcano.sh/v1beta1/queues": volcano_queue,
    "/api/v1/resourcequotas": resource_quota,
    "/api/v1/configmaps?fieldSelector=metadata.name%3Dyunikorn-configs": yunikorn_queues,
}
"""What reads the objects that describe queues, likewise; a query selects the only ones to read."""

MEMBERS: Mapping[str, Callable[[Mapping[str, Any]], Member | None]] = {
    "/apis/scheduling.volcano.sh/v1beta1/podgroups": volcano_member,
}
"""What reads the members of queues that do not count them, likewise."""


def _report(found: Mapping[str, Any], kind: str, size: int, says: str) -> JobReport:
    metadata = _part(found, "metadata")
    queue = queue_of(_part(metadata, "labels"), _part(metadata, "annotations"))
    try:
        created = datetime.fromisoformat(str(metadata.get("creationTimestamp"))).timestamp()
    except ValueError:
        created = 0.0
    name, namespace = str(metadata.get("name", "")), str(metadata.get("namespace", ""))
    return JobReport(kind, name, namespace, size, queue, 0, says[:_LONGEST], created)


def _quota(
    found: Mapping[str, Any], kind: str, quota: dict[str, str], used: dict[str, str], counts: Mapping[str, Any]
) -> Quota:
    name = str(_part(found, "metadata").get("name", ""))
    waiting, admitted = (_number(counts.get(each), 0) for each in ("pendingWorkloads", "admittedWorkloads"))
    return Quota(kind, name, quota, used, waiting, admitted)


def _amounts(resources: Iterable[Mapping[str, Any]], key: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in resources:
        name, amount = str(each.get("name")), str(each.get(key, 0))
        found[name] = f"{found[name]} + {amount}" if name in found else amount
    return found


def _texts(amounts: Any) -> dict[str, str]:
    return {str(name): str(amount) for name, amount in (amounts or {}).items()}


def _part(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return found.get(name) or {}


def _owners(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(_part(found, "metadata").get("ownerReferences") or ())


def _number(found: Any, default: int) -> int:
    return found if isinstance(found, int) else default


def _true(conditions: Any, *kinds: str) -> str:
    """The first of some conditions that is True."""
    there = {each.get("type") for each in conditions or () if each.get("status") == "True"}
    return next((kind for kind in kinds if kind in there), "")


def _words(condition: Mapping[str, Any]) -> list[str]:
    """The reason and the message of a condition, as far as it has them."""
    return [str(condition[key]) for key in ("reason", "message") if condition.get(key)]


def _message(conditions: Any, kind: str, status: str = "False") -> str:
    for each in conditions or ():
        if each.get("type") == kind and each.get("status") == status:
            return str(each.get("message") or each.get("reason") or "")
    return ""
