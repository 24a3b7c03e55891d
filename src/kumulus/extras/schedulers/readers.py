"""Reads what an object reports of a job or a queue: what the readers of several kinds share."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.kinds import JobReport, Object, Quota

LONGEST = 300
"""Characters of what an object says."""


def pod_group(found: Object) -> JobReport | None:
    """A PodGroup with `minMember` and `phase`, of several schedulers; a job's own PodGroup speaks for the job."""
    spec, status, its_owners = part(found, "spec"), part(found, "status"), owners(found)
    phase = str(status.get("phase") or "")
    # Volcano does not reset the condition when the group is placed after all.
    why = "" if phase == "Running" else message(status.get("conditions"), "Unschedulable", "True")
    says = ": ".join(filter(None, (phase, why)))
    made = report(found, "PodGroup", number(spec.get("minMember"), 0), says)
    made = made._replace(queue=str(spec.get("queue") or made.queue))
    return made._replace(kind=str(its_owners[0]["kind"]), name=str(its_owners[0]["name"])) if its_owners else made


def report(found: Object, kind: str, size: int, says: str) -> JobReport:
    """A report with what the metadata say."""
    metadata = part(found, "metadata")
    queue = queue_of(part(metadata, "labels"), part(metadata, "annotations"))
    try:
        created = datetime.fromisoformat(str(metadata.get("creationTimestamp"))).timestamp()
    except ValueError:
        created = 0.0
    name, namespace = str(metadata.get("name", "")), str(metadata.get("namespace", ""))
    return JobReport(kind, name, namespace, size, queue, 0, says[:LONGEST], created)


def quota(found: Object, kind: str, most: dict[str, str], used: dict[str, str], counts: Mapping[str, Any]) -> Quota:
    """A queue; the counts are those of Kueue's status."""
    name = str(part(found, "metadata").get("name", ""))
    waiting, admitted = (number(counts.get(each), 0) for each in ("pendingWorkloads", "admittedWorkloads"))
    return Quota(kind, name, most, used, waiting, admitted)


def queue_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The queue that an object itself names; empty if there is none."""
    return _named(registry.all_of("queue_labels", "queue_annotations"), labels, annotations)


def group_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The group by which other schedulers than Kubernetes' own know a pod; empty if there is none."""
    return _named(registry.all_of("group_keys"), labels, annotations)


def _named(keys: Sequence[str], labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    return next((found for key in keys if (found := labels.get(key) or annotations.get(key, ""))), "")


def texts(amounts: Any) -> dict[str, str]:
    """Amounts as they are written."""
    return {str(name): str(amount) for name, amount in (amounts or {}).items()}


def part(found: Object, name: str) -> Mapping[str, Any]:
    """A part of an object; empty if it is missing."""
    return found.get(name) or {}


def owners(found: Object) -> list[Mapping[str, Any]]:
    """The owners of an object."""
    return list(part(found, "metadata").get("ownerReferences") or ())


def number(found: Any, default: int) -> int:
    """A whole number, or the default."""
    return found if isinstance(found, int) else default


def true(conditions: Any, *kinds: str) -> str:
    """The first of some conditions that is True."""
    there = {each.get("type") for each in conditions or () if each.get("status") == "True"}
    return next((kind for kind in kinds if kind in there), "")


def words(condition: Mapping[str, Any]) -> list[str]:
    """The reason and the message of a condition, as far as it has them."""
    return [str(condition[key]) for key in ("reason", "message") if condition.get(key)]


def message(conditions: Any, kind: str, status: str = "False") -> str:
    """What a condition of that status says."""
    for each in conditions or ():
        if each.get("type") == kind and each.get("status") == status:
            return str(each.get("message") or each.get("reason") or "")
    return ""
