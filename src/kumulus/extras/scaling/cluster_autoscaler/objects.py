"""cluster-autoscaler's permissions in the cluster.

They are those that its Helm chart grants (templates/clusterrole.yaml and role.yaml of the chart cluster-autoscaler).
"""

from __future__ import annotations

from kumulus.extras.scaling.descriptor import Asked, Manifest
from kumulus.extras.scaling.roles import READ, Rule, granted, user

USER = "cluster-autoscaler"
_RULES: tuple[Rule, ...] = (
    ("", ("events", "endpoints"), ("create", "patch")),
    ("events.k8s.io", ("events",), ("create", "patch")),
    ("", ("pods/eviction",), ("create",)),
    ("", ("pods/status",), ("update",)),
    ("", ("nodes",), (*READ, "update", "patch")),
    (
        "",
        ("namespaces", "pods", "services", "replicationcontrollers", "persistentvolumeclaims", "persistentvolumes"),
        READ,
    ),
    ("", ("configmaps",), (*READ, "create", "update", "delete")),
    ("apps", ("daemonsets", "deployments", "replicasets", "statefulsets"), READ),
    ("batch", ("jobs", "cronjobs"), (*READ, "patch")),
    ("policy", ("poddisruptionbudgets",), READ),
    (
        "storage.k8s.io",
        ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"),
        READ,
    ),
    ("resource.k8s.io", ("deviceclasses", "resourceclaims", "resourceslices"), READ),
    ("coordination.k8s.io", ("leases",), (*READ, "create", "update", "patch")),
    ("autoscaling.x-k8s.io", ("provisioningrequests", "provisioningrequests/status"), (*READ, "update", "patch")),
)


def manifests(asked: Asked) -> list[Manifest]:
    """Its ClusterRole, and the binding of that to its user."""
    return granted("kumulus-cluster-autoscaler", _RULES, user(USER))
