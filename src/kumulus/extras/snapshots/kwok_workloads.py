"""The objects of a cluster that can move into another stack's cluster: those that its users have put there.

A cluster's own objects stay: its nodes with all that says whose they are, its certificates and tokens, what a stack has
made, and namespaces with a Helm release. Objects that move keep their UIDs, so that owner references stay valid.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from kumulus.extras.schedulers import registry
from kumulus.kube.message_tables import Tables, classes_of
from kumulus.kube.messages import MAGIC, OBSERVED, opened
from kumulus.model.identity import STACK_ID

_ROOT = b"/registry/"
_NAMESPACES = _ROOT + b"namespaces/"
_SYSTEM = frozenset({"kube-system", "kube-public", "kube-node-lease"})
# The names below which API servers store namespaced objects; custom resources are stored below their group.
_NAMESPACED = (
    "configmaps", "controllerrevisions", "controllers", "cronjobs", "daemonsets", "deployments", "endpointslices",
    "horizontalpodautoscalers", "ingress", "jobs", "limitranges", "networkpolicies", "persistentvolumeclaims",
    "poddisruptionbudgets", "pods", "podtemplates", "replicasets", "resourceclaims", "resourceclaimtemplates",
    "resourcequotas", "rolebindings", "roles", "secrets", "serviceaccounts", "services/endpoints", "services/specs",
    "statefulsets",
)  # fmt: skip
_CLUSTER_WIDE = ("namespaces", "persistentvolumes", "priorityclasses", "storageclasses")
_DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"
_RELEASE = "sh.helm.release.v1."
_OF_ACCOUNTS = "kubernetes.io/service-account-token"
_MADE_BY_CONTROLLERS = frozenset(
    {("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default"), ("services/specs", "kubernetes")}
)
_TABLES: Tables = {
    **{name: OBSERVED[name] for name in ("Time", "ObjectMeta", "OwnerReference")},
    "PodSpec": {"nodeName": (10, "string")},
    "Any": {"metadata": (1, "ObjectMeta")},
    "Pod": {"metadata": (1, "ObjectMeta"), "spec": (2, "PodSpec")},
    "Secret": {"metadata": (1, "ObjectMeta"), "type": (3, "string")},
}


@dataclass(frozen=True)
class StoragePath:
    """Where an object is stored."""

    resource: str
    """The name below which it is, such as ``pods``; for a custom resource ``<group>/<plural>``."""
    namespace: str
    """Empty for an object that is in none."""
    name: str


@dataclass(frozen=True)
class StoredWorkloads:
    """The objects of a cluster that move."""

    entries: Mapping[bytes, bytes]
    left: tuple[str, ...]
    """Namespaces that stay, because they have a Helm release, or do not move and are not in the other cluster."""

    def within(self, there: Collection[str], known: frozenset[str]) -> StoredWorkloads:
        """The objects whose namespace moves too, or is in the other cluster already."""
        present = {*there, *namespaces(self.entries)}
        without_namespace: dict[str, None] = {}
        entries = {}
        for key, value in self.entries.items():
            place = place_of(key, known)
            if place is None or not place.namespace or place.namespace in present:
                entries[key] = value
            else:
                without_namespace[place.namespace] = None
        return StoredWorkloads(entries, tuple(sorted({*self.left, *without_namespace})))

    def nodes(self) -> set[str]:
        """The nodes that its pods are on."""
        values = (value for key, value in self.entries.items() if key.startswith(_ROOT + b"pods/"))
        pods = (_decoded("Pod", each) for each in values)
        return {str(pod.spec.nodeName) for pod in pods if pod is not None and pod.spec.nodeName}


def namespaces(keys: Iterable[bytes]) -> set[str]:
    """The namespaces among the keys."""
    return {key.removeprefix(_NAMESPACES).decode() for key in keys if is_namespace(key)}


def is_namespace(key: bytes) -> bool:
    """Whether a key is a namespace's own."""
    return key.startswith(_NAMESPACES)


def defined(keys: Iterable[bytes]) -> frozenset[str]:
    """The custom resources that a cluster knows, ``<group>/<plural>``, by its keys."""
    start = _ROOT + _DEFINITIONS.encode() + b"/"
    found = (key.removeprefix(start).decode() for key in keys if key.startswith(start))
    return frozenset(f"{group}/{plural}" for plural, _, group in (each.partition(".") for each in found))


def workloads(entries: Mapping[bytes, bytes], known: frozenset[str], staying: Iterable[str] = ()) -> StoredWorkloads:
    """The objects of a cluster that move.

    Args:
        known: the custom resources that move: those that the other cluster knows.
        staying: further namespaces that stay.
    """
    places = {key: place for key in entries if (place := place_of(key, known)) is not None}
    releases = {
        each.namespace for each in places.values() if each.resource == "secrets" and each.name.startswith(_RELEASE)
    }
    fixed = _SYSTEM | releases | set(staying)
    found = {key: entries[key] for key, place in places.items() if _moves(place, entries[key], fixed)}
    return StoredWorkloads(found, tuple(sorted(releases - _SYSTEM)))


@cache
def _groups_of_nodes() -> frozenset[str]:
    """The API groups of a cluster's machines, which stay."""
    of_schedulers = (kind.group for kind in registry.object_kinds() if kind.of_nodes)
    return frozenset(("kwok.x-k8s.io", "karpenter.sh", "karpenter.kwok.sh", *of_schedulers))


def place_of(key: bytes, known: frozenset[str]) -> StoragePath | None:
    """The place of an object that may move; None for one that never does."""
    path = key.removeprefix(_ROOT).decode(errors="replace").split("/")
    for length in (1, 2):
        resource, rest = "/".join(path[:length]), path[length:]
        if resource in _NAMESPACED and len(rest) == 2:
            return StoragePath(resource, rest[0], rest[1])
        if resource in _CLUSTER_WIDE and len(rest) == 1:
            return StoragePath(resource, "", rest[0])
        if resource in known and path[0] not in _groups_of_nodes() and len(rest) in (1, 2):
            return StoragePath(resource, rest[0] if len(rest) == 2 else "", rest[-1])
    return None


def _moves(place: StoragePath, value: bytes, fixed: frozenset[str] | set[str]) -> bool:
    if place.namespace in fixed or (place.resource, place.name) in _MADE_BY_CONTROLLERS:
        return False
    if place.resource == "namespaces" and (place.name in fixed or place.name == "default"):
        return False
    if place.resource == "priorityclasses" and place.name.startswith("system-"):
        return False
    labels, kind = _seen(place, value)
    return STACK_ID not in labels and kind != _OF_ACCOUNTS


def _seen(place: StoragePath, value: bytes) -> tuple[Mapping[str, str], str]:
    """An object's labels and, for a Secret, its type."""
    if not value.startswith(MAGIC):
        try:
            labels = json.loads(value)["metadata"].get("labels")
        except (ValueError, KeyError, TypeError, AttributeError):
            labels = None
        return (labels if isinstance(labels, dict) else {}), ""
    item = _decoded("Secret" if place.resource == "secrets" else "Any", value)
    if item is None:
        return {}, ""
    return item.metadata.labels, str(item.type) if place.resource == "secrets" else ""


def _decoded(kind: str, value: bytes) -> Any:
    try:
        return _classes()[kind].FromString(opened(value).raw)
    except DecodeError:
        return None


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(_TABLES)
