"""One object of a cluster, reduced to what a capture keeps of it; the same for a live cluster and for files."""

from collections.abc import Mapping
from typing import Any

from kumulus.extras.capture.devices import CLAIM_KINDS, DEVICE_API, DEVICE_KINDS, as_v1, claim_as_v1
from kumulus.extras.capture.dumps import FileRefused
from kumulus.extras.capture.fields import GROUP_ANNOTATIONS, OBJECTS, POD_LABELS, POD_SPEC
from kumulus.extras.capture.grammar import reduced
from kumulus.extras.capture.groups import KEPT, captured_node
from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.forms import Form, Leaf

OWNER_ANNOTATION = "kumulus.io/owner"
"""The pod's owner at the source, as a note: a pod with a missing owner would be garbage collected."""
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""The annotation by which a pod knows a claim that was made of a template for it."""

POD: dict[str, Form] = {
    "namespace": Leaf.NAME,
    "name": Leaf.NAME,
    "node": Leaf.NAME,
    "labels": POD_LABELS,
    "annotations": dict.fromkeys(GROUP_ANNOTATIONS, Leaf.NAME),
    "ownerKind": Leaf.WORD,
    "ownerName": Leaf.NAME,
    "spec": POD_SPEC,
}
"""The form of the results of `captured_pod`."""

_ENDED = ("Succeeded", "Failed")
_KINDS = """
    ReplicaSet StatefulSet DaemonSet Job ReplicationController Node JobSet LeaderWorkerSet RayCluster PyTorchJob
    MPIJob TFJob
"""
_OWNERS = frozenset((*_KINDS.split(), *(kind.name for kind in registry.object_kinds() if kind.job)))
_SYSTEM_NAMESPACES = frozenset(("kube-node-lease", "kube-public", "kube-system", "default"))


def captured(kind: str, raw: Mapping[str, Any], api_version: str) -> dict[str, Any] | None:
    """What is kept of an object; None if nothing is: a pod that has ended, or the system's own class."""
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        return None
    try:
        if kind == "Node":
            return captured_node(raw)
        if kind == "Pod":
            pod = captured_pod(raw)
            # A KeyError without containers, which every stored pod has.
            return pod if pod is None or pod["spec"]["containers"] else None
        if kind in DEVICE_KINDS:
            return _object(kind, as_v1(raw), DEVICE_API)
        if kind in CLAIM_KINDS:
            return _claim(raw) if kind == "ResourceClaim" else _object(kind, _template(raw), DEVICE_API)
        return _object(kind, raw, api_version)
    except (AttributeError, KeyError, TypeError):
        raise FileRefused(f"the {kind} {metadata['name'][:60]!r} is none that an API server would store") from None


def form_of(kind: str) -> Form:
    """The form of the results of `captured` for a kind."""
    if kind == "Node":
        return KEPT
    return POD if kind == "Pod" else OBJECTS[kind]


def captured_pod(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is kept of a v1 Pod; None for one that has ended."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    if status.get("phase") in _ENDED:
        return None
    kept = reduced(POD_SPEC, spec) or {}
    for containers in ("containers", "initContainers"):
        for container in kept.get(containers, ()):
            _only_host_ports(container, bool(kept.get("hostNetwork")))
    # Only volumes with a claim matter.
    volumes = [volume for volume in kept.pop("volumes", ()) if "persistentVolumeClaim" in volume]
    volumes += [
        _ephemeral(str(metadata["name"]), volume)
        for volume in spec.get("volumes") or ()
        if isinstance(volume.get("ephemeral"), Mapping)
    ]
    if volumes:
        kept["volumes"] = volumes
    annotations = metadata.get("annotations") or {}
    kind, name = _owner(metadata, annotations)
    found = {
        "namespace": str(metadata.get("namespace") or "default"),
        "name": str(metadata["name"]),
        "node": reduced(Leaf.NAME, spec.get("nodeName")),
        "labels": reduced(POD_LABELS, metadata.get("labels")),
        "annotations": {key: str(annotations[key]) for key in GROUP_ANNOTATIONS if key in annotations},
        "ownerKind": kind if name else "",
        "ownerName": name,
        "spec": kept,
    }
    return {key: value for key, value in found.items() if value}


def _owner(metadata: Mapping[str, Any], annotations: Mapping[str, Any]) -> tuple[str, str]:
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            kind = str(owner.get("kind"))
            return (kind if kind in _OWNERS else "Other"), str(owner.get("name"))
    kind, _, name = str(annotations.get(OWNER_ANNOTATION) or "").partition("/")
    return (kind, name) if kind in _OWNERS or kind == "Other" else ("", "")


def _only_host_ports(container: dict[str, Any], host_network: bool) -> None:
    ports = [port for port in container.get("ports", ()) if port.get("hostPort") or host_network]
    if ports:
        container["ports"] = ports
    else:
        container.pop("ports", None)


def _ephemeral(pod: str, volume: Mapping[str, Any]) -> dict[str, Any]:
    """A volume that refers by name to the claim that Kubernetes created for the pod."""
    return {"name": str(volume.get("name")), "persistentVolumeClaim": {"claimName": f"{pod}-{volume.get('name')}"}}


def _template(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {**raw, "spec": {**raw["spec"], "spec": claim_as_v1(raw["spec"].get("spec") or {})}}


def _claim(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is kept of a claim: of one that was made of a template, which devices its pod or group has by it.

    Its own name is drawn, so another stands for it, which no object can have.
    """
    metadata = raw["metadata"]
    owner = next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None)
    whole = {"metadata": metadata, "spec": claim_as_v1(raw.get("spec") or {}), "status": raw.get("status")}
    if owner is None:
        return _object("ResourceClaim", whole, DEVICE_API)
    name = (metadata.get("annotations") or {}).get(POD_CLAIM)
    owned_by = {"Pod": "pod", "PodGroup": "podGroup"}.get(str(owner.get("kind")))
    if owned_by is None or not name or not (raw.get("status") or {}).get("allocation"):
        return None
    place = {"namespace": metadata["namespace"], "name": f"{owner['name']}/{name}"}
    if owned_by == "podGroup":
        place["name"] += "/group"
    made_for = {owned_by: {"name": owner["name"], "claim": name}}
    return _object("ResourceClaim", {"metadata": place, "status": raw["status"], **made_for}, DEVICE_API)


def _object(kind: str, raw: Mapping[str, Any], api_version: str) -> dict[str, Any] | None:
    name = raw["metadata"]["name"]
    if kind == "PriorityClass" and name.startswith("system-"):
        return None
    found = reduced(OBJECTS[kind], raw)
    if kind == "Namespace":
        labels = found["metadata"].get("labels", {})
        labels.pop("kubernetes.io/metadata.name", None)
        if not labels:
            found["metadata"].pop("labels", None)
            if name in _SYSTEM_NAMESPACES:
                return None
    return {"apiVersion": api_version, "kind": kind, **found}
