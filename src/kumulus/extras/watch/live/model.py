"""Nodes, pods and their sums, kept up to date event by event; an event's cost does not depend on the fleet's size."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from kumulus.extras.watch.live.amounts import NOTHING, Amounts
from kumulus.extras.watch.live.devices import Claim, LiveDevices, PublishedSlice
from kumulus.extras.watch.live.node import ClusterNode, State
from kumulus.extras.watch.live.pod import ClusterPod

KEPT = 60
"""Seconds that a rate remembers."""
_WINDOW = 10
_SLACK = 5


@dataclass
class Group:
    """The sum of some nodes, and of what pods take of it."""

    nodes: int = 0
    states: Counter[State] = field(default_factory=Counter)
    allocatable: Amounts = NOTHING
    """What pods can have."""
    taken: Amounts = NOTHING
    """What the pods bound to them take."""
    priced: int = 0
    """How many have a known price."""
    hourly: float = 0.0
    """What these cost, in US dollars per hour."""

    def _count(self, node: ClusterNode, taken: Amounts, sign: int) -> None:
        self.nodes += sign
        self.states[node.state] += sign
        if node.hourly is not None:
            self.priced += sign
            self.hourly += sign * node.hourly
        add = Amounts.plus if sign > 0 else Amounts.minus
        self.allocatable = add(self.allocatable, node.allocatable)
        self.taken = add(self.taken, taken)


class Witness(Protocol):
    """An observer of every visible change."""

    def node(self, name: str, node: ClusterNode | None) -> None:
        """Take a node's new state; None if it is gone."""

    def pod(self, key: str, pod: ClusterPod | None) -> None:
        """Take a pod's new state; None if it is gone."""


