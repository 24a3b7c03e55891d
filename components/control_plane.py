"""What the ways to get a cluster have in common as components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pulumi

from components.resources import Cluster, Lifetime


class ControlPlane(pulumi.ComponentResource):
    """A cluster had by one of the runtimes: its ``kumulus:index:Cluster``, and the life of that.

    Args:
        resource_name: its name in the stack.
        cluster_name: the cluster's name; the resource's name when None.
        kubernetes_version: such as ``v1.35.4``; the runtime's default when None.
        options: the runtime's own options.
        contents: what the stack has in it, from :func:`spec.contents.contents`; a preview tells what goes.
        opts: Pulumi's resource options.

    Attributes:
        runtime: how the cluster is had; a subclass's.
        token: its type; a subclass's.
        outlives_stack: whether the cluster is not the stack's to remove; a subclass's.
        resource: the ``kumulus:index:Cluster``.
        end: what the plugin's resources in the cluster name in ``deleted_with``; None where each has to be removed.
        lifetime: likewise, what other providers' resources name there.
        cluster_name: the cluster's name, as given.
        kubeconfig: path of the kubeconfig file, known in previews.
        identity: UID of the kube-system namespace; another one means another cluster.
    """

    runtime: ClassVar[str]
    token: ClassVar[str]
    outlives_stack: ClassVar[bool] = False
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
        super().__init__(self.token, resource_name, None, opts)
        self.cluster_name = cluster_name or resource_name
        self.resource = Cluster(
            f"{resource_name}-control-plane",
            name=self.cluster_name,
            runtime=self.runtime,
            kubernetes_version=kubernetes_version,
            options=options,
            contents=contents,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.kubeconfig = self.resource.kubeconfig
        self.identity = self.resource.identity
        self.end = None if self.outlives_stack else self.resource
        self.lifetime = None if self.outlives_stack else self._lifetime(resource_name)
        self.register_outputs({"kubeconfig": self.kubeconfig, "identity": self.identity})

    def _lifetime(self, resource_name: str) -> Lifetime:
        opts = pulumi.ResourceOptions(parent=self)
        return Lifetime(f"{resource_name}-lifetime", cluster_identity=self.identity, opts=opts)

    def endpoint(self, name: str) -> pulumi.Output[str | None]:
        """Where a further service of the cluster answers, such as ``prometheus``; None where there is none."""
        return self.resource.endpoints.apply(lambda found: (found or {}).get(name))
