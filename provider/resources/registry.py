"""The resources the plugin serves, by type token."""

from __future__ import annotations

from provider.connections import Connections
from provider.resources.base import Resource
from provider.resources.cluster import Cluster
from provider.resources.fault import Fault
from provider.resources.hyper_nodes import HyperNodes
from provider.resources.lifetime import Lifetime
from provider.resources.namespace import Namespace
from provider.resources.node_pool import NodePool
from provider.runtimes.base import Runtime
from provider.runtimes.kind.runtime import KindRuntime
from provider.runtimes.kwok.priority import Way
from provider.runtimes.kwok.runtime import KwokRuntime


def resources() -> dict[str, Resource]:
    """Make the resources, sharing one set of API connections."""
    connections = Connections()
    runtimes: dict[str, Runtime] = {runtime.name: runtime for runtime in (KwokRuntime(), KindRuntime())}
    served: list[Resource] = [
        Cluster(runtimes, connections),
        NodePool(connections, Way().cleared),
        HyperNodes(connections),
        Lifetime(),
        Fault(connections),
        Namespace(connections),
    ]
    return {resource.token: resource for resource in served}
