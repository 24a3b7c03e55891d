"""What is allocated of the nodes, updated as pods come and go: in all, by product and zone, and how scattered it is."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kumulus.extras.lab.measure.over_time import CostMeter, GpuHours
from kumulus.extras.lab.measure.views import NodeView
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.watch.live.amounts import NOTHING, Amounts

_RESOURCES = ("gpus", "cpu", "memory")
Cell = tuple[str, str]
"""A GPU product and a zone."""


@dataclass
class GpuShare:
    """GPUs of one product in one zone."""

    capacity: int = 0
    milli: int = 0
    """How many thousandths of one are allocated."""
    free: int = 0
    """How many thousandths no pod has. A fault may take GPUs from a node whose pods keep what they were given; what
    such a node lacks is not subtracted from what others have free."""

    @property
    def allocated(self) -> float:
        """How many are allocated, parts included."""
        return self.milli / WHOLE_GPU


@dataclass
class ClusterPart:
    """What a cluster has, one of several that are measured together or all of them."""

    nodes: int = 0
    capacity: Amounts = NOTHING
    most: Amounts = NOTHING
    """The most that they had at one time, of each."""
    allocated: Amounts = NOTHING
    """What pods have of it, without parts of GPUs."""
    milli: int = 0
    """Thousandths of a GPU that pods have of it, whole GPUs and parts."""
    peak: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_RESOURCES, 0.0))
    """The greatest share of `gpus`, `cpu` and `memory` at one time."""

    def begin(self) -> None:
        """Start the peaks from now on."""
        self.most = self.capacity
        self.peak = {of: self.share(of) for of in _RESOURCES}

    def note(self) -> None:
        """Raise the peaks to what is allocated now, after every change."""
        self.most = self.most.most(self.capacity)
        for of, before in self.peak.items():
            self.peak[of] = max(before, self.share(of))

    def share(self, of: str = "gpus") -> float:
        """The share that is allocated of `gpus`, `cpu` or `memory`; 0 where there are none."""
        there: int = getattr(self.capacity, of)
        taken: float = self.milli / WHOLE_GPU if of == "gpus" else getattr(self.allocated, of)
        return taken / there if there else 0.0

    def account(self, has: Amounts, used: Amounts, milli: int, sign: int) -> None:
        """Add a node with its pods to the sums, or subtract it."""
        self.nodes += sign
        self.capacity = _add(self.capacity, has, sign)
        self.allocated = _add(self.allocated, used, sign)
        self.milli += sign * milli


class Allocation(ClusterPart):
    """The nodes of a cluster, or of all that are measured together, and what pods have of them.

    Args:
        meter: takes every change, and adds up what the nodes cost.
        hours: likewise, for GPU-hours.

    Attributes:
        nodes_peak, nodes_came, nodes_gone: the most nodes at one time, and how many came and went.
        fragmentation_peak: the greatest fragmentation at one time.
        gpus_begun: how many GPUs there were at the start.
        kinds: how many nodes there are of each kind, as :class:`NodeView` has it.
        every: the last known state of each node, by its name; also of those that are gone.
        parts: what each of several clusters has, by its name; empty if there is only one.
    """

    def __init__(self, meter: CostMeter | None = None, hours: GpuHours | None = None) -> None:
        super().__init__()
        self.meter = meter or CostMeter()
        self.hours = hours or GpuHours()
        self.cells: dict[Cell, GpuShare] = {}
        self._nodes: dict[str, NodeView] = {}
        self.every: dict[str, NodeView] = {}
        self._used: dict[str, Amounts] = {}
        self._shares: Counter[str] = Counter()
        self._free = self._scattered = 0
        self.nodes_peak = 0
        self.fragmentation_peak = 0.0
        self.gpus_begun = 0
        self.kinds: Counter[str] = Counter()
        self.nodes_came = self.nodes_gone = 0
        self._counting = True
        self.parts: dict[str, ClusterPart] = {}

    @property
    def gpus(self) -> float:
        """How many GPUs pods have, parts included."""
        return self.milli / WHOLE_GPU

    @property
    def free_gpus(self) -> float:
        """GPUs that no pod has."""
        return self._free / WHOLE_GPU

    @property
    def fragmentation(self) -> float:
        """Of the free GPUs, the share on nodes partly in use: a pod that wants a whole node cannot have them."""
        return self._scattered / self._free if self._free else 0.0

    def put_node(self, node: NodeView) -> None:
        """Add or update a node."""
        if not self._counting:
            return
        if node.name in self._nodes:
            self._account(node.name, -1)
            self.kinds[self._nodes[node.name].kind] -= 1
        else:
            self.nodes_came += 1
        self.kinds[node.kind] += 1
        self._nodes[node.name] = self.every[node.name] = node
        self.nodes_peak = max(self.nodes_peak, len(self._nodes))
        self._account(node.name, +1)
        self._note(node.cluster)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods are reported separately."""
        if name in self._nodes and self._counting:
            self._account(name, -1)
            node = self._nodes.pop(name)
            self.kinds[node.kind] -= 1
            self.nodes_gone += 1
            self.meter.take(name)
            self.hours.take(name)
            self._note(node.cluster)

    def begin(self) -> None:
        """Start the sums over time and the peaks from now on."""
        self.nodes_peak = len(self._nodes)
        self.nodes_came = self.nodes_gone = 0
        self.fragmentation_peak, self.gpus_begun = self.fragmentation, self.capacity.gpus
        super().begin()
        for each in self.parts.values():
            each.begin()
        self.meter.begin()
        self.hours.begin()

    def end(self) -> None:
        """End the sums over time now; all stays as it is, whatever the clean-up then puts back or removes."""
        self._counting = False
        self.meter.end()
        self.hours.end()

    def bind(self, node: str, wants: Amounts, share: int = 0) -> None:
        """Add a pod to its node.

        Args:
            share: milli-GPU that it also requests of one GPU.
        """
        self._change(node, wants, share, +1)

    def release(self, node: str, wants: Amounts, share: int = 0) -> None:
        """Remove a pod from its node; the arguments are those of :meth:`bind`."""
        self._change(node, wants, share, -1)

    def by_cell(self) -> Mapping[Cell, GpuShare]:
        """GPUs by product and zone, where there are any."""
        return {cell: share for cell, share in sorted(self.cells.items()) if share.capacity}

    def gpus_by_product(self) -> Mapping[str, float]:
        """How many GPUs each product has free."""
        free: Counter[str] = Counter()
        for (product, _), share in self.cells.items():
            free[product] += share.free
        return {product: milli / WHOLE_GPU for product, milli in free.items()}

    def _change(self, node: str, wants: Amounts, share: int, sign: int) -> None:
        if not self._counting:
            return
        known = node in self._nodes
        if known:
            self._account(node, -1)
        self._used[node] = _add(self._used.get(node, NOTHING), wants, sign)
        self._shares[node] += sign * share
        if known:
            self._account(node, +1)
            self._note(self._nodes[node].cluster)

    def _note(self, cluster: str) -> None:
        """Raise the peaks, of all nodes and of one cluster's, after a change is complete."""
        self.note()
        if cluster:
            self.parts[cluster].note()
        self.fragmentation_peak = max(self.fragmentation_peak, self.fragmentation)

    def _account(self, name: str, sign: int) -> None:
        node, used, share = self._nodes[name], self._used.get(name, NOTHING), self._shares[name]
        milli = used.gpus * WHOLE_GPU + share
        free = max(0, node.has.gpus * WHOLE_GPU - milli)
        self.account(node.has, used, milli, sign)
        if node.cluster:
            self.parts.setdefault(node.cluster, ClusterPart()).account(node.has, used, milli, sign)
        cell = self.cells.setdefault((node.product, node.zone), GpuShare())
        cell.capacity += sign * node.has.gpus
        cell.milli += sign * milli
        cell.free += sign * free
        self._free += sign * free
        if milli > 0:
            self._scattered += sign * free
        if sign > 0:
            self.meter.put(name, node.hourly, node.has, used, share)
            self.hours.put(name, node.product, node.has, used, share)


def _add(total: Amounts, more: Amounts, sign: int) -> Amounts:
    return total.plus(more) if sign > 0 else total.minus(more)
