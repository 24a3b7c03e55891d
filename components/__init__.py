"""Pulumi components that declare an emulated cluster; usable from any Pulumi program in Python.

They meet the provider plugin at Pulumi type tokens only and import nothing of it.
"""

from typing import TYPE_CHECKING

from components.emulated_cluster import EmulatedCluster
from components.kind_cluster import KindCluster
from components.kwok_cluster import KwokCluster
from components.kwok_node_group import KwokNodeGroup

if TYPE_CHECKING:
    from components.device_class import DeviceClass
    from components.helm_addon import HelmAddon
    from components.prometheus_stack import PrometheusStack

__all__ = [
    "DeviceClass",
    "EmulatedCluster",
    "HelmAddon",
    "KindCluster",
    "KwokCluster",
    "KwokNodeGroup",
    "PrometheusStack",
]


def __getattr__(name: str) -> object:
    # Imported when asked for: every command would pay for the Kubernetes SDK, and most stacks have no use for it.
    if name == "HelmAddon":
        from components.helm_addon import HelmAddon

        return HelmAddon
    if name == "DeviceClass":
        from components.device_class import DeviceClass

        return DeviceClass
    if name == "PrometheusStack":
        from components.prometheus_stack import PrometheusStack

        return PrometheusStack
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
