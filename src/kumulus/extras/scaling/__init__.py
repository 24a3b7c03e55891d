"""Autoscalers of nodes, as local processes: how each is started, and what it needs in the cluster."""

from typing import Literal, get_args

Name = Literal["karpenter", "cluster-autoscaler"]
NAMES: tuple[str, ...] = get_args(Name)
"""The autoscalers, each a folder of this package."""
BUILT: tuple[str, ...] = ("karpenter",)
"""Those whose program is among our tools, and that can run in a cluster; the others' program is the user's own."""
OURS = frozenset(("address", "cloud-config", "cloud-provider", "kubeconfig", "kubernetes", "leader-elect", "namespace"))
"""Options of cluster-autoscaler that Kumulus sets itself, so that its processes find each other and the cluster."""
