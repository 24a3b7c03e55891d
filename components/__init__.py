"""Pulumi components that declare an emulated cluster; usable from any Pulumi program in Python.

They meet the provider plugin at Pulumi type tokens only and import nothing of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from components.device_class import DeviceClass
    from components.emulated_cluster import EmulatedCluster
    from components.helm_addon import HelmAddon
    from components.kind_cluster import KindCluster
    from components.kwok_cluster import KwokCluster
    from components.kwok_node_group import KwokNodeGroup
    from components.prometheus_stack import PrometheusStack
    from components.tenant import Tenant

__all__ = [
    "DeviceClass",
    "EmulatedCluster",
    "HelmAddon",
    "KindCluster",
    "KwokCluster",
    "KwokNodeGroup",
    "PrometheusStack",
    "Tenant",
]

# Imported when asked for: a program pays for what it uses only, and has the plugin started before anything of it.
_WHEN_ASKED_FOR = {
    "DeviceClass": "components.device_class",
    "EmulatedCluster": "components.emulated_cluster",
    "HelmAddon": "components.helm_addon",
    "KindCluster": "components.kind_cluster",
    "KwokCluster": "components.kwok_cluster",
    "KwokNodeGroup": "components.kwok_node_group",
    "PrometheusStack": "components.prometheus_stack",
    "Tenant": "components.tenant",
}


def __getattr__(name: str) -> object:
    if name in _WHEN_ASKED_FOR:
        return getattr(import_module(_WHEN_ASKED_FOR[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
