"""KAI's objects. A PodGroup says in its conditions why none of its pods is placed; they go when all are."""

from kumulus.extras.schedulers.kinds import JobReport, Object, ObjectKind
from kumulus.extras.schedulers.readers import LONGEST, part, pod_group, words

GROUP = "scheduling.run.ai"


def group(found: Object) -> JobReport | None:
    """A PodGroup."""
    conditions = part(found, "status").get("schedulingConditions") or ()
    reasons = [each for condition in conditions for each in condition.get("reasons") or (condition,)]
    says = "; ".join(dict.fromkeys(": ".join(words(each)) for each in reasons))
    report = pod_group({**found, "status": {}})
    return report._replace(says=says[:LONGEST]) if report else None


KINDS = (
    ObjectKind("Queue", "queues", GROUP, ("v2",), started_with=True),
    ObjectKind("PodGroup", "podgroups", GROUP, ("v2alpha2",), job=group, says_why=True),
)
