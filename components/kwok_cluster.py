"""``KwokCluster``: a local control plane without Docker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.resources import Cluster, Lifetime


class KwokCluster(pulumi.ComponentResource):
    """etcd, the Kubernetes control plane and kwok-controller as processes on this machine.

    Args:
        resource_name: its name in the stack.
        cluster_name: the cluster's name; the resource's name when None.
        kubernetes_version: such as ``v1.35.4``; the pinned default when None.
        options: as the stack file's ``kwok:`` section: apiServerPort, featureGates, runtimeConfig, etcdFsync,
            etcdQuota, heartbeatFactor; and ``observability`` as its section of that name.
        contents: what the stack has in it, from :func:`spec.contents.contents`; a preview tells what goes.
        opts: Pulumi's resource options.

    Attributes:
        resource: the ``kumulus:index:Cluster``; node pools name it in ``deleted_with``.
        lifetime: what other providers' resources in the cluster name in ``deleted_with``.
        cluster_name: the cluster's name, as given.
        kubeconfig: path of the kubeconfig file, known in previews.
        identity: UID of the kube-system namespace; another one means another cluster.
    """

    kubeconfig: pulumi.Output[str]
    identity: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        cluster_name: str | None = None,
        kubernetes_version: str | None = None,
        options: Mapping[str, Any] | None = None,
        contents: Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:KwokCluster", resource_name, None, opts)
        self.cluster_name = cluster_name or resource_name
        self.resource = Cluster(
            f"{resource_name}-control-plane",
            name=self.cluster_name,
            runtime="kwok",
            kubernetes_version=kubernetes_version,
            options=options,
            contents=contents,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.kubeconfig = self.resource.kubeconfig
        self.identity = self.resource.identity
        self.lifetime = Lifetime(
            f"{resource_name}-lifetime", cluster_identity=self.identity, opts=pulumi.ResourceOptions(parent=self)
        )
        self.register_outputs({"kubeconfig": self.kubeconfig, "identity": self.identity})

    def endpoint(self, name: str) -> pulumi.Output[str | None]:
        """Where a further service of the cluster answers, such as ``prometheus``; None where there is none."""
        return self.resource.endpoints.apply(lambda found: (found or {}).get(name))
