"""What is kept of a workload: what schedulers and the workload's own controller read of it, and nothing else."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Set
from typing import Any

from kumulus.extras.capture.devices import CLAIM_KINDS, DEVICE_API, claim_as_v1
from kumulus.extras.capture.fields import META, OBJECTS, QUEUE_ANNOTATIONS
from kumulus.extras.capture.grammar import reduced
from kumulus.extras.capture.reading import captured_pod
from kumulus.extras.lab.file.recording import IMAGE
from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.forms import BARE, SELECTOR, WORD, Form, Leaf
from kumulus.extras.schedulers.manifests import pod_templates
from kumulus.extras.schedulers.native.objects import POD_GROUP

TEMPLATE_ANNOTATION = "kumulus.io/recorded-template"
"""Distinguishes a template from the previous one if schedulers see no difference: a new image is a rollout, too."""

_COMMON: dict[str, Form] = {"replicas": WORD, "selector": SELECTOR, "minReadySeconds": WORD}
_ROLLING: Form = {"type": WORD, "rollingUpdate": {"maxSurge": WORD, "maxUnavailable": WORD, "partition": WORD}}
_SPECS: dict[str, dict[str, Form]] = {
    "Deployment": {**_COMMON, "strategy": _ROLLING, "paused": WORD},
    "ReplicaSet": {**_COMMON},
    "StatefulSet": {**_COMMON, "serviceName": Leaf.NAME, "podManagementPolicy": WORD, "updateStrategy": _ROLLING},
    "DaemonSet": {"selector": SELECTOR, "minReadySeconds": WORD, "updateStrategy": _ROLLING},
    "Job": {
        "parallelism": WORD,
        "completions": WORD,
        "backoffLimit": WORD,
        "completionMode": WORD,
        "suspend": WORD,
        "scheduling": {key: POD_GROUP[key] for key in ("schedulingPolicy", "schedulingConstraints", "disruptionMode")},
    },
}
CONTROLLED = frozenset(_SPECS)
"""Kinds for whose objects a running controller creates pods."""
GROUPS = {
    ("apps", "deployments"): "Deployment",
    ("apps", "replicasets"): "ReplicaSet",
    ("apps", "statefulsets"): "StatefulSet",
    ("apps", "daemonsets"): "DaemonSet",
    ("batch", "jobs"): "Job",
    ("", "pods"): "Pod",
    ("policy", "poddisruptionbudgets"): "PodDisruptionBudget",
    ("", "resourcequotas"): "ResourceQuota",
    ("", "limitranges"): "LimitRange",
    **{(kind.group, kind.plural): kind.name for kind in registry.object_kinds() if kind.replayed},
    ("resource.k8s.io", "resourceclaims"): "ResourceClaim",
    ("resource.k8s.io", "resourceclaimtemplates"): "ResourceClaimTemplate",
}
"""By API group and resource, the kind of objects that are replayed."""
QUEUE_LABELS: tuple[str, ...] = registry.all_of("queue_labels")
# Labels that the Job controller adds to a Job's pods; those of a former Job would be rejected.
_OF_THE_JOB = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")


def workload(kind: str, raw: Mapping[str, Any], api_version: str) -> dict[str, Any] | None:
    """What is kept of an object; None if it has no name or no containers."""
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping):
        return None
    if kind == "Pod":
        template = pod_template(raw)
        found = None if template is None else {**template, "metadata": _metadata(raw, template)}
    elif kind in _SPECS:
        found = _controlled(kind, raw)
    elif kind in CLAIM_KINDS:
        found, api_version = _claim(kind, raw), DEVICE_API
    else:
        found = reduced(OBJECTS[kind], raw)
    if not found or not found.get("metadata", {}).get("name"):
        return None
    found["metadata"].setdefault("namespace", "default")
    return {"apiVersion": api_version, "kind": kind, **found}


def spec_of(kind: str, raw: Any) -> dict[str, Any]:
    """What is kept of a controlled workload's spec, or of a part of one."""
    if not isinstance(raw, Mapping):
        return {}
    spec: dict[str, Any] = reduced(_SPECS[kind], raw) or {}
    if kind == "Job":
        spec.pop("selector", None)
    if isinstance(raw.get("template"), Mapping):
        template = pod_template(raw["template"])
        if template is not None:
            template["metadata"].setdefault("annotations", {})[TEMPLATE_ANNOTATION] = _digest(raw["template"])
            spec["template"] = template
    return spec


