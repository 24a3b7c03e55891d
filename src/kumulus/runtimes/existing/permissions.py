"""The permissions that a kubeconfig's user needs, and those that are missing, all at once.

They are checked with a SelfSubjectAccessReview of authorization.k8s.io/v1, which every authenticated user may post.
The manifests in docs/rbac/ grant exactly this; a test compares them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.kwok.stages import API_VERSION as KWOK_API
from kumulus.model import needs
from kumulus.model.slices import RESOURCE_API

if TYPE_CHECKING:
    from kumulus.kube import Client

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_KWOK_GROUP = KWOK_API.partition("/")[0]
_RBAC_GROUP = "rbac.authorization.k8s.io"
_RESOURCE_GROUP = RESOURCE_API.partition("/")[0]
# What the plugin does with an object of the stack's own; other providers list and watch theirs, too.
_OWNED = "get create patch delete"


@dataclass(frozen=True, order=True)
class Access:
    """One permission."""

    namespace: str
    """Where; empty for the whole cluster."""
    group: str
    """The API group; empty for the core one."""
    resource: str
    """Such as ``nodes`` or ``nodes/status``."""
    verb: str
    """Such as ``create``."""
    name: str = ""
    """The name of the only object; empty for any."""

    def review(self) -> dict[str, Any]:
        """The review that asks whether the user has it."""
        resource, _, subresource = self.resource.partition("/")
        attributes = {
            "namespace": self.namespace,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "verb": self.verb,
            "name": self.name,
        }
        return {"spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}}}


def _verbs(group: str, resource: str, verbs: str, namespace: str = "") -> Iterator[Access]:
    return (Access(namespace, group, resource, verb) for verb in verbs.split())


def _nodes() -> Iterator[Access]:
    yield from _verbs("", "nodes", "get list create patch delete")
    yield from _verbs("", "nodes/status", "patch")
    yield from _verbs("", "pods", "list patch delete")
    # The records of pools and faults, see docs/decisions/faults.md.
    yield from _verbs("", "configmaps", "get list create patch delete", "kube-system")
    # Whether KWOK has taken the nodes over.
    yield from _verbs("coordination.k8s.io", "leases", "get list", "kube-node-lease")
    yield from _verbs(_KWOK_GROUP, "stages", "list")
    # Whether KWOK is there already.
    yield from _verbs("apps", "deployments", "list")
    yield from _verbs("apiextensions.k8s.io", "customresourcedefinitions", "get")


def _faults() -> Iterator[Access]:
    yield from _verbs("coordination.k8s.io", "leases", "get list create patch", "kube-node-lease")
    yield from _verbs("", "pods/status", "patch")
    yield from _verbs(_KWOK_GROUP, "stages", "get list create update patch delete")


def _stages() -> Iterator[Access]:
    yield from _verbs(_KWOK_GROUP, "stages", "get list watch create patch delete")


def _usage() -> Iterator[Access]:
    yield from _verbs(_KWOK_GROUP, "clusterresourceusages", _OWNED)


def _devices() -> Iterator[Access]:
    yield from _verbs(_RESOURCE_GROUP, "resourceslices", "get list create patch delete")
    yield from _verbs(_RESOURCE_GROUP, "deviceclasses", _OWNED)
    # Which pods have a device that a fault taints.
    yield from _verbs(_RESOURCE_GROUP, "resourceclaims", "list")


def _kwok() -> Iterator[Access]:
    yield from _verbs("apiextensions.k8s.io", "customresourcedefinitions", "get list watch create delete")
    yield from _verbs("flowcontrol.apiserver.k8s.io", "flowschemas", "get create patch delete")
    for kind in ("clusterroles", "clusterrolebindings"):
        yield from _verbs("rbac.authorization.k8s.io", kind, "get create patch delete")
    for kind in ("configmaps", "services", "serviceaccounts"):
        yield from _verbs("", kind, "get list watch create patch delete", "kube-system")
    # Helm keeps its releases in secrets.
    yield from _verbs("", "secrets", "get list create update delete", "kube-system")
    yield from _verbs("apps", "deployments", "get list watch create patch delete", "kube-system")
    yield from _verbs("apps", "replicasets", "get list watch", "kube-system")
    yield from _verbs("", "pods", "get list watch", "kube-system")
    yield from _verbs("", "persistentvolumeclaims", "get list watch", "kube-system")
    yield from _verbs("", "events", "list watch", "kube-system")
    yield from _stages()


def _addons() -> Iterator[Access]:
    # Only Helm knows what a chart contains; Helm has to be allowed to make a namespace and to store its release.
    yield from _verbs("", "namespaces", "get create")
    yield from _verbs("", "secrets", "get list create update delete")


def _tenants() -> Iterator[Access]:
    yield from _verbs("", "namespaces", "get create patch delete")
    for kind in ("resourcequotas", "serviceaccounts", "secrets"):
        yield from _verbs("", kind, _OWNED)
    for kind in ("roles", "rolebindings", "clusterroles", "clusterrolebindings"):
        yield from _verbs(_RBAC_GROUP, kind, _OWNED)
    # RBAC lets users grant only rights that they have themselves, unless they may bind roles.
    yield from (Access("", _RBAC_GROUP, "clusterroles", "bind", role) for role in ("view", "edit", "admin"))
    yield from _verbs("", "nodes", "get list watch")


def _autoscaler() -> Iterator[Access]:
    yield from _verbs("apiextensions.k8s.io", "customresourcedefinitions", "get list create update delete")
    for kind in ("clusterroles", "clusterrolebindings"):
        yield from _verbs(_RBAC_GROUP, kind, "get list create update delete")
    for group, kind in (
        ("karpenter.sh", "nodepools"),
        ("karpenter.sh", "nodeclaims"),
        ("karpenter.kwok.sh", "kwoknodeclasses"),
    ):
        yield from _verbs(group, kind, "get list create update patch delete")
    # Whether they are served.
    yield from _verbs("karpenter.sh", "nodeoverlays", "list")
    yield from _verbs("autoscaling.x-k8s.io", "capacitybuffers", "list")
    yield from _verbs(_KWOK_GROUP, "stages", "get list create update delete")
    for kind in ("configmaps", "serviceaccounts"):
        yield from _verbs("", kind, "get list create update delete", "kube-system")
    yield from _verbs("apps", "deployments", "get list create update patch delete", "kube-system")
    yield from _verbs("", "pods", "list", "kube-system")
    yield from _verbs("", "nodes", "list patch delete")


_OF = {
    needs.NODES: _nodes,
    needs.FAULTS: _faults,
    needs.STAGES: _stages,
    needs.USAGE: _usage,
    needs.DEVICES: _devices,
    needs.HYPERNODES: lambda: _verbs("topology.volcano.sh", "hypernodes", "get list create patch delete"),
    needs.KWOK: _kwok,
    needs.ADDONS: _addons,
    needs.TENANTS: _tenants,
    needs.AUTOSCALER: _autoscaler,
}


def needed(wanted: Iterable[str]) -> list[Access]:
    """The permissions that a stack needs for what it does, each once.

    Args:
        wanted: some of :data:`kumulus.model.needs.NEEDS`.
    """
    # The namespace kube-system, whose UID is the cluster's identity.
    found = dict.fromkeys([Access("", "", "namespaces", "get", "kube-system")])
    for need in wanted:
        found |= dict.fromkeys(_OF[need]())
    return list(found)


async def missing(client: Client, wanted: Iterable[str]) -> list[Access]:
    """The needed permissions that the user does not have."""
    accesses = needed(wanted)
    answers = await asyncio.gather(*(client.create(_REVIEWS, each.review()) for each in accesses))
    return [each for each, answer in zip(accesses, answers, strict=True) if not answer["status"].get("allowed")]


def described(lacking: Iterable[Access]) -> str:
    """Permissions in words: ``nodes: create, delete; configmaps in kube-system: get``."""
    by_place: dict[str, list[str]] = {}
    for each in lacking:
        where = f" in {each.namespace}" if each.namespace else ""
        group = f".{each.group}" if each.group else ""
        resource, slash, rest = each.resource.partition("/")
        by_place.setdefault(f"{resource}{group}{slash}{rest}{where}", []).append(each.verb)
    return "; ".join(f"{place}: {', '.join(verbs)}" for place, verbs in by_place.items())
