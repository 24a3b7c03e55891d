"""The plugin's resources as a Pulumi program declares them; the plugin's own documentation says what they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pulumi

from spec.hypernodes import Fabric, fabrics_to_plain
from spec.node_sets import to_plain
from spec.pools import Pool, pool_to_properties

if TYPE_CHECKING:
    from spec.fault_targets import ResolvedFault


_CLUSTER_OUTPUTS = ("identity", "kubeconfig", "server", "directory", "status", "components", "endpoints")


class Cluster(pulumi.CustomResource):
    """``kumulus:index:Cluster``: a control plane.

    Args:
        resource_name: its name in the stack.
        name: the cluster's name.
        runtime: how it is had, such as ``kwok``.
        kubernetes_version: such as ``v1.35.4``; the pinned default when None.
        options: the runtime's own options.
        contents: what the stack has in it, from :func:`spec.contents.contents`; a preview tells what goes.
        opts: Pulumi's resource options.
    """

    name: pulumi.Output[str]
    identity: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    server: pulumi.Output[str]
    endpoints: pulumi.Output[dict[str, str]]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        runtime: pulumi.Input[str] = "kwok",
        kubernetes_version: pulumi.Input[str] | None = None,
        options: Mapping[str, Any] | None = None,
        contents: Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = {
            "name": name,
            "runtime": runtime,
            "kubernetesVersion": kubernetes_version,
            "options": dict(options or {}),
            "contents": dict(contents) if contents is not None else None,
            # Outputs that are no inputs have to be listed to become attributes.
            **dict.fromkeys(_CLUSTER_OUTPUTS),
        }
        super().__init__("kumulus:index:Cluster", resource_name, properties, opts)


class ClusterLike(Protocol):
    """What is needed to know of a cluster to put something into it; every cluster component has it."""

    cluster_name: str
    kubeconfig: pulumi.Output[str]
    identity: pulumi.Output[str]
    resource: Cluster
    end: Cluster | None
    """What the plugin's resources in the cluster are deleted with; None where the cluster outlives the stack."""
    lifetime: Lifetime | None
    """Likewise, what other providers' resources are deleted with."""

    def endpoint(self, name: str) -> pulumi.Output[str | None]:
        """Where a further service of the cluster answers, such as ``prometheus``; None where there is none."""


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
        }
        super().__init__(token, resource_name, {**place, **properties}, opts)


class NodePool(InCluster):
    """``kumulus:index:NodePool``: the emulated nodes of one node group in one availability zone.

    Args:
        resource_name: its name in the stack.
        pool: the nodes.
        cluster: the cluster component it belongs to.
        opts: Pulumi's resource options.
    """

    replicas: pulumi.Output[int]

    def __init__(
        self,
        resource_name: str,
        *,
        pool: Pool,
        cluster: ClusterLike,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:NodePool", resource_name, cluster, pool_to_properties(pool), opts)


class Definitions(InCluster):
    """``kumulus:index:Definitions``: the kinds that a chart brings, which Helm would leave behind.

    Args:
        resource_name: its name in the stack.
        group: the kinds' API group.
        cluster: the cluster component it belongs to.
        opts: Pulumi's resource options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        group: str,
        cluster: ClusterLike,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:Definitions", resource_name, cluster, {"group": group}, opts)


class HyperNodes(InCluster):
    """``kumulus:index:HyperNodes``: Volcano's HyperNodes for the pools of a cluster.

    Args:
        resource_name: its name in the stack.
        fabrics: the pools, as far as HyperNodes follow from them.
        cluster: the cluster component it belongs to.
        opts: Pulumi's resource options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        fabrics: Sequence[Fabric],
        cluster: ClusterLike,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        pools = fabrics_to_plain(fabrics)
        super().__init__("kumulus:index:HyperNodes", resource_name, cluster, {"pools": pools}, opts)


class Namespace(InCluster):
    """``kumulus:index:Namespace``: a namespace that is this stack's own.

    Args:
        resource_name: its name in the stack.
        name: the namespace's.
        labels: those it is to have.
        annotations: likewise.
        cluster: the cluster component it belongs to.
        opts: Pulumi's resource options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        name: str,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        cluster: ClusterLike,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = {
            "name": name,
            "stack": f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}",
            "labels": dict(labels),
            "annotations": dict(annotations),
        }
        super().__init__("kumulus:index:Namespace", resource_name, cluster, properties, opts)


class Fault(InCluster):
    """``kumulus:index:Fault``: something that goes wrong on nodes or with pods while it is declared.

    Args:
        resource_name: its name in the stack.
        fault: the fault, with its nodes.
        cluster: the cluster component it belongs to.
        opts: Pulumi's resource options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        fault: ResolvedFault,
        cluster: ClusterLike,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = {
            "name": fault.name,
            "kind": fault.kind,
            "nodes": to_plain(fault.nodes),
            "node": fault.node.to_plain(),
            "pods": fault.pods.to_plain() if fault.pods else None,
            "lost": dict(fault.lost),
        }
        super().__init__("kumulus:index:Fault", resource_name, cluster, properties, opts)


class Lifetime(pulumi.CustomResource):
    """``kumulus:index:Lifetime``: the life of one cluster; what other providers put into it is ``deleted_with`` this.

    Args:
        resource_name: its name in the stack.
        cluster_identity: UID of the cluster's kube-system namespace.
        opts: Pulumi's resource options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        cluster_identity: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:Lifetime", resource_name, {"clusterIdentity": cluster_identity}, opts)
