"""What the cluster components of all runtimes have in common."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypedDict
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime.settings import get_root_resource

from kumulus.components import engine
from kumulus.components.engine import require_kubernetes_plugin
from kumulus.components.resources import ClusterLike, DeclaredCluster, of_plugin
from kumulus.model.contents import PREVIEW
from kumulus.runtimes import registry

if TYPE_CHECKING:
    import pulumi_kubernetes as kubernetes

    from kumulus.components.fault import Fault
    from kumulus.components.kwok_node_group import KwokNodeGroup

_IDENTITY_NAME = "stack-identity"


class StackIdentity(pulumi.CustomResource):
    """``kumulus:index:StackIdentity``: who the stack is."""

    def __init__(self, resource_name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("kumulus:index:StackIdentity", resource_name, {"stackId": None}, engine.resource_options(opts))

    @property
    def stack_id(self) -> pulumi.Output[str]:
        """The identity, known in previews."""
        found: pulumi.Output[str] = pulumi.get(self, "stackId")
        return found


# By the program's root.
_declared: WeakKeyDictionary[pulumi.Resource, StackIdentity] = WeakKeyDictionary()


def stack_identity(cluster: pulumi.Resource, resource_name: str) -> pulumi.Output[str]:
    """The identity of the stack that a cluster component belongs to.

    A Python program has a single identity, which no component owns: it stays whatever happens to the clusters and their
    names. A component of a program in another language cannot see the program's root, so it has its own identity; an
    alias keeps the old one if the program was in Python before.
    """
    root = get_root_resource()
    if root is None:
        before = pulumi.Alias(name=_IDENTITY_NAME, parent=pulumi.ROOT_STACK_RESOURCE)
        opts = pulumi.ResourceOptions(parent=cluster, aliases=[before])
        return StackIdentity(f"{resource_name}-{_IDENTITY_NAME}", opts).stack_id
    if root not in _declared:
        _declared[root] = StackIdentity(_IDENTITY_NAME)
    return _declared[root].stack_id


# A quarter of the provider's default. When the provider starts, it sends the server two requests and then one for each
# custom resource, each after the other. So if the server is silent, a preview of a kind stack with its fifteen or so
# Stage objects takes two and a half minutes; with 15 s, it took more than three. A watch that runs into the timeout is
# restarted.
_REQUEST_S = 8


def kubernetes_provider(name: str, cluster: ClusterLike, opts: pulumi.ResourceOptions) -> kubernetes.Provider:
    """Declare a Kubernetes provider of a cluster."""
    # Imported here, as the Kubernetes SDK is slow to import and most stacks do not use it.
    import pulumi_kubernetes as kubernetes

    return kubernetes.Provider(
        name,
        kubeconfig=cluster.kubeconfig,
        cluster_identifier=cluster.identity,
        # A stopped cluster keeps its objects in the state, since `up --refresh` brings it back; without this, the
        # refresh fails on it. Not for a cluster that outlives the stack: its refresh has failed by now, on an earlier
        # resource, and objects that are skipped would still be compared, with a request to the silent server for each
        # custom resource.
        skip_update_unreachable=cluster.deleted_with is not None,
        kube_client_settings={"timeout": _REQUEST_S},
        opts=opts,
    )


def type_of(runtime: str) -> str:
    """The type of the component of a runtime's cluster: ``kumulus:index:KwokCluster``."""
    return f"kumulus:index:{runtime.capitalize()}Cluster"


