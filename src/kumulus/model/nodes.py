"""The Kubernetes Node objects of a pool, posted already Ready, and the part of them that Kumulus owns.

What a kubelet would report is modelled on the kubelet (k8s.io/kubernetes pkg/kubelet/nodestatus/setters.go) and on
KWOK's stage node-initialize, which then has nothing left to do. At the end is how real nodes among them are selected.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kumulus.model.active_faults import with_faults
from kumulus.model.devices import NODE_ALLOCATABLE
from kumulus.model.fault_effects import Condition
from kumulus.model.names import node_name, uuid_of
from kumulus.model.plain import plain
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, Pool, Taint

HOSTNAME_LABEL = "kubernetes.io/hostname"
KWOK_ANNOTATION = "kwok.x-k8s.io/node"
METRICS_ANNOTATION = "metrics.k8s.io/resource-metrics-path"
TTL_ANNOTATION = "node.alpha.kubernetes.io/ttl"
LOCALHOST: Mapping[str, str] = {"type": "InternalDNS", "address": "localhost"}
"""Where the API server of the kwok runtime looks for a node's kubelet: at the kwok-controller next to it."""

CONDITIONS: Mapping[str, Condition] = {
    "NetworkUnavailable": Condition("False", "RouteCreated", "RouteController created a route"),
    "MemoryPressure": Condition("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": Condition("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": Condition("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": Condition("True", "KubeletReady", "kubelet is posting ready status"),
}
"""The conditions of a healthy node, which KWOK maintains as a kubelet would."""

EMULATED_NODE_INFO: Mapping[str, str] = {
    "kernelVersion": "kwok",
    "osImage": "KWOK (emulated)",
    "containerRuntimeVersion": "kwok",
    "kubeProxyVersion": "",
}
"""The part of `status.nodeInfo` that is the same on every emulated node."""

# Those that a kubelet declares if its feature gates have their defaults (k8s.io/kubernetes v1.36.3 and v1.37.2,
# pkg/features, and k8s.io/component-helpers, nodedeclaredfeatures): schedulers and the API server look for them.
_DECLARES_SINCE = (1, 36)
_DECLARED_FEATURES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)

_MINOR = re.compile(r"v?(\d+)\.(\d+)")

# Reserved for future use (RFC 1112, section 4): in a cluster with real nodes, the API server sends logs and exec to the
# address of the node, and a Prometheus asks there for metrics. In a private range they might reach somebody's machine.
_FIRST_OCTET = 240
# The last octet is none of 0 and 255.
_LAST_OCTETS = 254
_ADDRESSES = 256 * 256 * _LAST_OCTETS


@dataclass(frozen=True)
class OwnedFields:
    """The fields of a live node that Kumulus owns. All others belong to someone else and are left alone.

    Others add labels and annotations (`node.alpha.kubernetes.io/ttl` is the controller manager's, which changes it as
    the cluster grows), and taints such as node.kubernetes.io/not-ready: compare by key, not as a whole.
    """

    labels: Mapping[str, str]
    """All labels that we set on the node, including its host name."""
    annotations: Mapping[str, str]
    """Likewise."""
    taints: tuple[Taint, ...]
    """The pool's taints."""
    capacity: Mapping[str, str]
    """Resource names to canonical quantities; compare with `kumulus.model.quantity.equal`."""
    allocatable: Mapping[str, str]
    """Likewise."""
    node_info: Mapping[str, str]
    """Architecture, operatingSystem and kubeletVersion of `status.nodeInfo`."""
    declared_features: tuple[str, ...] | None = None
    """Features that the pool names, or needs, sorted; None if they are those of the kubelet's version."""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    """Conditions that a fault sets, by type; KWOK maintains all others."""


def owned_fields(pool: Pool, ordinal: int) -> OwnedFields:
    """What Kumulus owns on one node of a pool.

    A template's labels and annotations override the defaults, except those by which the node is found: its cluster and
    pool, and the annotation that makes KWOK act as its kubelet.
    """
    name = pool.node_name(ordinal)
    cluster = {CLUSTER_LABEL: pool.cluster} if pool.cluster else {}
    ours = OwnedFields(
        labels={HOSTNAME_LABEL: name, **pool.labels, **pool.labels_of(ordinal), **cluster, POOL_LABEL: pool.name},
        annotations={
            METRICS_ANNOTATION: f"/metrics/nodes/{name}/metrics/resource",
            **pool.annotations,
            KWOK_ANNOTATION: "fake",
        },
        taints=pool.taints,
        capacity=pool.capacity,
        allocatable=pool.allocatable,
        node_info=plain(pool.node_info),
        declared_features=_named_features(pool),
    )
    faults = pool.faults.get(ordinal)
    return with_faults(ours, node_name(pool.name, ordinal), faults) if faults else ours


def node_manifest(pool: Pool, ordinal: int, now: str) -> dict[str, Any]:
    """A complete v1 Node to post, already Ready, so that nothing has to wait for KWOK to initialise it.

    It has no providerID: cloud controllers would look for the machine (see KWOK's and NVSentinel's issues about it).

    Args:
        now: the time of the conditions, RFC 3339 in UTC, such as 2026-01-31T12:00:00Z.
    """
    name = pool.node_name(ordinal)
    owned = owned_fields(pool, ordinal)
    named = pool.named(ordinal)
    spec: dict[str, object] = {"unschedulable": True} if named and named.unschedulable else {}
    if owned.taints:
        spec["taints"] = [taint.to_plain() for taint in owned.taints]
    features = declared_features(owned)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": dict(owned.labels),
            "annotations": {TTL_ANNOTATION: "0", **owned.annotations},
        },
        "spec": spec,
        "status": {
            "capacity": dict(owned.capacity),
            "allocatable": dict(owned.allocatable),
            "conditions": [
                posted_condition(kind, each, now) for kind, each in {**CONDITIONS, **owned.conditions}.items()
            ],
            "addresses": [
                {"type": "InternalIP", "address": internal_ip(pool.name, ordinal)},
                {"type": "Hostname", "address": name},
                dict(LOCALHOST),
            ],
            "nodeInfo": _node_info(name, pool.cluster, owned.node_info),
            **({"declaredFeatures": features} if features else {}),
            "phase": "Running",
        },
    }


