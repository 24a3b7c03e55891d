"""What Karpenter needs in the cluster: the CRDs of its kinds, its permissions, a node class, and its node pools.

Its permissions are those of its chart for KWOK: kwok/charts/templates of sigs.k8s.io/karpenter v1.14.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from kumulus import toolchain
from kumulus.autoscalers.descriptor import Asked, Manifest

USER = "karpenter"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
DELAYS = "kumulus.io/registration-delays"
NODEPOOL_LABEL = "karpenter.sh/nodepool"
INSTANCES = (
    "/apis/karpenter.sh/v1/nodepools",
    "/apis/karpenter.sh/v1/nodeclaims",
    "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses",
)
_NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_READ = ("get", "list", "watch")
_SUBJECT = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": USER}
_RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("karpenter.kwok.sh", ("kwoknodeclasses",), _READ),
    ("karpenter.kwok.sh", ("kwoknodeclasses", "kwoknodeclasses/status"), ("patch", "update")),
    ("karpenter.sh", ("nodepools", "nodeclaims", "nodeoverlays"), _READ),
    (
        "karpenter.sh",
        ("nodeclaims", "nodeclaims/status", "nodeclaims/finalizers"),
        ("create", "delete", "update", "patch"),
    ),
    (
        "karpenter.sh",
        ("nodepools", "nodepools/status", "nodepools/finalizers", "nodeoverlays/status"),
        ("update", "patch"),
    ),
    ("autoscaling.x-k8s.io", ("capacitybuffers", "capacitybuffers/status"), (*_READ, "update", "patch")),
    (
        "",
        (
            "pods",
            "nodes",
            "persistentvolumes",
            "persistentvolumeclaims",
            "replicationcontrollers",
            "namespaces",
            "podtemplates",
        ),
        _READ,
    ),
    ("storage.k8s.io", ("storageclasses", "csinodes", "volumeattachments"), _READ),
    ("apps", ("daemonsets", "deployments", "replicasets", "statefulsets"), _READ),
    ("apiextensions.k8s.io", ("customresourcedefinitions",), ("list", "watch")),
    ("policy", ("poddisruptionbudgets",), _READ),
    ("coordination.k8s.io", ("leases",), (*_READ, "delete")),
    ("", ("events",), ("create", "patch")),
    ("", ("nodes",), ("create", "patch", "delete", "update")),
    ("", ("pods/eviction",), ("create",)),
    ("", ("pods",), ("delete",)),
    # The provider runs as the same user, and creates and deletes the claims' nodes with the rights above.
)


def manifests(asked: Asked, subject: Mapping[str, str] = _SUBJECT) -> list[Manifest]:
    """All of these objects, the CRDs first.

    Args:
        asked: what the stack asks of it.
        subject: its identity at the API server, as in a ClusterRoleBinding.

    Raises:
        toolchain.ToolMissing: Karpenter is not built; the message says how to get it.
    """
    offered = sorted(
        {"spot" if each["spot"] else "on-demand" for one in asked["machines"] for each in one["offerings"]}
    )
    return [
        *definitions(),
        *roles(subject),
        node_class(asked),
        *(node_pool(each, offered) for each in asked["nodePools"]),
    ]


def definitions() -> list[Manifest]:
    """The CRDs of its kinds, from its Go module."""
    toolchain.find("karpenter")
    found = sorted((toolchain.kept("karpenter") / "crds").glob("*.yaml"))
    return [yaml.load(file.read_text(), Loader=_LOADER) for file in found]  # noqa: S506 - a safe loader


def node_pool(pool: Mapping[str, Any], offered: Sequence[str]) -> Manifest:
    """A NodePool, with the only node class and the offered capacity types, unless it says otherwise.

    Args:
        pool: the stack's node pool.
        offered: on-demand, spot or both. If a pool does not say, Karpenter assumes that both are available, and
            replaces machines only by spot ones (computeConsolidation, pkg/controllers/disruption/consolidation.go).
    """
    spec = dict(pool.get("spec") or {})
    template = dict(spec.get("template") or {})
    inner = {"requirements": [], **dict(template.get("spec") or {})}
    inner.setdefault("nodeClassRef", dict(_NODE_CLASS))
    requirements = list(inner["requirements"] or [])
    if all(each.get("key") != CAPACITY_TYPE for each in requirements):
        requirements.append({"key": CAPACITY_TYPE, "operator": "In", "values": list(offered)})
    inner["requirements"] = requirements
    spec["template"] = {**template, "spec": inner}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": pool["name"]},
        "spec": spec,
    }


def node_class(asked: Asked) -> Manifest:
    """The only node class, with the time that machines take to register."""
    delay, drawn = asked.get("registrationDelay"), asked.get("registrationDelays")
    annotations = {DELAYS: " ".join(f"{each:g}" for each in drawn)} if drawn else {}
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": _NODE_CLASS["name"], **({"annotations": annotations} if annotations else {})},
        "spec": {"nodeRegistrationDelay": delay} if delay else {},
    }


def roles(subject: Mapping[str, str]) -> list[Manifest]:
    """Its ClusterRole, and the binding of that to a subject."""
    name = {"name": "kumulus-karpenter"}
    rules = [{"apiGroups": [group], "resources": list(kinds), "verbs": list(verbs)} for group, kinds, verbs in _RULES]
    api = "rbac.authorization.k8s.io/v1"
    role = {"apiVersion": api, "kind": "ClusterRole", "metadata": dict(name), "rules": rules}
    binding = {
        "apiVersion": api,
        "kind": "ClusterRoleBinding",
        "metadata": dict(name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **name},
        "subjects": [dict(subject)],
    }
    return [role, binding]
