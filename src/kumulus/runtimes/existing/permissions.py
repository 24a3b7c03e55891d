"""The permissions that a kubeconfig's user needs, and those that are missing, all at once.

They are checked with a SelfSubjectAccessReview of authorization.k8s.io/v1, which every authenticated user may post.
The manifests in docs/rbac/ grant exactly this; a test compares them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.runtimes import existing

if TYPE_CHECKING:
    from kumulus.kube import Client

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


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


# What each part of a stack needs: lines of `RESOURCES in NAMESPACE: VERBS`, with `VERB=NAME` for one object alone, and
# without a namespace for the whole cluster. Pulumi's own providers list and watch what they make, unlike the plugin.
_NEEDED = {
    existing.NODES: """
        nodes: get list create patch delete
        nodes/status: patch
        pods: list patch delete
        # The records of pools and faults, see docs/decisions/faults.md.
        configmaps in kube-system: get list create patch delete
        # Whether KWOK has taken the nodes over.
        leases.coordination.k8s.io in kube-node-lease: get list
        stages.kwok.x-k8s.io: list
        # Whether KWOK is there already.
        deployments.apps: list
        customresourcedefinitions.apiextensions.k8s.io: get
    """,
    existing.FAULTS: """
        leases.coordination.k8s.io in kube-node-lease: get list create patch
        pods/status: patch
        stages.kwok.x-k8s.io: get list create update patch delete
    """,
    existing.STAGES: """
        stages.kwok.x-k8s.io: get list watch create patch delete
    """,
    existing.USAGE: """
        clusterresourceusages.kwok.x-k8s.io: get create patch delete
    """,
    existing.DEVICES: """
        resourceslices.resource.k8s.io: get list create patch delete
        deviceclasses.resource.k8s.io: get create patch delete
        # Which pods have a device that a fault taints.
        resourceclaims.resource.k8s.io: list
    """,
    existing.HYPERNODES: """
        hypernodes.topology.volcano.sh: get list create patch delete
    """,
    existing.KWOK: """
        customresourcedefinitions.apiextensions.k8s.io: get list watch create delete
        flowschemas.flowcontrol.apiserver.k8s.io: get create patch delete
        clusterroles.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io: get create patch delete
        configmaps services serviceaccounts in kube-system: get list watch create patch delete
        # Helm keeps its releases in secrets.
        secrets in kube-system: get list create update delete
        deployments.apps in kube-system: get list watch create patch delete
        replicasets.apps in kube-system: get list watch
        pods persistentvolumeclaims in kube-system: get list watch
        events in kube-system: list watch
        stages.kwok.x-k8s.io: get list watch create patch delete
    """,
    existing.ADDONS: """
        # Only Helm knows what a chart contains; Helm has to be allowed to make a namespace and to store its release.
        namespaces: get create
        secrets: get list create update delete
    """,
    existing.TENANTS: """
        namespaces: get create patch delete
        resourcequotas serviceaccounts secrets: get create patch delete
        roles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io: get create patch delete
        clusterroles.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io: get create patch delete
        # RBAC lets users grant only rights that they have themselves, unless they may bind roles.
        clusterroles.rbac.authorization.k8s.io: bind=view bind=edit bind=admin
        nodes: get list watch
    """,
    existing.AUTOSCALER: """
        customresourcedefinitions.apiextensions.k8s.io: get list create update delete
        clusterroles.rbac.authorization.k8s.io: get list create update delete
        clusterrolebindings.rbac.authorization.k8s.io: get list create update delete
        nodepools.karpenter.sh nodeclaims.karpenter.sh: get list create update patch delete
        kwoknodeclasses.karpenter.kwok.sh: get list create update patch delete
        # Whether they are served.
        nodeoverlays.karpenter.sh capacitybuffers.autoscaling.x-k8s.io: list
        stages.kwok.x-k8s.io: get list create update delete
        configmaps serviceaccounts in kube-system: get list create update delete
        deployments.apps in kube-system: get list create update patch delete
        pods in kube-system: list
        nodes: list patch delete
    """,
}


def _parsed(table: str) -> Iterator[Access]:
    """The permissions in a table of :data:`_NEEDED`."""
    for line in (line.strip() for line in table.splitlines()):
        if line and not line.startswith("#"):
            what, _, verbs = line.partition(": ")
            resources, _, namespace = what.partition(" in ")
            for resource, _, group in (each.partition(".") for each in resources.split()):
                for verb, _, name in (each.partition("=") for each in verbs.split()):
                    yield Access(namespace, group, resource, verb, name)


def needed(wanted: Iterable[str]) -> list[Access]:
    """The permissions that some of :data:`kumulus.runtimes.existing.NEEDS` take, each once."""
    # The namespace kube-system, whose UID is the cluster's identity.
    found = dict.fromkeys([Access("", "", "namespaces", "get", "kube-system")])
    for need in wanted:
        found |= dict.fromkeys(_parsed(_NEEDED[need]))
    return list(found)


async def missing(client: Client, wanted: Iterable[str]) -> list[Access]:
    """The needed permissions that the user does not have."""
    accesses = needed(wanted)
    answers = await asyncio.gather(*(client.create(_REVIEWS, each.review()) for each in accesses))
    return [each for each, answer in zip(accesses, answers, strict=True) if not answer["status"].get("allowed")]


def described(lacking: Iterable[Access]) -> str:
    """Permissions in words: ``nodes: create, delete; configmaps in kube-system: get; clusterroles: bind view``."""
    verbs: dict[str, list[str]] = {}
    for each in lacking:
        where = f" in {each.namespace}" if each.namespace else ""
        group = f".{each.group}" if each.group else ""
        resource, slash, rest = each.resource.partition("/")
        what = f"{resource}{group}{slash}{rest}{where}"
        verbs.setdefault(what, []).append(f"{each.verb} {each.name}".strip())
    return "; ".join(f"{what}: {', '.join(listed)}" for what, listed in verbs.items())
