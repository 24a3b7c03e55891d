"""What KWOK does to a node that Karpenter has made: it says of itself what the nodes of node groups are posted with."""

from __future__ import annotations

from kumulus.autoscalers.descriptor import Asked, Manifest
from kumulus.autoscalers.karpenter.objects import NODEPOOL_LABEL
from kumulus.kwok.base_stages import node_initialize, node_reclaimed


def stages(asked: Asked) -> list[Manifest]:
    """One stage for each processor's architecture among the machines, and one that ends those that are taken back."""
    found = {machine["nodeInfo"]["architecture"]: machine["nodeInfo"] for machine in asked["machines"]}
    made = [
        node_initialize(f"node-initialize-karpenter-{name}", {"kubernetes.io/arch": name}, NODEPOOL_LABEL, info)
        for name, info in sorted(found.items())
    ]
    return [*made, node_reclaimed("node-reclaimed-karpenter", NODEPOOL_LABEL)]