def declared_features(owned: OwnedFields) -> list[str]:
    """The features that a node declares: those that its pool names, or those of its kubelet's version."""
    if owned.declared_features is not None:
        return list(owned.declared_features)
    return features_of(owned.node_info.get("kubeletVersion", ""))


def features_of(version: str) -> list[str]:
    """The features that a kubelet of this version declares by default."""
    found = _MINOR.match(version)
    if found is None or (int(found[1]), int(found[2])) < _DECLARES_SINCE:
        return []
    return list(_DECLARED_FEATURES)


def _named_features(pool: Pool) -> tuple[str, ...] | None:
    """The features that a pool names, or needs; None if they are those of its kubelet's version.

    An API server accepts `nodeAllocatableResources` of devices only if their node declares the feature for it.
    """
    if pool.declared_features is None and pool.devices and pool.devices.node_allocatable_resources:
        return tuple(sorted([*features_of(pool.node_info.kubelet_version), NODE_ALLOCATABLE]))
    return pool.declared_features


def internal_ip(pool: str, ordinal: int) -> str:
    """A node's address inside 240.0.0.0/8: deterministic, and different for every node of a pool.

    The pool's name is hashed to the first address and the ordinal counts up from there: hashing every node's name
    would almost certainly give two of 10,000 nodes the same address.
    """
    first = int.from_bytes(hashlib.sha256(pool.encode()).digest()[:8], "big")
    rest, last = divmod((first + ordinal) % _ADDRESSES, _LAST_OCTETS)
    second, third = divmod(rest, 256)
    return f"{_FIRST_OCTET}.{second}.{third}.{last + 1}"


def posted_condition(kind: str, condition: Condition, now: str) -> dict[str, str]:
    """A condition in the form that a node has it; `now`: when it last changed, RFC 3339 in UTC."""
    return {"type": kind, **condition.to_plain(), "lastHeartbeatTime": now, "lastTransitionTime": now}


def boot_id(name: str, cluster: str) -> str:
    """The boot ID that a node is posted with."""
    return _node_info(name, cluster, {})["bootID"]


def _node_info(name: str, cluster: str, info: Mapping[str, str]) -> dict[str, str]:
    digest = hashlib.blake2b(f"{cluster}/{name}".encode(), digest_size=48).hexdigest()
    return {
        **info,
        "machineID": digest[:32],
        "systemUUID": uuid_of(digest[32:64]),
        "bootID": uuid_of(digest[64:]),
        **EMULATED_NODE_INFO,
    }


SELECTOR_OF_REAL = f"!{POOL_LABEL},!{CLUSTER_LABEL},type!=kwok"
"""The same as :func:`affinity_to_real`, as a label selector of nodes."""


def affinity_to_real() -> dict[str, Any]:
    """The ``affinity`` of a pod that needs a real kubelet: neither a stack's nodes nor others emulated by KWOK."""
    terms = [
        {"key": POOL_LABEL, "operator": "DoesNotExist"},
        # An autoscaler's nodes belong to no pool.
        {"key": CLUSTER_LABEL, "operator": "DoesNotExist"},
        {"key": "type", "operator": "NotIn", "values": ["kwok"]},
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
