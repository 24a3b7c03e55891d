"""The components, where users of Pulumi look for them; their code is in src/kumulus/components."""

from kumulus import (
    DeviceClass,
    EmulatedCluster,
    ExistingCluster,
    Fault,
    HelmAddon,
    KindCluster,
    KwokCharts,
    KwokCluster,
    KwokNodeGroup,
    PrometheusStack,
    Tenant,
)

__all__ = [
    "DeviceClass",
    "EmulatedCluster",
    "ExistingCluster",
    "Fault",
    "HelmAddon",
    "KindCluster",
    "KwokCharts",
    "KwokCluster",
    "KwokNodeGroup",
    "PrometheusStack",
    "Tenant",
]
