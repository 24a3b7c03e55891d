"""What jobs and queues report, read from Kubernetes' own objects and those of each scheduler."""

from collections.abc import Callable, Mapping

from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.kinds import JobReport, Object, QueueMember, Quota
from kumulus.extras.schedulers.readers import number, owners, part, report, texts, true


def job(found: Object) -> JobReport | None:
    """A Job; None for one that a JobSet created."""
    spec, status = part(found, "spec"), part(found, "status")
    if any(owner.get("kind") == "JobSet" for owner in owners(found)):
        return None
    size = min(number(spec.get("parallelism"), 1), number(spec.get("completions"), number(spec.get("parallelism"), 1)))
    ended = true(status.get("conditions"), "Failed", "Complete")
    return report(found, "Job", size, ended or ("suspended" if spec.get("suspend") else ""))


def job_set(found: Object) -> JobReport | None:
    """A JobSet."""
    spec = part(found, "spec")
    size = 0
    for each in spec.get("replicatedJobs") or ():
        template = part(part(each, "template"), "spec")
        size += number(each.get("replicas"), 1) * number(template.get("parallelism"), 1)
    ended = true(part(found, "status").get("conditions"), "Failed", "Completed")
    return report(found, "JobSet", size, ended or ("suspended" if spec.get("suspend") else ""))


def replicated(kind: str) -> Callable[[Object], JobReport | None]:
    """A Deployment or a StatefulSet."""
    return lambda found: report(found, kind, number(part(found, "spec").get("replicas"), 1), "")


def resource_quota(found: Object) -> list[Quota]:
    """A ResourceQuota, named ``namespace/name``."""
    status, metadata = part(found, "status"), part(found, "metadata")
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return [Quota("ResourceQuota", name, texts(status.get("hard")), texts(status.get("used")), 0, 0)]


JOBS: Mapping[str, Callable[[Object], JobReport | None]] = {
    "/apis/batch/v1/jobs": job,
    "/apis/apps/v1/deployments": replicated("Deployment"),
    "/apis/apps/v1/statefulsets": replicated("StatefulSet"),
    "/apis/jobset.x-k8s.io/v1alpha2/jobsets": job_set,
    **{kind.read_at: kind.job for kind in registry.object_kinds() if kind.job},
}
"""What reads the objects that describe jobs, by API path."""

QUEUES: Mapping[str, Callable[[Object], list[Quota]]] = {
    "/api/v1/resourcequotas": resource_quota,
    **{kind.read_at: kind.queues for kind in registry.object_kinds() if kind.queues},
}
"""What reads the objects that describe queues, likewise; a query selects the only ones to read."""

MEMBERS: Mapping[str, Callable[[Object], QueueMember | None]] = {
    kind.read_at: kind.member for kind in registry.object_kinds() if kind.member
}
"""What reads the members of queues that do not count them, likewise."""
