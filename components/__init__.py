"""Pulumi components that declare an emulated cluster; usable from any Pulumi program in Python.

They meet the provider plugin at Pulumi type tokens only and import nothing of it.
"""

from components.emulated_cluster import EmulatedCluster
from components.helm_addon import HelmAddon
from components.kwok_cluster import KwokCluster
from components.kwok_node_group import KwokNodeGroup

__all__ = ["EmulatedCluster", "HelmAddon", "KwokCluster", "KwokNodeGroup"]
