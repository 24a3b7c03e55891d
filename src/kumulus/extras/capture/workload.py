"""From pods to the documents of a workload file, which groups similar pods; and back to pods. Pure functions.

A document of the file is a Kubernetes object, or similar pods of one owner: a `PodShape` with their common fields and a
line for each pod. Values in the common fields that depend on a pod's name or node are written as `$(name)` and
`$(node)`, which cannot be names.
"""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kumulus.extras.capture.groups import node_name
from kumulus.extras.capture.reading import OWNER_ANNOTATION
from kumulus.extras.lab.file.recording import IMAGE

SHAPE, API_VERSION = "PodShape", "kumulus.io/v1alpha1"
_NAME, _NODE = "$(name)", "$(node)"
# Labels that have a different value for each pod of an owner.
_OWN_LABELS = (
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
)


def shapes(pods: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The shapes of pods from `reading.captured_pod`, in an order that depends only on the pods."""
    alike: dict[str, list[dict[str, Any]]] = {}
    for pod in pods:
        shared, own = _split(pod)
        alike.setdefault(json.dumps(shared, sort_keys=True), []).append(own)
    found = [(json.loads(text), sorted(members, key=lambda each: str(each["name"]))) for text, members in alike.items()]
    made = [{"apiVersion": API_VERSION, "kind": SHAPE, **shared, "pods": members} for shared, members in found]
    return sorted(made, key=lambda each: (each["namespace"], each.get("owner", ""), str(each["pods"][0]["name"])))


def pods(shape: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The pods of a shape, as `reading.captured_pod` makes them."""
    for own in shape["pods"]:
        kind, _, owner = str(shape.get("owner") or "").partition("/")
        labels = {**(shape.get("labels") or {}), **(own.get("labels") or {})}
        pod = {
            "namespace": shape["namespace"],
            "name": own["name"],
            "node": own.get("node"),
            "labels": {key: value.replace(_NAME, own["name"]) for key, value in labels.items()},
            "annotations": dict(shape.get("annotations") or {}),
            "ownerKind": kind,
            "ownerName": owner,
            "spec": _filled(shape["spec"], str(own["name"]), str(own.get("target") or own.get("node") or "")),
        }
        yield {key: value for key, value in pod.items() if value}


def manifest(pod: Mapping[str, Any]) -> dict[str, Any]:
    """A v1 Pod to post for a captured one, bound to the same node.

    Admission sets its priority from the same classes. Its owner is only an annotation, since a pod with a missing owner
    would be garbage collected.
    """
    spec = copy.deepcopy(dict(pod["spec"]))
    for containers in ("containers", "initContainers"):
        for container in spec.get(containers, ()):
            container["image"] = IMAGE
    if spec.get("priorityClassName"):
        spec.pop("priority", None)
        spec.pop("preemptionPolicy", None)
    owner = {OWNER_ANNOTATION: f"{pod['ownerKind']}/{pod['ownerName']}"} if pod.get("ownerKind") else {}
    bound = {"nodeName": pod["node"]} if pod.get("node") else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": pod["namespace"],
            "name": pod["name"],
            "labels": pod.get("labels") or {},
            "annotations": {**(pod.get("annotations") or {}), **owner},
        },
        "spec": {"automountServiceAccountToken": False, "enableServiceLinks": False, **spec, **bound},
    }


def _split(pod: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that a pod shares with similar ones, and its own."""
    name, node = str(pod["name"]), node_name(str(pod.get("node") or ""))
    labels = dict(pod.get("labels") or {})
    own_labels = {key: labels.pop(key) for key in _OWN_LABELS if key in labels}
    for key in [key for key, value in own_labels.items() if value == name]:
        del own_labels[key]
        labels[key] = _NAME
    # Copies only what is changed below: copying everything would take most of the time of writing a large capture.
    changed = {key: copy.deepcopy(pod["spec"][key]) for key in ("volumes", "affinity") if key in pod["spec"]}
    spec = {**pod["spec"], **changed}
    for volume in spec.get("volumes", ()):
        claim = volume["persistentVolumeClaim"]
        claim["claimName"] = str(claim["claimName"]).replace(name, _NAME)
    target = _target(spec)
    owner = {"owner": f"{pod['ownerKind']}/{pod['ownerName']}"} if pod.get("ownerKind") else {}
    shared = {
        "namespace": pod["namespace"],
        **owner,
        **({"labels": labels} if labels else {}),
        **({"annotations": pod["annotations"]} if pod.get("annotations") else {}),
        "spec": spec,
    }
    own = {
        "name": name,
        **({"node": node} if node else {}),
        **({"target": target} if target and target != node else {}),
        **({"labels": own_labels} if own_labels else {}),
    }
    return shared, own


def _target(spec: dict[str, Any]) -> str:
    """The single node that a DaemonSet's pod is for; replaced by `$(node)` in its affinity."""
    found = ""
    for values in _fields(spec):
        if len(values) == 1 and found in ("", values[0]):
            found, values[0] = str(values[0]), _NODE
    return found


def _filled(spec: Mapping[str, Any], name: str, target: str) -> dict[str, Any]:
    filled = copy.deepcopy(dict(spec))
    for values in _fields(filled):
        values[:] = [target if value == _NODE else value for value in values]
    for volume in filled.get("volumes", ()):
        claim = volume["persistentVolumeClaim"]
        claim["claimName"] = str(claim["claimName"]).replace(_NAME, name)
    return filled


def _fields(spec: Mapping[str, Any]) -> Iterator[list[Any]]:
    """The values of each term over node names in a pod's required node affinity."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("operator") == "In" and field.get("values"):
                yield field["values"]
