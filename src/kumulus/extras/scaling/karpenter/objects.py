"""What Karpenter needs in the cluster: the CRDs of its kinds, its permissions, a node class, and its node pools.

Its permissions are those of its chart for KWOK: kwok/charts/templates of sigs.k8s.io/karpenter v1.15.0.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from kumulus import toolchain
from kumulus.extras.scaling.deploying import READ, Rule, granted, user
from kumulus.extras.scaling.descriptor import Asked, Manifest
from kumulus.kube.safe_yaml import FAST_LOADER
from kumulus.kwok.base_stages import node_initialize, node_reclaimed

USER = "karpenter"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
DELAYS = "kumulus.io/registration-delays"
NODEPOOL_LABEL = "karpenter.sh/nodepool"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
INSTANCES = (
    "/apis/karpenter.sh/v1/nodepools",
    CLAIMS,
    "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses",
)
_NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
_SUBJECT = user(USER)
RULES: tuple[Rule, ...] = (
    ("karpenter.kwok.sh", ("kwoknodeclasses",), READ),
    ("karpenter.kwok.sh", ("kwoknodeclasses", "kwoknodeclasses/status"), ("patch", "update")),
    ("karpenter.sh", ("nodepools", "nodeclaims", "nodeoverlays"), READ),
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
    ("autoscaling.x-k8s.io", ("capacitybuffers", "capacitybuffers/status"), (*READ, "update", "patch")),
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
            "services",
        ),
        READ,
    ),
    ("storage.k8s.io", ("storageclasses", "csinodes", "volumeattachments"), READ),
    ("apps", ("daemonsets", "deployments", "replicasets", "statefulsets"), READ),
    ("autoscaling.k8s.io", ("verticalpodautoscalers",), READ),
    ("apiextensions.k8s.io", ("customresourcedefinitions",), ("list", "watch")),
    ("policy", ("poddisruptionbudgets",), READ),
    ("coordination.k8s.io", ("leases",), (*READ, "delete")),
    ("", ("events",), ("create", "patch")),
    ("", ("nodes",), ("create", "patch", "delete", "update")),
    ("", ("nodes/status",), ("patch",)),
    ("", ("pods/eviction",), ("create",)),
    ("", ("pods",), ("delete", "patch", "update")),
    # The provider runs as the same user, and creates and deletes the claims' nodes with the rights above.
)


def manifests(asked: Asked, subject: Mapping[str, str] = _SUBJECT) -> list[Manifest]:
    """All of these objects, the CRDs first; ``subject`` is its identity, as in a ClusterRoleBinding."""
    offered = sorted(
        {"spot" if each["spot"] else "on-demand" for one in asked["machines"] for each in one["offerings"]}
    )
    return [
        *definitions(),
        *granted("kumulus-karpenter", RULES, subject),
        node_class(asked),
        *(node_pool(each, offered) for each in asked["nodePools"]),
    ]


def definitions() -> list[Manifest]:
    """The CRDs of its kinds, from its Go module."""
    toolchain.find("karpenter")
    found = sorted((toolchain.kept("karpenter") / "crds").glob("*.yaml"))
    return [yaml.load(file.read_text(), Loader=FAST_LOADER) for file in found]  # noqa: S506 - a safe loader


def node_pool(pool: Mapping[str, Any], offered: Sequence[str]) -> Manifest:
    """A NodePool, with the only node class and the offered capacity types, unless it says otherwise.

    Args:
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


def stages(asked: Asked) -> list[Manifest]:
    """One stage for each CPU architecture of the machines, and one that ends machines that are reclaimed."""
    found = {machine["nodeInfo"]["architecture"]: machine["nodeInfo"] for machine in asked["machines"]}
    made = [
        node_initialize(f"node-initialize-karpenter-{name}", {"kubernetes.io/arch": name}, NODEPOOL_LABEL, info)
        for name, info in sorted(found.items())
    ]
    return [*made, node_reclaimed("node-reclaimed-karpenter", NODEPOOL_LABEL)]
