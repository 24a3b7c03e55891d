"""The resources the plugin serves, by type token."""

from typing import Any

from kumulus.helm.charts import FIND_CHARTS, find_charts
from kumulus.host import extras
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Resource
from kumulus.provider.resources.chart_crds import ChartCrds
from kumulus.provider.resources.cluster import ClusterResource
from kumulus.provider.resources.definitions import Definitions
from kumulus.provider.resources.fault import FaultResource
from kumulus.provider.resources.in_cluster import InClusterResource
from kumulus.provider.resources.kubernetes_object import KubernetesObjectResource
from kumulus.provider.resources.namespace import NamespaceResource
from kumulus.provider.resources.node_pool import NodePool
from kumulus.provider.resources.release import ReleaseMark, ReleasePreparation
from kumulus.provider.resources.state_only import DestroyCheck, Lifetime, StackIdentityResource
from kumulus.provider.settings import PluginSettings
from kumulus.runtimes import registry
from kumulus.runtimes.base import Runtime
from kumulus.runtimes.existing.kwok import FIND_KWOK, find_kwok
from kumulus.runtimes.kwok.etcd_space import relieve_cluster
from kumulus.runtimes.kwok.priority import CpuYield
from kumulus.runtimes.kwok.storage import Storages


async def _ready(_: dict[str, Any]) -> dict[str, Any]:
    """Return nothing: a program invokes it so that the engine starts the plugin."""
    return {}


FUNCTIONS = {FIND_KWOK: find_kwok, FIND_CHARTS: find_charts, "kumulus:index:ready": _ready}
"""The functions that a program can invoke, by token."""


# Those that need nothing but connections.
_PLAIN: tuple[type[InClusterResource], ...] = (
    NamespaceResource,
    KubernetesObjectResource,
    Definitions,
    ReleasePreparation,
    ChartCrds,
    ReleaseMark,
    *extras.brought("resources"),
)
CLASSES: tuple[type[Resource], ...] = (
    StackIdentityResource,
    ClusterResource,
    NodePool,
    Lifetime,
    DestroyCheck,
    FaultResource,
    *_PLAIN,
)
"""Every resource, those of the extras included."""


def resources(settings: PluginSettings | None = None) -> dict[str, Resource]:
    """Make the resources, sharing one set of API connections."""
    settings = settings or PluginSettings()
    connections, cpu = Connections(settings.place), CpuYield()
    runtimes: dict[str, Runtime] = {each.name: each.make() for each in registry.every()}
    served: list[Resource] = [
        StackIdentityResource(),
        ClusterResource(runtimes, connections, settings),
        NodePool(connections, cpu.yielding, Storages().of, relieve_cluster, settings.hourly),
        Lifetime(),
        DestroyCheck(runtimes, settings),
        FaultResource(connections, cpu.yielding),
        *(each(connections) for each in _PLAIN),
    ]
    return {resource.token: resource for resource in served}