class ControlPlane(pulumi.ComponentResource):
    """A cluster of one of the runtimes: its ``kumulus:index:Cluster``, and its ``kumulus:index:Lifetime``.

    What components in it need is described in :class:`kumulus.components.resources.ClusterLike`.
    """

    runtime: str
    prefix: str = ""
    kubelet_version: str = ""

    kubeconfig: pulumi.Output[str]
    """Path of the cluster's kubeconfig file, known in previews."""
    identity: pulumi.Output[str]
    """UID of the namespace kube-system: another one means another cluster."""
    server: pulumi.Output[str]
    """Address of the API server."""
    stack_id: pulumi.Output[str]
    """The identity of the stack: what is made in the cluster carries it."""

    @classmethod
    def declared(
        cls,
        resource_name: str,
        runtime: str,
        options: Mapping[str, Any],
        *,
        cluster_name: str,
        kubernetes_version: str | None,
        contents: Mapping[str, Any],
        opts: pulumi.ResourceOptions,
        prefix: str = "",
    ) -> Self:
        """Declare the cluster of a loaded stack file, which has been checked already.

        Args:
            options: the runtime's own.
            kubernetes_version: the runtime's default when None.
            contents: what the stack has in it, from :func:`kumulus.model.contents.contents`. A preview compares it with
                what it was and says what the removal of faults and pools does.
            prefix: see :class:`kumulus.components.resources.ClusterLike`.
            opts: Pulumi's resource options. Their ``parent`` is also that of the cluster's Kubernetes provider.
        """
        cluster = cls.__new__(cls)
        cluster.runtime, cluster.prefix = runtime, prefix
        cluster._declare(resource_name, cluster_name, kubernetes_version, options, opts, contents)
        assert isinstance(opts.parent, pulumi.Resource)
        cluster._provider_parent = opts.parent
        return cluster

    def _declare(
        self,
        resource_name: str,
        cluster_name: str,
        kubernetes_version: pulumi.Input[str | None] | None,
        options: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None,
        contents: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(type_of(self.runtime), resource_name, None, opts)
        self._resource_name = resource_name
        self._provider_parent: pulumi.Resource = self
        self.cluster_name = cluster_name or resource_name
        self.groups: list[KwokNodeGroup] = []
        self.faults: list[Fault] = []
        self.namespaces: dict[str, str] = {}
        self.stack_id = stack_identity(self, resource_name)
        outlives = registry.get(self.runtime).outlives_stack
        if contents is None:
            # A program's cluster does not list what is in it; it only says whether this is a preview, as an update may
            # replace only what a preview has shown. {} says that this is an update; None would leave that open.
            contents = {PREVIEW: True} if pulumi.runtime.is_dry_run() else {}
        self.resource = DeclaredCluster(
            f"{resource_name}-control-plane",
            name=self.cluster_name,
            stack_id=self.stack_id,
            runtime=self.runtime,
            kubernetes_version=kubernetes_version,
            options=options,
            contents=contents,
            # Also said here, as the engine does not ask the plugin about a forced replacement. Not for a cluster that
            # outlives the stack: it would first lose all that the stack has in it.
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=None if outlives else True),
        )
        self.kubeconfig = self.resource.kubeconfig
        self.identity = self.resource.identity
        self.server = self.resource.server
        self.deleted_with = None if outlives else self.resource
        self.lifetime = None if outlives else self._lifetime(resource_name)
        self.register_outputs(
            {
                "clusterName": self.cluster_name,
                "kubeconfig": self.kubeconfig,
                "identity": self.identity,
                "server": self.server,
                "stackId": self.stack_id,
                # For components of other languages in it, which are constructed in another process.
                "controlPlaneUrn": self.resource.urn,
                **({"lifetimeUrn": self.lifetime.urn} if self.lifetime else {}),
            }
        )

    def _lifetime(self, resource_name: str) -> pulumi.Resource:
        inputs = {"clusterIdentity": self.identity}
        opts = pulumi.ResourceOptions(parent=self)
        return of_plugin("kumulus:index:Lifetime", f"{resource_name}-lifetime", inputs, opts)

    @cached_property
    def kubernetes(self) -> kubernetes.Provider:
        """The Kubernetes provider, declared when first asked for; raises pulumi.RunError without its plugin."""
        require_kubernetes_plugin()
        opts = pulumi.ResourceOptions(parent=self._provider_parent, depends_on=[self.resource])
        return kubernetes_provider(f"{self._resource_name}-kubernetes", self, opts)

    def endpoint(self, name: str) -> pulumi.Output[str | None]:
        """Where a further service of the cluster answers, such as ``prometheus``; None where there is none."""
        return self.resource.endpoints.apply(lambda found: (found or {}).get(name))


class ControlPlaneArgs(TypedDict, total=False):
    """Arguments of every cluster."""

    cluster_name: str
    """The cluster's name, a DNS-1123 label of at most 40 characters. Default: the resource's name."""
