"""Objects as they are in a cluster's etcd: what a reset learns from their keys and values, and the order of changes."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from kumulus.kube.message_tables import classes_of, tables_of
from kumulus.kube.messages import opened

ROOT = b"/registry/"
RENEWED = (
    b"/registry/masterleases/",
    b"/registry/peerserverleases/",
    b"/registry/leases/kube-system/",
    b"/registry/services/endpoints/default/kubernetes",
    b"/registry/endpointslices/default/kubernetes",
    # Its name has a hash of the cluster's certificate authority; the controller manager publishes it at its start.
    b"/registry/clustertrustbundles/kubernetes.io:kube-apiserver-serving:",
)
"""What running processes keep renewing, or make again by themselves."""
NODES, LEASES = b"/registry/minions/", b"/registry/leases/kube-node-lease/"
EVENTS, SERVICES = b"/registry/events/", b"/registry/apiregistration.k8s.io/apiservices/"
DEFINITIONS = b"/registry/apiextensions.k8s.io/customresourcedefinitions/"
FIRST = tuple(
    f"/registry/{each}/".encode()
    for each in (
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicybindings",
        "resourcequotas",
        "cronjobs",
        "deployments",
        "statefulsets",
        "daemonsets",
        "replicasets",
        "controllers",
        "jobs",
        "namespaces",
    )
)
"""What is removed first, in this order: what may refuse objects, and what makes others again."""
_WEBHOOKS = FIRST[:2]
Change = tuple[bytes, bytes | None]
"""A key, and the value to write there; None to remove it."""
_META = tables_of(
    """
    ObjectMeta: name 1 string, namespace 3 string, finalizers 14 *string
    Any: metadata 1 ObjectMeta
    """
)


def kind_of(key: bytes) -> str:
    """The name below which objects of its kind are stored, such as `deployments`."""
    return key.removeprefix(ROOT).partition(b"/")[0].decode(errors="replace")


def shown(key: bytes) -> str:
    """An object for messages: `nodes/a`, `pods/default/b`."""
    return key.removeprefix(ROOT).decode(errors="replace").replace("minions/", "nodes/")


def order(change: Change) -> tuple[int, bytes]:
    """By which changes are sorted: removals in the order of :data:`FIRST`, others, those of events, then the rest."""
    key, value = change
    if value is not None:
        return len(FIRST) + 2, key
    if key.startswith(EVENTS):
        return len(FIRST) + 1, key
    place = next((place for place, prefix in enumerate(FIRST) if key.startswith(prefix)), len(FIRST))
    return place, key


def hold(key: bytes, value: bytes) -> str:
    """What of an object that is removed would have held a reset back, in words; empty for nothing."""
    if finalizers := _finalizers(value):
        return "" if _are_usual(finalizers) else f"with {', '.join(finalizers)}"
    return "a webhook" if key.startswith(_WEBHOOKS) else ""


def _finalizers(value: bytes) -> list[str]:
    """The finalizers of a stored object: in protobuf, or in JSON as custom resources are."""
    try:
        if value.startswith(b"{"):
            return [str(each) for each in json.loads(value)["metadata"].get("finalizers") or ()]
        return [str(each) for each in _classes()["Any"].FromString(opened(value).raw).metadata.finalizers]
    except (DecodeError, ValueError, KeyError):
        return []


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(_META)


def _are_usual(finalizers: Iterable[str]) -> bool:
    """Whether Kubernetes' own controllers have put them there, and would take them away."""
    own = ("kubernetes.io/", "batch.kubernetes.io/", "resource.kubernetes.io/", "service.kubernetes.io/")
    names = ("foregroundDeletion", "orphan", "customresourcecleanup.apiextensions.k8s.io")
    return all(each in names or each.startswith(own) for each in finalizers)
