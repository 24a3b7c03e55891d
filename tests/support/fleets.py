"""Nodes and pods for a fleet that a test fills itself."""

from typing import Any

from kumulus.extras.watch.live.amounts import Amounts
from kumulus.extras.watch.live.model import Fleet
from kumulus.extras.watch.live.node import ClusterNode
from kumulus.extras.watch.live.pod import ClusterPod

GI = 2**30
WHOLE = Amounts(96_000, 1360 * GI, 8, 110)


def node(name: str, zone: str = "use1", group: str = "h100", **more: Any) -> ClusterNode:
    """A healthy node with 8 GPUs."""
    fields: dict[str, Any] = {
        "pool": f"{group}-{zone}",
        "rack": "",
        "block": "",
        "product": "NVIDIA-H100-80GB-HBM3",
        "allocatable": WHOLE,
        "capacity": WHOLE,
        "ready": "True",
        "cordoned": False,
        "conditions": (),
        "taints": (),
        "faults": (),
    }
    return ClusterNode(name=name, zone=zone, group=group, **{**fields, **more})


def pod(name: str, on: str, gpus: int = 1, phase: str = "Running") -> ClusterPod:
    """A pod that is bound."""
    return ClusterPod("default", name, "Job/train", on, phase, Amounts(4000, 64 * GI, gpus, 1), (), 0, 0, False)


def large(fleet: Fleet, nodes: int) -> None:
    """A fleet of three products in three zones, in racks of 16, partly used, with some unhealthy nodes."""
    products = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200")
    groups = ("a100", "h100", "h200")
    for index in range(nodes):
        kind, zone, ordinal = index % 3, f"use{index // 3 % 3 + 1}", index // 9
        name = f"{groups[kind]}-{zone}-{ordinal}"
        ill: dict[str, Any] = {}
        if index % 97 == 0:
            ill = {"faults": ("xid79",), "allocatable": WHOLE._replace(gpus=7)}
        elif index % 211 == 0:
            ill = {"ready": "Unknown"}
        elif index % 307 == 0:
            ill = {"cordoned": True}
        place = {"product": products[kind], "rack": f"{groups[kind]}-{zone}-r{ordinal // 16}"}
        fleet.set_node(name, node(name, zone, groups[kind], **place, **ill))
        taken = (ordinal * 7 + kind * 5) % 19
        if taken < 13:
            fleet.set_pod(f"default/train-{index}", pod(f"train-{index}", name, min(8, max(1, taken))))
