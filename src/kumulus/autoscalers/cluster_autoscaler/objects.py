"""cluster-autoscaler's permissions in the cluster.

They are those that its Helm chart grants (templates/clusterrole.yaml and role.yaml of the chart cluster-autoscaler).
"""

from __future__ import annotations

from kumulus.autoscalers.descriptor import Asked, Manifest

USER = "cluster-autoscaler"
_READ = ("get", "list", "watch")
_RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("events", "endpoints"), ("create", "patch")),
    ("events.k8s.io", ("events",), ("create", "patch")),
    ("", ("pods/eviction",), ("create",)),
    ("", ("pods/status",), ("update",)),
    ("", ("nodes",), (*_READ, "update", "patch")),
    (
        "",
        ("namespaces", "pods", "services", "replicationcontrollers", "persistentvolumeclaims", "persistentvolumes"),
        _READ,
    ),
    ("", ("configmaps",), (*_READ, "create", "update", "delete")),
    ("apps", ("daemonsets", "deployments", "replicasets", "statefulsets"), _READ),
    ("batch", ("jobs", "cronjobs"), (*_READ, "patch")),
    ("policy", ("poddisruptionbudgets",), _READ),
    (
        "storage.k8s.io",
        ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"),
        _READ,
    ),
    ("resource.k8s.io", ("deviceclasses", "resourceclaims", "resourceslices"), _READ),
    ("coordination.k8s.io", ("leases",), (*_READ, "create", "update", "patch")),
    ("autoscaling.x-k8s.io", ("provisioningrequests", "provisioningrequests/status"), (*_READ, "update", "patch")),
)


def manifests(asked: Asked) -> list[Manifest]:
    """Its ClusterRole, and the binding of that to its user."""
    name = {"name": "kumulus-cluster-autoscaler"}
    rules = [{"apiGroups": [group], "resources": list(kinds), "verbs": list(verbs)} for group, kinds, verbs in _RULES]
    api = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": api, "kind": "ClusterRole", "metadata": dict(name), "rules": rules},
        {
            "apiVersion": api,
            "kind": "ClusterRoleBinding",
            "metadata": dict(name),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **name},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": USER}],
        },
    ]
