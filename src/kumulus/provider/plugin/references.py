"""Clusters and node groups of a program in another language, by the engine's references to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import grpc
import pulumi
from google.protobuf import struct_pb2
from pulumi.resource import DependencyResource
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor

from kumulus.components.control_plane import kubernetes_provider
from kumulus.components.mistakes import settled
from kumulus.model.plain import UNKNOWN
from kumulus.model.pool_form import pool_within
from kumulus.model.pools import Pool
from kumulus.provider.values import from_struct
from kumulus.runtimes import registry

if TYPE_CHECKING:
    import pulumi_kubernetes as kubernetes


@dataclass(frozen=True)
class Settled:
    """An argument as it came, and its value without outputs."""

    original: Any
    """The value, with outputs for parts that are unknown, secret or from other resources."""
    plain: Any
    """The value without them, as far as it is known."""
    is_plain: bool
    """Whether all of it is known and none of it is secret."""

    @classmethod
    async def of(cls, original: Any) -> Settled:
        """Settle a value; outputs in a request are resolved already, so this does not wait.

        All numbers arrive as floats; whole ones become ints, as a Python program would have written them.
        """
        if isinstance(original, pulumi.Output):
            found = await cls.of(await original.future())
            known = await original.is_known() and not await original.is_secret()
            return cls(original, found.plain, known and found.is_plain)
        if isinstance(original, Mapping):
            inner = {key: await cls.of(value) for key, value in original.items()}
            plain = {key: value.plain for key, value in inner.items()}
            fields = {key: value.original for key, value in inner.items()}
            return cls(fields, plain, all(value.is_plain for value in inner.values()))
        if isinstance(original, Sequence) and not isinstance(original, str):
            within = [await cls.of(value) for value in original]
            came = [value.original for value in within]
            return cls(came, [value.plain for value in within], all(value.is_plain for value in within))
        if isinstance(original, float) and original.is_integer():
            return cls(int(original), int(original), True)
        return cls(original, original, True)


_CLUSTERS = ("KwokCluster", "KindCluster", "ExistingCluster", "EmulatedCluster")


@dataclass
class RemoteCluster:
    """A cluster component of a program in another language; see :class:`kumulus.components.resources.ClusterLike`."""

    cluster_name: str
    resource: Any
    lifetime: Any
    component: str
    """A name of the component under construction, unique in the stack: what is declared for it is called after it."""
    opts: pulumi.ResourceOptions
    """The options of that component."""
    outputs: dict[str, Any]
    groups: list[Any] = field(default_factory=list)
    faults: list[Any] = field(default_factory=list)
    namespaces: dict[str, str] = field(default_factory=dict)
    prefix: str = ""

    def __post_init__(self) -> None:
        self.deleted_with = None if self.lifetime is None else self.resource
        self.kubeconfig = self._output("kubeconfig")
        self.identity = self._output("identity")
        self.server = self._output("server")
        self.stack_id = self._output("stackId")
        version = self.outputs.get("kubernetesVersion")
        is_local = self.outputs.get("runtime") == registry.DEFAULT
        # A preview may not know it.
        self.kubelet_version = version if is_local and isinstance(version, str) else ""

    @cached_property
    def kubernetes(self) -> kubernetes.Provider:
        """A Kubernetes provider for the component under construction, declared next to it."""
        # Protection is set here, as it cannot be inherited from a parent that is declared elsewhere.
        opts = pulumi.ResourceOptions(parent=self.opts.parent, depends_on=[self.resource], protect=False)
        return kubernetes_provider(f"{self.component}-kubernetes", self, opts)

    def endpoint(self, name: str) -> pulumi.Output[str | None]:
        """Where a further service of the cluster answers."""
        return self._output("endpoints").apply(lambda found: (found or {}).get(name))

    def _output(self, key: str) -> pulumi.Output[Any]:
        value = self.outputs.get(key)
        return settled(None if value is UNKNOWN else value, known=value is not UNKNOWN, origin=self.resource)


@dataclass
class RemoteGroup:
    """A node group of a program in another language: its pools, and their resources by name."""

    pools: list[Pool]
    resources: dict[str, Any]


def cluster_of(reference: Settled, component: str, opts: pulumi.ResourceOptions) -> RemoteCluster:
    """The cluster whose URN the engine passes as a reference; raises pulumi.RunError if it is none that is known.

    Args:
        component: see :class:`RemoteCluster`.
        opts: the options of the component under construction.
    """
    urn = _urn(reference.plain, "cluster", _CLUSTERS)
    found = _outputs_of(urn)
    name, control_plane = found.get("clusterName"), found.get("controlPlaneUrn")
    if not isinstance(name, str) or not isinstance(control_plane, str):
        raise pulumi.RunError(f"cluster: {urn} has no name that is known in a preview; write its clusterName as a text")
    lifetime = found.get("lifetimeUrn")
    return RemoteCluster(
        cluster_name=name,
        resource=DependencyResource(control_plane),
        lifetime=DependencyResource(lifetime) if isinstance(lifetime, str) else None,
        component=component,
        opts=opts,
        outputs=_outputs_of(control_plane),
    )


def group_of(reference: Any) -> RemoteGroup:
    """The node group that an item of an argument refers to; raises errors like :func:`cluster_of`."""
    urns = _outputs_of(_urn(reference, "nodeGroups", ("KwokNodeGroup",))).get("poolUrns") or []
    found = {urn: _known_pool(urn, _outputs_of(urn)) for urn in urns}
    return RemoteGroup(list(found.values()), {pool.name: DependencyResource(urn) for urn, pool in found.items()})


def _known_pool(urn: str, properties: Mapping[str, Any]) -> Pool:
    """A pool without the labels and annotations that a preview does not know."""
    if properties.get("labels") is UNKNOWN:
        # Its group and its zone are among them.
        message = f"nodeGroups: {urn} has labels that a preview does not know"
        raise pulumi.RunError(f"{message}; write a mapping of which only the values are outputs")
    known = dict(properties)
    for key in ("labels", "annotations"):
        known[key] = {name: text for name, text in (properties.get(key) or {}).items() if text is not UNKNOWN}
    return pool_within(known)


def _urn(reference: Any, argument: str, kinds: tuple[str, ...]) -> str:
    parts = reference.split("::") if isinstance(reference, str) else []
    if len(parts) < 4 or parts[2].rpartition(":")[2] not in kinds:
        raise pulumi.RunError(f"{argument}: is {reference!r}; give it a resource that is a {' or a '.join(kinds)}")
    return str(reference)


def _outputs_of(urn: str) -> dict[str, Any]:
    """The outputs of a resource of this update, from the engine."""
    monitor = get_monitor()
    assert monitor is not None
    arguments = struct_pb2.Struct(fields={"urn": struct_pb2.Value(string_value=urn)})
    request = resource_pb2.ResourceInvokeRequest(tok="pulumi:pulumi:getResource", args=arguments)
    try:
        answer = monitor.Invoke(request)
    except grpc.RpcError as error:
        raise pulumi.RunError(f"{urn} was not found: {error.details()}") from None
    found = from_struct(getattr(answer, "return")).get("state")
    return found if isinstance(found, dict) else {}
