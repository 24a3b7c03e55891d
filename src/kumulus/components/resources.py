"""The plugin's resources as a Pulumi program declares them; the plugin's own documentation says what they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pulumi

from kumulus.components import engine
from kumulus.model.identity import STACK_ID
from kumulus.model.pools import CLUSTER_LABEL

if TYPE_CHECKING:
    import pulumi_kubernetes as kubernetes

    from kumulus.components.fault import Fault
    from kumulus.components.kwok_node_group import KwokNodeGroup


_CLUSTER_OUTPUTS = (
    "identity", "kubeconfig", "server", "directory", "owner", "machine", "status", "components", "endpoints"
)  # fmt: skip


class DeclaredCluster(pulumi.CustomResource):
    """``kumulus:index:Cluster``: a control plane."""

    name: pulumi.Output[str]
    runtime: pulumi.Output[str]
    identity: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    server: pulumi.Output[str]
    directory: pulumi.Output[str]
    owner: pulumi.Output[str]
    machine: pulumi.Output[dict[str, str] | None]
    endpoints: pulumi.Output[dict[str, str]]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        stack_id: pulumi.Input[str],
        runtime: str,
        kubernetes_version: pulumi.Input[str | None] | None,
        options: Mapping[str, Any],
        contents: Mapping[str, Any],
        opts: pulumi.ResourceOptions,
    ) -> None:
        properties = {
            "name": name,
            "runtime": runtime,
            "kubernetesVersion": kubernetes_version,
            "options": dict(options),
            "contents": dict(contents),
            "stackId": stack_id,
            # Outputs that are not inputs have to be listed to become attributes.
            **dict.fromkeys(_CLUSTER_OUTPUTS),
        }
        super().__init__("kumulus:index:Cluster", resource_name, properties, engine.resource_options(opts))


def of_plugin(
    token: str, resource_name: str, properties: Mapping[str, Any], opts: pulumi.ResourceOptions
) -> pulumi.CustomResource:
    """A resource of the plugin's, such as ``kumulus:index:Lifetime``, by its type."""
    return pulumi.CustomResource(token, resource_name, dict(properties), engine.resource_options(opts))


def depended_on(opts: pulumi.ResourceOptions | None) -> list[Any]:
    """The dependencies in a component's options, which Pulumi does not pass on to the component's children."""
    depends = opts.depends_on if opts else None
    if depends is None:
        return []
    return list(depends) if isinstance(depends, Sequence) else [depends]


class ClusterLike(Protocol):
    """What is needed to know of a cluster to put something into it; every cluster component has it."""

    cluster_name: str
    kubeconfig: pulumi.Output[str]
    identity: pulumi.Output[str]
    server: pulumi.Output[str]
    stack_id: pulumi.Output[str]
    """The identity of the stack that owns it and all that is put into it."""
    groups: list[KwokNodeGroup]
    """The node groups declared in it so far, for faults on their nodes."""
    faults: list[Fault]
    """The faults declared in it so far, each compared with those before it."""
    namespaces: dict[str, str]
    """The namespaces of the tenants declared in it so far, each with the name of its tenant's resource."""
    kubelet_version: str
    """The version of its nodes, such as v1.37.2; empty where the program does not decide it, or only by an output."""
    prefix: str
    """What begins the resource names of all that is declared in it: ``worker-0.`` where its stack file has several
    clusters, empty otherwise. No cluster's name has a dot."""

    @property
    def resource(self) -> DeclaredCluster:
        """The ``kumulus:index:Cluster``."""

    @property
    def deleted_with(self) -> DeclaredCluster | None:
        """What the plugin's resources in the cluster are deleted with; None where the cluster outlives the stack."""

    @property
    def lifetime(self) -> pulumi.Resource | None:
        """What other providers' resources in the cluster are deleted with; None likewise."""

    @property
    def kubernetes(self) -> kubernetes.Provider:
        """The Kubernetes provider of the cluster, declared when something first asks for it."""

    def endpoint(self, name: str) -> pulumi.Output[str | None]:
        """Where a further service of the cluster answers, such as ``prometheus``; None where there is none."""


def labelled(metadata: Mapping[str, Any], cluster: ClusterLike) -> dict[str, Any]:
    """The metadata of another provider's object, with labels that say which stack owns it.

    The server refuses, as a conflict, that two managers own the same label with different values: another stack's
    object of the same name is not taken over. Only objects in a cluster that outlives the stack have the identity. In
    one that goes with the stack, the folder says who owns everything. There the label is left out: the Kubernetes
    provider skips changes while the cluster is down, and would leave objects half marked (docs/decisions/identity.md).
    """
    mine = {STACK_ID: cluster.stack_id} if cluster.deleted_with is None else {}
    return {**metadata, "labels": {**metadata.get("labels", {}), CLUSTER_LABEL: cluster.cluster_name, **mine}}


class InCluster(pulumi.CustomResource):
    """A resource of the plugin's inside a cluster, whose place is among its inputs.

    Another identity of the cluster (the UID of its kube-system namespace) means another resource.
    """

    def __init__(
        self,
        token: str,
        resource_name: str,
        cluster: ClusterLike,
        properties: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None,
    ) -> None:
        place = {
            "clusterName": cluster.cluster_name,
            "kubeconfig": cluster.kubeconfig,
            "clusterIdentity": cluster.identity,
            "stackId": cluster.stack_id,
            **({"clusterOutlivesStack": True} if cluster.deleted_with is None else {}),
        }
        super().__init__(token, resource_name, {**place, **properties}, engine.resource_options(opts))


class KubernetesObject(InCluster):
    """``kumulus:index:KubernetesObject``: one object, which carries the cluster's name."""

    data: pulumi.Output[dict[str, str] | None]
    """What the cluster has written into a Secret for a service account's token."""

    def __init__(
        self,
        resource_name: str,
        cluster: ClusterLike,
        manifest: Mapping[str, Any],
        *,
        parent: pulumi.Resource,
        after: Sequence[pulumi.Resource] = (),
    ) -> None:
        metadata = {**manifest["metadata"]}
        metadata["labels"] = {**metadata.get("labels", {}), CLUSTER_LABEL: cluster.cluster_name}
        opts = pulumi.ResourceOptions(
            parent=parent,
            depends_on=list(after),
            deleted_with=cluster.deleted_with,
            additional_secret_outputs=["data"] if manifest["kind"] == "Secret" else None,
        )
        properties = {"manifest": {**manifest, "metadata": metadata}, "data": None}
        super().__init__("kumulus:index:KubernetesObject", resource_name, cluster, properties, opts)
