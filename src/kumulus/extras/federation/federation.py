"""The objects by which clusters work as one: a hub that queues Jobs, and workers that run them (MultiKueue).

Source: kueue.sigs.k8s.io/docs/concepts/multikueue; a hub's permissions in a worker are from that project's
create-multikueue-kubeconfig.sh, restricted to Jobs.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kumulus.extras.federation.names import NAMESPACE
from kumulus.model.nodes import KWOK_ANNOTATION

API = "kueue.x-k8s.io/v1beta2"
RBAC = "rbac.authorization.k8s.io/v1"
CONTROLLER = "kueue.x-k8s.io/multikueue"
_SEEN = ["get", "list", "watch"]
_TOLERATED = {"key": KWOK_ANNOTATION, "operator": "Exists", "effect": "NoSchedule"}
"""Tolerates the taint that keeps ordinary pods off emulated nodes; Kueue adds it to the pods of Jobs it admits."""

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Queue:
    """A queue that a cluster is to have."""

    name: str
    """The name of the LocalQueue in each namespace, of its ClusterQueue, and of the objects that this uses."""
    namespaces: Sequence[str]
    """Where Jobs may be."""
    quota: Mapping[str, str]
    namespace: str = NAMESPACE
    """Kueue's own."""


def account(hub: str) -> str:
    """The name of the service account that a hub uses in a worker, and of its token's Secret."""
    return f"multikueue-{hub}"


def worker(hub: str, queue: Queue) -> list[Manifest]:
    """A worker's objects: the hub's service account with its permissions, and a queue of the same name as the hub's.

    A hub watches all of a worker's Jobs and Workloads, since Kueue does not limit its requests to a namespace; it may
    change them in the queue's namespaces.
    """
    name = account(hub)
    inside = {"name": name, "namespace": queue.namespace}
    subject = {"kind": "ServiceAccount", **inside}
    watching = [
        _rule("batch", ["jobs"], _SEEN),
        _rule("kueue.x-k8s.io", ["workloads", "clusterqueues", "localqueues"], _SEEN),
    ]
    made = [
        _object("v1", "ServiceAccount", inside),
        _object(
            "v1",
            "Secret",
            {**inside, "annotations": {"kubernetes.io/service-account.name": name}},
            type="kubernetes.io/service-account-token",
        ),
        _object(RBAC, "ClusterRole", {"name": name}, rules=watching),
        _object(
            RBAC, "ClusterRoleBinding", {"name": name}, roleRef=_role("ClusterRole", name), subjects=[dict(subject)]
        ),
    ]
    for namespace in queue.namespaces:
        made += _rights(name, subject, namespace)
    return [*made, *_queue(queue, flavor={"tolerations": [dict(_TOLERATED)]})]


def in_namespace(queue: str, namespace: str, *, hub: str = "", kueue: str = NAMESPACE) -> list[Manifest]:
    """What a further namespace of an existing hub or worker needs before Jobs may be in it.

    Args:
        hub: on a worker, the hub's name; empty on the hub itself.
        kueue: on a worker, the namespace of Kueue.
    """
    rights: list[Manifest] = []
    if hub:
        name = account(hub)
        rights = _rights(name, {"kind": "ServiceAccount", "name": name, "namespace": kueue}, namespace)
    return [*rights, _local_queue(queue, namespace)]


def hub(workers: Mapping[str, str], queue: Queue) -> list[Manifest]:
    """The hub's objects: each worker's kubeconfig and MultiKueueCluster, and a queue whose Jobs go to the workers."""
    made: list[Manifest] = []
    # Pulumi's engine does not keep the order of mappings, and Kueue keeps the order of its lists.
    for name, text in sorted(workers.items()):
        secret = {"name": secret_name(name), "namespace": queue.namespace}
        data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
        source = {"kubeConfig": {"locationType": "Secret", "location": secret["name"]}}
        made += [
            _object("v1", "Secret", secret, data=data, type="Opaque"),
            _object(API, "MultiKueueCluster", {"name": name}, spec={"clusterSource": source}),
        ]
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": queue.name}
    check = {"controllerName": CONTROLLER, "parameters": parameters}
    return [
        *made,
        _object(API, "MultiKueueConfig", {"name": queue.name}, spec={"clusters": sorted(workers)}),
        _object(API, "AdmissionCheck", {"name": queue.name}, spec=check),
        *_queue(queue, further={"admissionChecksStrategy": {"admissionChecks": [{"name": queue.name}]}}),
    ]


def secret_name(worker: str) -> str:
    """The Secret on the hub with the kubeconfig of a worker."""
    return f"multikueue-{worker}"


def kubeconfig(name: str, server: str, data: Mapping[str, str]) -> str:
    """A kubeconfig, as JSON, which is YAML, from the data of the token's Secret: ``token`` and ``ca.crt`` in base64."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": data["ca.crt"]}}],
        "users": [{"name": name, "user": {"token": base64.b64decode(data["token"]).decode()}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    return json.dumps(document, indent=1)


def _queue(
    queue: Queue, *, flavor: Mapping[str, Any] | None = None, further: Mapping[str, Any] | None = None
) -> list[Manifest]:
    resources = [{"name": resource, "nominalQuota": amount} for resource, amount in sorted(queue.quota.items())]
    group = {"coveredResources": sorted(queue.quota), "flavors": [{"name": queue.name, "resources": resources}]}
    spec = {
        "namespaceSelector": {},
        "queueingStrategy": "BestEffortFIFO",
        # A queue without a quota, such as that of a worker without nodes, admits nothing.
        "resourceGroups": [group] if queue.quota else [],
        **(further or {}),
    }
    return [
        _object(API, "ResourceFlavor", {"name": queue.name}, spec=dict(flavor or {})),
        _object(API, "ClusterQueue", {"name": queue.name}, spec=spec),
        *(_local_queue(queue.name, each) for each in queue.namespaces),
    ]


def _local_queue(name: str, namespace: str) -> Manifest:
    return _object(API, "LocalQueue", {"name": name, "namespace": namespace}, spec={"clusterQueue": name})


def _rights(name: str, subject: Mapping[str, str], namespace: str) -> list[Manifest]:
    """The Role and RoleBinding that let a hub's account run Jobs in a namespace."""
    changing = [
        _rule("batch", ["jobs"], ["create", "delete"]),
        _rule("batch", ["jobs/status"], ["get"]),
        _rule("kueue.x-k8s.io", ["workloads"], ["create", "delete", "update", "patch"]),
        _rule("kueue.x-k8s.io", ["workloads/status"], ["get", "update", "patch"]),
    ]
    there = {"name": name, "namespace": namespace}
    return [
        _object(RBAC, "Role", dict(there), rules=changing),
        _object(RBAC, "RoleBinding", dict(there), roleRef=_role("Role", name), subjects=[dict(subject)]),
    ]


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _role(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def _object(version: str, kind: str, metadata: Mapping[str, Any], **rest: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": dict(metadata), **rest}
