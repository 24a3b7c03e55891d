"""A cluster that pods arrive in, one after the other, and its measures by how much demand has arrived."""

from __future__ import annotations

from kumulus.lab.offline.arrived import ByArrival, Curves
from kumulus.lab.offline.fleet import Placement, place
from kumulus.lab.policies import Nodes, Pod
from kumulus.lab.policies.fragmentation import Fragmentation
from kumulus.lab.policies.pod import WHOLE_GPU


class Measuring:
    """Takes pods as they arrive, each with its place or without, and notes the measures after each.

    Args:
        nodes: of the cluster, on which nothing runs; what the pods take of them is taken.
        fragmentation: the measure of it.
    """

    def __init__(self, nodes: Nodes, fragmentation: Fragmentation) -> None:
        self._nodes, self._fragmentation = nodes, fragmentation
        self._noted = ByArrival(WHOLE_GPU * int(nodes.gpus.sum()))
        self._by_node = fragmentation(nodes)
        self._fragmented = float(self._by_node.sum())
        self._arrived = self._allocated = 0
        self.pods = self.placed = 0

    def arrive(self, pod: Pod, where: Placement | None) -> None:
        """A pod has arrived, and got a place or did not."""
        self.pods += 1
        self._arrived += pod.total_gpu_milli
        if where is not None:
            self.placed += 1
            self._allocated += pod.total_gpu_milli
            place(self._nodes, pod, where)
            # Only one node is another than before.
            now = float(self._fragmentation(self._nodes.some(slice(where.node, where.node + 1)))[0])
            self._fragmented += now - self._by_node[where.node]
            self._by_node[where.node] = now
        self._noted.note(self._arrived, self._allocated, self._fragmented)

    def curves(self) -> Curves:
        """The measures by whole per cents of demand arrived."""
        return self._noted.curves()
