"""KWOK's stages for nodes that Karpenter has created: they set the node info that node groups' nodes have."""

from __future__ import annotations

from kumulus.extras.scaling.descriptor import Asked, Manifest
from kumulus.extras.scaling.karpenter.objects import NODEPOOL_LABEL
from kumulus.kwok.base_stages import node_initialize, node_reclaimed


def stages(asked: Asked) -> list[Manifest]:
    """One stage for each CPU architecture of the machines, and one that ends machines that are reclaimed."""
    found = {machine["nodeInfo"]["architecture"]: machine["nodeInfo"] for machine in asked["machines"]}
    made = [
        node_initialize(f"node-initialize-karpenter-{name}", {"kubernetes.io/arch": name}, NODEPOOL_LABEL, info)
        for name, info in sorted(found.items())
    ]
    return [*made, node_reclaimed("node-reclaimed-karpenter", NODEPOOL_LABEL)]
