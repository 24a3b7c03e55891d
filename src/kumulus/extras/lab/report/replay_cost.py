"""What pods cost, then and now: their share of a node's price for as long as they had it. Pure functions.

A pod's share of its node is what it asks for: of the GPUs, or, without any, the larger of its CPU and memory shares.
`cost.wasted` counts what nobody has by the same rule. Recorded nodes are priced as the clone's of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping

from kumulus.extras.lab.measure.cost import idle_share
from kumulus.extras.lab.measure.views import NodeView
from kumulus.extras.watch.live.amounts import Amounts

_HOUR = 3600.0


class Costs:
    """Adds up what pods cost, by queue.

    Args:
        nodes: by name, as the cluster has or had them.

    Attributes:
        unknown: how many pods were on nodes whose price is not known, by queue.
    """

    def __init__(self, nodes: Mapping[str, NodeView]) -> None:
        self._nodes = nodes
        self._spent: dict[str, float] = {}
        self.unknown: dict[str, int] = {}

    def add(self, queue: str, node: str, wants: Amounts, seconds: float) -> None:
        """Add what a pod cost on its node.

        Args:
            queue: of the pod; everything is added to "" too.
            node: its name; empty where it is not known.
            wants: what the pod asked for.
            seconds: how long it had the node.
        """
        view = self._nodes.get(node)
        for each in {queue, ""}:
            if view is None or view.hourly is None:
                self.unknown[each] = self.unknown.get(each, 0) + 1
            else:
                spent = (1.0 - idle_share(view.has, wants)) * view.hourly * max(0.0, seconds) / _HOUR
                self._spent[each] = self._spent.get(each, 0.0) + spent

    def of(self, queue: str) -> float | None:
        """The cost in US dollars; None if that of any pod is not known."""
        return None if self.unknown.get(queue) else round(self._spent.get(queue, 0.0), 6)


def priced(nodes: Mapping[str, NodeView]) -> bool:
    """Whether any node has a price."""
    return any(each.hourly is not None for each in nodes.values())