class Fleet:
    """The nodes, pods and GPUs of a cluster.

    Attributes:
        nodes: by name; a node's GPUs include those that it publishes for claims.
        pods: by ``namespace/name``.
        total: the sum of all nodes.
        by_product, by_zone: sums by GPU product and by zone; "" for nodes without one.
        phases: pods by phase.
        waiting: pods that wait for a scheduler.
        reasons: for each reason, how many pods wait because of it; a pod can have several.
        bindings: pods bound by a scheduler.
        witness: notified of each change; none at first.
        touched: names of the nodes that changed since this set was last emptied.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, ClusterNode] = {}
        self.pods: dict[str, ClusterPod] = {}
        self.total = Group()
        self.by_product: dict[str, Group] = {}
        self.by_zone: dict[str, Group] = {}
        self.phases: Counter[str] = Counter()
        self.waiting = 0
        self.reasons: Counter[str] = Counter()
        self.bindings = Rate()
        self.touched: set[str] = set()
        self.witness: Witness | None = None
        self._plain: dict[str, ClusterNode] = {}
        self._devices = LiveDevices()
        self._claimed: Counter[str] = Counter()
        self._taken: dict[str, Amounts] = {}
        self._on: dict[str, set[str]] = {}

    def taken(self, node: str) -> Amounts:
        """What a node's pods take of it, and the GPUs that claims have there."""
        return self._taken.get(node, NOTHING)

    def on(self, node: str) -> list[ClusterPod]:
        """The pods bound to a node, the ended ones included, by name."""
        return [self.pods[key] for key in sorted(self._on.get(node, ()))]

    def clear(self) -> None:
        """Remove everything."""
        slices, claims = self._devices.keys()
        for set_one, keys in (
            (self.set_claim, claims),
            (self.set_slice, slices),
            (self.set_pod, list(self.pods)),
            (self.set_node, list(self.nodes)),
        ):
            for key in keys:
                set_one(key, None)

    def set_node(self, name: str, node: ClusterNode | None) -> None:
        """Set a node's current state; None if it is gone."""
        if self._plain.get(name) == node:
            # A heartbeat, or another change that no view shows.
            return
        if node is None:
            del self._plain[name]
        else:
            self._plain[name] = node
        self._put(name, node and self._with_devices(node))

    def _put(self, name: str, node: ClusterNode | None) -> None:
        old = self.nodes.get(name)
        if old == node:
            return
        taken = self.taken(name)
        if old is not None:
            self._count_node(old, taken, -1)
        if node is None:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = node
            self._count_node(node, taken, 1)
        self.touched.add(name)
        if self.witness is not None:
            self.witness.node(name, node)

    def _with_devices(self, node: ClusterNode) -> ClusterNode:
        """A node with the GPUs that it publishes, if they are more than it offers as a resource."""
        there = self._devices.published(node.name)
        if there <= node.allocatable.gpus:
            return node
        has = max(node.capacity.gpus, there)
        return replace(
            node,
            product=node.product or node.group,
            allocatable=node.allocatable._replace(gpus=there),
            capacity=node.capacity._replace(gpus=has),
        )

    def set_slice(self, name: str, published: PublishedSlice | None) -> None:
        """Set a ResourceSlice's current state; None if it is gone."""
        self._renew(self._devices.set_slice(name, published))

    def set_claim(self, key: str, claim: Claim | None) -> None:
        """Set a ResourceClaim's current state; None if it is gone."""
        self._renew(self._devices.set_claim(key, claim))

    def _renew(self, nodes: set[str]) -> None:
        for name in nodes:
            if more := self._devices.claimed(name) - self._claimed[name]:
                self._claimed[name] += more
                self._take(name, Amounts(gpus=abs(more)), 1 if more > 0 else -1)
                self.touched.add(name)
            if name in self._plain:
                self._put(name, self._with_devices(self._plain[name]))

    def set_pod(self, key: str, pod: ClusterPod | None, at: float | None = None) -> None:
        """Set a pod's current state; None if it is gone.

        Args:
            key: ``namespace/name``.
            at: when the event arrived, on the monotonic clock in seconds; None for one from a list, which may be late.
        """
        old = self.pods.get(key)
        if old == pod:
            return
        if old is not None:
            self._count_pod(key, old, -1)
        if pod is None:
            self.pods.pop(key, None)
        else:
            self.pods[key] = pod
            self._count_pod(key, pod, 1)
            if pod.node and not (old and old.node):
                self._note_binding(pod, at)
        if self.witness is not None:
            self.witness.pod(key, pod)

    def _note_binding(self, pod: ClusterPod, at: float | None) -> None:
        if at is None:
            # The pod's own time has a resolution of one second, so an event's time is better where there is one.
            ago = time.time() - pod.bound
            at = time.monotonic() - ago if pod.bound and 0 <= ago < KEPT else None
        if at is not None:
            self.bindings.note(at)

    def _groups(self, node: ClusterNode) -> tuple[Group, Group, Group]:
        by_product = self.by_product.setdefault(node.product, Group())
        return self.total, by_product, self.by_zone.setdefault(node.zone, Group())

    def _count_node(self, node: ClusterNode, taken: Amounts, sign: int) -> None:
        for group in self._groups(node):
            group._count(node, taken, sign)
        for groups, key in ((self.by_product, node.product), (self.by_zone, node.zone)):
            if not groups[key].nodes:
                del groups[key]

    def _count_pod(self, key: str, pod: ClusterPod, sign: int) -> None:
        self.phases[pod.phase] += sign
        if pod.waits:
            self.waiting += sign
            _count(self.reasons, pod.reasons, sign)
        if not pod.node:
            return
        there = self._on.setdefault(pod.node, set())
        (there.add if sign > 0 else there.discard)(key)
        if not there:
            del self._on[pod.node]
        if pod.holds:
            self._take(pod.node, pod.requests, sign)
        self.touched.add(pod.node)

    def _take(self, name: str, amounts: Amounts, sign: int) -> None:
        add = Amounts.plus if sign > 0 else Amounts.minus
        taken = add(self.taken(name), amounts)
        if taken == NOTHING:
            self._taken.pop(name, None)
        else:
            self._taken[name] = taken
        if node := self.nodes.get(name):
            for group in self._groups(node):
                group.taken = add(group.taken, amounts)


def _count(counter: Counter[str], keys: tuple[str, ...], sign: int) -> None:
    for key in keys:
        counter[key] += sign
        if not counter[key]:
            del counter[key]


def sorted_groups(groups: Mapping[str, Group]) -> list[tuple[str, Group]]:
    """Groups by name, those without a name last."""
    return sorted(groups.items(), key=lambda item: (not item[0], item[0]))


# How often something happens, second by second.


class Rate:
    """Counts events by second, for the last minute.

    Attributes:
        total: how often it has happened since the counting began.
    """

    def __init__(self) -> None:
        self.total = 0
        self._counts: Counter[int] = Counter()

    def note(self, at: float) -> None:
        """Count an event at a time on the monotonic clock."""
        second = int(at)
        self.total += 1
        if second not in self._counts:
            for old in [known for known in self._counts if known <= second - KEPT - _SLACK]:
                del self._counts[old]
        self._counts[second] += 1

    def per_second(self, now: float | None = None) -> float:
        """The mean of the last ten whole seconds."""
        return sum(self.history(now)[-_WINDOW:]) / _WINDOW

    def history(self, now: float | None = None) -> list[int]:
        """How often in each of the last sixty whole seconds, the latest last."""
        current = int(time.monotonic() if now is None else now)
        return [self._counts[second] for second in range(current - KEPT, current)]
