"""The format of `kwokctl snapshot record`: the objects at the beginning, then a ResourcePatch for each change.

Source: kubernetes-sigs/kwok pkg/apis/action/v1alpha1. A recording says how long after its beginning each change
happened, but not when it began; the file's modification time is used for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kumulus.extras.capture.day.requests import Request, Unusable

_VERBS = {"create": "create", "patch": "patch", "delete": "delete"}
_RESOURCES = {
    "Pod": "pods",
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "Job": "jobs",
    "PriorityClass": "priorityclasses",
}


def request(document: Any, began: float) -> Request | None:
    """The request that a document of a recording represents; None for an object of a kind that is not replayed.

    Args:
        document: the parsed YAML.
        began: when the recording began, in seconds since 1970.

    Raises:
        Unusable: it is not a document of a recording.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        raise Unusable("is no object")
    if document["kind"] == "ResourcePatch":
        return _patch(document, began)
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        raise Unusable("has no metadata")
    resource = _RESOURCES.get(document["kind"])
    if resource is None:
        return None
    group, _, version = str(document.get("apiVersion") or "v1").rpartition("/")
    namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    return Request(began, "create", group, version, resource, "", namespace, name, answered=document, created=True)


def _patch(document: Mapping[str, Any], began: float) -> Request:
    about, target = document.get("resource"), document.get("target")
    verb, late = _VERBS.get(str(document.get("method"))), document.get("durationNanosecond", 0)
    if not isinstance(about, Mapping) or not isinstance(target, Mapping) or verb is None or not isinstance(late, int):
        raise Unusable("is a ResourcePatch without resource, target, method or durationNanosecond")
    body = document.get("template")
    whole = body if verb == "create" and isinstance(body, Mapping) else None
    return Request(
        at=began + late / 1e9,
        verb=verb,
        group=str(about.get("group") or ""),
        version=str(about.get("version") or "v1"),
        resource=str(about.get("resource") or ""),
        subresource="",
        namespace=str(target.get("namespace") or ""),
        name=str(target.get("name") or ""),
        sent=body,
        answered=whole,
        created=verb == "create",
    )
