"""The plugin's resources as a Pulumi program declares them; the plugin's own documentation says what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from spec.pools import Pool, pool_to_properties


class Cluster(pulumi.CustomResource):
    """``kumulus:index:Cluster``: a control plane.

    Args:
        resource_name: its name in the stack.
        name: the cluster's name.
        runtime: how it is had, such as ``kwok``.
        kubernetes_version: such as ``v1.35.4``; the pinned default when None.
        options: the runtime's own options.
        opts: Pulumi's resource options.
    """

    name: pulumi.Output[str]
    identity: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    server: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        name: pulumi.Input[str],
        runtime: pulumi.Input[str] = "kwok",
        kubernetes_version: pulumi.Input[str] | None = None,
        options: Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = {
            "name": name,
            "runtime": runtime,
            "kubernetesVersion": kubernetes_version,
            "options": dict(options or {}),
            # Outputs that are no inputs have to be listed to become attributes.
            **dict.fromkeys(("identity", "kubeconfig", "server", "directory", "status", "components")),
        }
        super().__init__("kumulus:index:Cluster", resource_name, properties, opts)


class NodePool(pulumi.CustomResource):
    """``kumulus:index:NodePool``: the emulated nodes of one node group in one availability zone.

    Args:
        resource_name: its name in the stack.
        pool: the nodes.
        cluster_name: name of the cluster.
        kubeconfig: path of the cluster's kubeconfig.
        cluster_identity: UID of the cluster's kube-system namespace; another one means other nodes.
        opts: Pulumi's resource options.
    """

    replicas: pulumi.Output[int]

    def __init__(
        self,
        resource_name: str,
        *,
        pool: Pool,
        cluster_name: pulumi.Input[str],
        kubeconfig: pulumi.Input[str],
        cluster_identity: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = {
            "clusterName": cluster_name,
            "kubeconfig": kubeconfig,
            "clusterIdentity": cluster_identity,
            **pool_to_properties(pool),
        }
        super().__init__("kumulus:index:NodePool", resource_name, properties, opts)


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
