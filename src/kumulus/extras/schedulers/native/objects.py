"""The objects of Kubernetes' own API for workloads, since 1.37.

Source: k8s.io/api scheduling/v1beta1 and v1alpha3. Checked against Kubernetes 1.37, which alone has these versions.
"""

from typing import Any

from kumulus.extras.schedulers.forms import BARE, CLAIMS, KEY, NAME, WORD, Form, Selecting
from kumulus.extras.schedulers.kinds import JobReport, Object, ObjectKind
from kumulus.extras.schedulers.readers import number, owners, part, report, words

GROUP = "scheduling.k8s.io"
# Without its policy, no group would be stored; a mode is chosen by its name alone.
_OF_TEMPLATES: dict[str, Form] = {
    "schedulingConstraints": {"topology": [{"key": KEY}]},
    "disruptionMode": {"single": Selecting({}), "all": Selecting({})},
    "priorityClassName": NAME,
    "preemptionPolicy": WORD,
}
_OF_GROUPS: dict[str, Form] = {
    "parentCompositePodGroupName": NAME,
    "workloadRef": {"workloadName": NAME, "templateName": NAME},
    **_OF_TEMPLATES,
}
_OF_PODS: dict[str, Form] = {
    "schedulingPolicy": {"basic": Selecting({}), "gang": {"minCount": WORD}},
    "resourceClaims": CLAIMS,
}
POD_GROUP: dict[str, Form] = {**_OF_GROUPS, **_OF_PODS}
"""The spec of a PodGroup."""
_COMPOSITE: dict[str, Form] = {"schedulingPolicy": {"basic": Selecting({}), "gang": {"minGroupCount": WORD}}}
_WORKLOAD: dict[str, Form] = {"podGroupTemplates": [{"name": NAME, **_OF_TEMPLATES, **_OF_PODS}]}
# A tree of groups has four levels at most.
for _ in range(4):
    _WORKLOAD |= {"compositePodGroupTemplates": [{"name": NAME, **_OF_TEMPLATES, **_COMPOSITE, **_WORKLOAD}]}


def pod_group(found: Object) -> JobReport | None:
    """A PodGroup; a Job's own speaks for the Job."""
    return _group(found, "PodGroup")


def composite(found: Object) -> JobReport | None:
    """A CompositePodGroup."""
    return _group(found, "CompositePodGroup")


def _group(found: Object, kind: str) -> JobReport | None:
    spec = part(found, "spec")
    gang = part(part(spec, "schedulingPolicy"), "gang")
    conditions = {each.get("type"): each for each in part(found, "status").get("conditions") or ()}
    # It stays True once the group was placed; then the second says more, that it is preempted.
    said = conditions.get(f"{kind}InitiallyScheduled") or {}
    if (disrupted := conditions.get("DisruptionTarget", {})).get("status") == "True":
        said = disrupted
    made = report(found, kind, number(gang.get("minCount"), 0), ": ".join(words(said)))
    made = made._replace(priority=number(spec.get("priority"), 0))
    # Of a Job, that Job's Workload owns the group.
    its_owners = [each for each in owners(found) if each.get("controller") and each.get("kind") != "Workload"]
    return made._replace(kind=str(its_owners[0]["kind"]), name=str(its_owners[0]["name"])) if its_owners else made


def _kind(name: str, plural: str, spec: Form, version: str = "v1beta1", **more: Any) -> ObjectKind:
    fields: dict[str, Form] = {"metadata": BARE, "spec": spec}
    return ObjectKind(name, plural, GROUP, (version,), fields=fields, replayed=True, **more)


_GROUPS: dict[str, Form] = {**_OF_GROUPS, **_COMPOSITE}
KINDS = (
    _kind("Workload", "workloads", _WORKLOAD),
    _kind("CompositePodGroup", "compositepodgroups", _GROUPS, "v1alpha3", job=composite, says_why=True),
    _kind("PodGroup", "podgroups", POD_GROUP, pages=f"PodGroup.{GROUP}", job=pod_group, says_why=True),
)