def pod_template(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Metadata and spec of a pod template, without names, volumes and the scheduler's name; None without containers."""
    metadata, spec = raw.get("metadata"), raw.get("spec")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    if not isinstance(spec, Mapping):
        return None
    pod = captured_pod({"metadata": {**metadata, "name": "template"}, "spec": spec})
    if pod is None or not pod.get("spec", {}).get("containers"):
        return None
    kept = dict(pod["spec"])
    for key in ("volumes", "schedulerName", "nodeName"):
        kept.pop(key, None)
    if kept.get("priorityClassName"):
        # Admission sets both from the class.
        kept.pop("priority", None)
        kept.pop("preemptionPolicy", None)
    for containers in ("containers", "initContainers"):
        for container in kept.get(containers, ()):
            container["image"] = IMAGE
    if spec.get("restartPolicy") in ("Never", "OnFailure"):
        kept["restartPolicy"] = spec["restartPolicy"]
    labels = {key: value for key, value in (pod.get("labels") or {}).items() if key not in _OF_THE_JOB}
    found: dict[str, Any] = {"labels": labels} if labels else {}
    if pod.get("annotations"):
        found["annotations"] = pod["annotations"]
    return {"metadata": found, "spec": {"automountServiceAccountToken": False, "enableServiceLinks": False, **kept}}


def queue_of(found: Mapping[str, Any]) -> str:
    """The queue that a workload waits in, from its labels or annotations; otherwise its namespace."""
    template = found.get("spec", {}).get("template") or {}
    for metadata in (found.get("metadata") or {}, template.get("metadata") or {}):
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        for place, keys in ((labels, QUEUE_LABELS), (annotations, QUEUE_ANNOTATIONS)):
            for key in keys:
                if place.get(key):
                    return str(place[key])
    return str(found["metadata"].get("namespace") or "default")


def lost(raw: Mapping[str, Any]) -> list[str]:
    """Texts about parts of a workload that a replay cannot have."""
    spec = raw.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    inner = spec.get("template")
    pod = inner.get("spec") if isinstance(inner, Mapping) else spec
    pod = pod if isinstance(pod, Mapping) else {}
    if spec.get("volumeClaimTemplates") or any(
        isinstance(each, Mapping) and ("persistentVolumeClaim" in each or "ephemeral" in each)
        for each in pod.get("volumes") or ()
    ):
        return ["volumes: nobody provisions them in a replay, so where they are does not count"]
    return []


def without_unknown(made: dict[str, Any], namespace: str, known: Set[tuple[str, str, str]]) -> set[str]:
    """Take out of an object the claims and groups that are not there, for which pods would wait; returns what that was.

    ``known`` has kind, namespace and name of each claim, template of claims, group and its Workload that is there.
    """

    def has(kind: str, name: str) -> bool:
        return (kind, namespace, name) in known

    lost: set[str] = set()
    for spec in _naming(made):
        if (group := spec.get("schedulingGroup")) and not has("PodGroup", group.get("podGroupName", "")):
            del spec["schedulingGroup"]
            lost.add("groups")
        if (parent := spec.get(_PARENT)) and not has("CompositePodGroup", parent):
            del spec[_PARENT]
            lost.add("groups of groups")
        if (of := spec.get("workloadRef")) and not has("Workload", of.get("workloadName", "")):
            del spec["workloadRef"]
            lost.add("groups' workloads")
        claims = spec.get("resourceClaims") or []
        kept = [each for each in claims if any(has(kind, each.get(key, "")) for key, kind in _NAMED_BY.items())]
        if len(kept) == len(claims):
            continue
        lost.add("resource claims")
        spec["resourceClaims"], names = kept, {each["name"] for each in kept}
        for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            if needs := container.get("resources"):
                needs["claims"] = [each for each in needs.get("claims", ()) if each["name"] in names]
    return lost


_PARENT = "parentCompositePodGroupName"
_NAMED_BY = {"resourceClaimName": "ResourceClaim", "resourceClaimTemplateName": "ResourceClaimTemplate"}


def _naming(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The specs in an object that name claims or groups: of groups, and of pods."""
    if made.get("kind") in ("PodGroup", "CompositePodGroup"):
        yield made.get("spec", {})
    for template in pod_templates(made):
        yield template["spec"]


def _claim(kind: str, raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is kept of a claim or of a template of claims; the devices that a claim has are a scheduler's decision."""
    spec = raw.get("spec") or {}
    whole = {**spec, "spec": claim_as_v1(spec.get("spec") or {})} if "Template" in kind else claim_as_v1(spec)
    found: dict[str, Any] | None = reduced(OBJECTS[kind], {"metadata": raw["metadata"], "spec": whole})
    return found


def _controlled(kind: str, raw: Mapping[str, Any]) -> dict[str, Any] | None:
    spec = spec_of(kind, raw.get("spec"))
    if "template" not in spec:
        return None
    found: dict[str, Any] = reduced({"metadata": META}, raw) or {"metadata": {}}
    if kind == "Job" and any(key in found["metadata"].get("labels", {}) for key in QUEUE_LABELS):
        # For a queued Job, `suspend` is its queue's decision.
        spec.pop("suspend", None)
    labels = found["metadata"].get("labels", {})
    for key in _OF_THE_JOB:
        labels.pop(key, None)
    return {**found, "spec": spec}


def _metadata(raw: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, Any]:
    named = reduced({"metadata": BARE}, raw) or {}
    return {**named.get("metadata", {}), **template["metadata"]}


def _digest(template: Mapping[str, Any]) -> str:
    text = json.dumps(template, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
