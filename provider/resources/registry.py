"""The resources the plugin serves, by type token."""

from __future__ import annotations

from typing import Any

from provider.connections import Connections
from provider.resources.base import Resource
from provider.resources.chart_crds import ChartCrds
from provider.resources.cluster import Cluster
from provider.resources.definitions import Definitions
from provider.resources.fault import Fault
from provider.resources.hyper_nodes import HyperNodes
from provider.resources.lifetime import Lifetime
from provider.resources.namespace import Namespace
from provider.resources.node_pool import NodePool
from provider.resources.release_ground import ReleaseGround
from provider.resources.release_mark import ReleaseMark
from provider.resources.release_ready import ReleaseReady
from provider.runtimes.base import Runtime
from provider.runtimes.existing.kwok import FIND_KWOK, find_kwok
from provider.runtimes.existing.runtime import ExistingRuntime
from provider.runtimes.kind.runtime import KindRuntime
from provider.runtimes.kwok.priority import Way
from provider.runtimes.kwok.runtime import KwokRuntime


async def _ready(_: dict[str, Any]) -> dict[str, Any]:
    """Nothing: a program asks for it so that the engine starts the plugin."""
    return {}


FUNCTIONS = {FIND_KWOK: find_kwok, "kumulus:index:ready": _ready}
"""What a program can ask the plugin, by token."""


def resources() -> dict[str, Resource]:
    """Make the resources, sharing one set of API connections."""
    connections, way = Connections(), Way()
    runtimes: dict[str, Runtime] = {
        runtime.name: runtime for runtime in (KwokRuntime(), KindRuntime(), ExistingRuntime())
    }
    served: list[Resource] = [
        Cluster(runtimes, connections),
        NodePool(connections, way.cleared),
        HyperNodes(connections),
        Lifetime(),
        Fault(connections, way.cleared),
        Namespace(connections),
        Definitions(connections),
        ReleaseGround(connections),
        ChartCrds(connections),
        ReleaseMark(connections),
        ReleaseReady(connections),
    ]
    return {resource.token: resource for resource in served}
