"""What the page receives: the whole fleet once, and then what changed, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kumulus.extras.watch.live.fleet import Live
from kumulus.extras.watch.live.model import Fleet
from kumulus.extras.watch.live.summary import summary

COLUMNS = (
    "name",
    "zone",
    "group",
    "product",
    "block",
    "rack",
    "state",
    "gpus",
    "gpusTaken",
    "cpu",
    "cpuTaken",
    "memory",
    "memoryTaken",
    "pods",
    "podsTaken",
    "why",
)
"""The fields of a node's row, in this order; CPU in thousandths of a core, memory in bytes."""


def row(fleet: Fleet, name: str) -> list[Any]:
    """A node's row, as :data:`COLUMNS` says."""
    node, taken = fleet.nodes[name], fleet.taken(name)
    has = node.allocatable
    return [
        *(node.name, node.zone, node.group, node.product, node.block, node.rack, node.state),
        *(has.gpus, taken.gpus, has.cpu, taken.cpu, has.memory, taken.memory, has.pods, taken.pods),
        ", ".join((*node.faults, *node.conditions)),
    ]


def whole(live: Live, stack: str) -> dict[str, Any]:
    """Everything that a page needs at its start."""
    return {
        "stack": stack,
        "columns": COLUMNS,
        "nodes": [row(live.fleet, name) for name in live.fleet.nodes],
        **state(live),
    }


def changes(live: Live, names: Iterable[str]) -> dict[str, Any]:
    """What changed about some nodes."""
    nodes = live.fleet.nodes
    found = list(names)
    return {
        "changed": [row(live.fleet, name) for name in found if name in nodes],
        "gone": [name for name in found if name not in nodes],
    }


def state(live: Live) -> dict[str, Any]:
    """The fleet's sums, and whether the connection to it is lost."""
    now = summary(live)
    return {"summary": now.to_plain(), "lost": {"why": now.lost, "seconds": round(now.lost_for)} if now.lost else None}


def detail(fleet: Fleet, name: str) -> dict[str, Any] | None:
    """A node with its pods; None if there is no node of that name."""
    node = fleet.nodes.get(name)
    if node is None:
        return None
    return {
        "row": row(fleet, name),
        "pool": node.pool,
        "ready": node.ready,
        "cordoned": node.cordoned,
        "conditions": node.conditions,
        "taints": node.taints,
        "faults": node.faults,
        "gpusLost": node.capacity.gpus - node.allocatable.gpus,
        "pods": [
            {
                "namespace": pod.namespace,
                "name": pod.name,
                "owner": pod.owner,
                "phase": "Terminating" if pod.ending else pod.phase,
                "gpus": pod.requests.gpus,
                "cpu": pod.requests.cpu,
                "memory": pod.requests.memory,
            }
            for pod in fleet.on(name)
        ],
    }
