"""What of the nodes is allocated, kept up as pods come and go: in all, by product and zone, and how it is scattered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lab.cluster.resources import Amount
from lab.measure.views import NodeView

Cell = tuple[str, str]
"""A GPU product and a zone."""


@dataclass
class Share:
    """GPUs of one product in one zone.

    Args:
        capacity: how many there are.
        allocated: how many are allocated.
    """

    capacity: float = 0.0
    allocated: float = 0.0


class Allocation:
    """The nodes of a cluster and what pods have of them."""

    def __init__(self) -> None:
        self.capacity = Amount()
        self.allocated = Amount()
        self.cells: dict[Cell, Share] = {}
        self._nodes: dict[str, NodeView] = {}
        self._used: dict[str, Amount] = {}
        self._scattered = 0.0

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    @property
    def free_gpus(self) -> float:
        """GPUs that no pod has."""
        return self.capacity.gpus - self.allocated.gpus

    @property
    def fragmentation(self) -> float:
        """Of the free GPUs, the share on nodes partly in use: a pod that wants a whole node cannot have them."""
        return self._scattered / self.free_gpus if self.free_gpus > 0 else 0.0

    def share(self, of: str = "gpus") -> float:
        """The share that is allocated of `gpus`, `cpus` or `memory`; 0 where there are none."""
        there: float = getattr(self.capacity, of)
        return getattr(self.allocated, of) / there if there else 0.0

    def put_node(self, node: NodeView) -> None:
        """A node is there, or has changed."""
        if self._nodes.get(node.key, None) is not None:
            self._account(node.key, -1)
        self._nodes[node.key] = node
        self._account(node.key, +1)

    def remove_node(self, name: str) -> None:
        """A node is gone; its pods are told of by themselves."""
        if name in self._nodes:
            self._account(name, -1)
            del self._nodes[name]

    def bind(self, node: str, wants: Amount) -> None:
        """A pod has a node."""
        self._change(node, wants, +1)

    def release(self, node: str, wants: Amount) -> None:
        """A pod has given its node back."""
        self._change(node, wants, -1)

    def by_cell(self) -> Mapping[Cell, Share]:
        """GPUs by product and zone, of those that have any."""
        return {cell: share for cell, share in sorted(self.cells.items()) if share.capacity}

    def gpus_by_product(self) -> Counter[str]:
        """How many GPUs each product has free."""
        free: Counter[str] = Counter()
        for (product, _), share in self.cells.items():
            free[product] += round(share.capacity - share.allocated)
        return free

    def _change(self, node: str, wants: Amount, sign: int) -> None:
        known = node in self._nodes
        if known:
            self._account(node, -1)
        self._used[node] = self._used.get(node, Amount()).plus(wants, sign)
        if known:
            self._account(node, +1)

    def _account(self, name: str, sign: int) -> None:
        """Add a node with its pods to the sums, or take it out of them."""
        node, used = self._nodes[name], self._used.get(name, Amount())
        self.capacity = self.capacity.plus(node.has, sign)
        self.allocated = self.allocated.plus(used, sign)
        cell = self.cells.setdefault((node.product, node.zone), Share())
        cell.capacity += sign * node.has.gpus
        cell.allocated += sign * used.gpus
        free = node.has.gpus - used.gpus
        if used.gpus > 0 and free > 0:
            self._scattered += sign * free
