"""What changes on the nodes that faults come to or leave: computed once for all nodes that change in the same way."""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kumulus.model.active_faults import ActiveFault, faults_of
from kumulus.model.fault_effects import Condition
from kumulus.model.node_changes import delta
from kumulus.model.node_sets import NodeSet
from kumulus.model.nodes import CONDITIONS, OwnedFields, boot_id, owned_fields
from kumulus.model.pools import CLUSTER_LABEL, Pool

_UNKNOWN = Condition("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")


@dataclass(frozen=True)
class Both:
    """One pool: without faults, as its nodes may be before, and after."""

    bare: Pool
    befores: tuple[Pool, ...]
    after: Pool

    @cached_property
    def cluster(self) -> str:
        """The cluster's name."""
        return self.bare.labels.get(CLUSTER_LABEL, "")

    def faults(self, ordinal: int) -> list[tuple[ActiveFault, ...]]:
        """The faults on a node: those that it may show before, and at last those after."""
        return [pool.faults.of(ordinal) if pool.faults else () for pool in (*self.befores, self.after)]


@dataclass(frozen=True)
class NodeStep:
    """One node, before and after."""

    pools: Both
    ordinal: int

    @property
    def name(self) -> str:
        """The node's name."""
        return self.pools.bare.node_name(self.ordinal)

    @property
    def becomes(self) -> str:
        """The state of its kubelet afterwards, one of :data:`kumulus.model.fault_effects.KUBELETS`."""
        return self._kubelet(self.pools.after)

    def may_be(self, kubelet: str) -> bool:
        """Whether its kubelet may be in a state before."""
        return any(self._kubelet(pool) == kubelet for pool in self.pools.befores)

    def _kubelet(self, pool: Pool) -> str:
        return pool.faults.kubelet(self.ordinal) if pool.faults else ""

    def owned(self) -> tuple[list[OwnedFields], OwnedFields]:
        """What we own on it: as it may be before, and after."""
        befores = [self._shown(pool) for pool in self.pools.befores]
        return befores, owned_fields(self.pools.after, self.ordinal, self.pools.cluster)

    def _shown(self, pool: Pool) -> OwnedFields:
        found = owned_fields(pool, self.ordinal, self.pools.cluster)
        if self._kubelet(pool) == "silent":
            # The node lifecycle controller has taken over its conditions, and waits for the kubelet to report again.
            return replace(found, conditions={**found.conditions, **dict.fromkeys(CONDITIONS, _UNKNOWN)})
        return found

    def alike(self) -> Hashable:
        """A key, equal for nodes that change in the same way; None for a node with its own change, as in a reboot."""
        states = self.pools.faults(self.ordinal)
        faults = [fault for state in states for fault in state]
        if any(fault.effects.kubelet == "reboot" for fault in faults):
            return None
        ours = owned_fields(self.pools.bare, self.ordinal, self.pools.cluster)
        # All nodes of a pool have the same field names. Their values differ, which matters only where a fault overrides
        # one: when it ends, the node's own value is restored.
        places = {key for fault in faults for key in (*fault.effects.labels, *fault.effects.annotations)}
        return (
            self.pools.bare.name,
            tuple(tuple(fault.name for fault in state) for state in states),
            tuple(ours.labels),
            tuple(ours.annotations),
            tuple((ours.labels.get(key), ours.annotations.get(key)) for key in sorted(places)),
        )


@dataclass(frozen=True)
class NodePatch:
    """What to request from the API server for a node.

    Attributes:
        status: a strategic merge patch for its status, encoded; None when nothing changes there.
        taints: whether its taints change too.
        had, wanted: what we own on one of the nodes that change this way: as it may be before, and after.
    """

    status: bytes | None
    taints: bool
    had: Sequence[OwnedFields]
    wanted: OwnedFields


class NodePatches:
    """The changes of nodes, each computed and encoded once for all nodes that change in the same way.

    Args:
        now: the time for changed conditions, RFC 3339 in UTC.
    """

    def __init__(self, now: str) -> None:
        self._now = now
        self._known: dict[Hashable, NodePatch] = {}

    def of(self, each: NodeStep) -> NodePatch:
        """The change of a node."""
        key = each.alike()
        if key is None:
            return self._made(each)
        if key not in self._known:
            self._known[key] = self._made(each)
        return self._known[key]

    def _made(self, each: NodeStep) -> NodePatch:
        had, wanted = each.owned()
        found = delta(had, wanted, boot_id(each.name, each.pools.cluster), self._now)
        status = json.dumps(found.status, separators=(",", ":")).encode() if found.status is not None else None
        return NodePatch(status, found.taints, had, wanted)


def steps_of(
    pools: Mapping[str, Pool], nodes: NodeSet, befores: Sequence[list[ActiveFault]], after: list[ActiveFault]
) -> list[NodeStep]:
    """The nodes that turn from some faults to others.

    Args:
        pools: as recorded, by name; nodes of other pools and ordinals that a pool does not have are skipped.
        befores: the faults that they show; several lists if a node may show those of any of them.
        after: the faults that they should show.
    """
    found = []
    for name, members in sorted(nodes.items()):
        if pool := pools.get(name):
            bare, *states, last = (
                replace(pool, faults=faults)
                for faults in (None, *(faults_of(name, each) for each in befores), faults_of(name, after))
            )
            both = Both(bare, tuple(states), last)
            found += [NodeStep(both, ordinal) for ordinal in sorted(members) if ordinal < pool.replicas]
    return found
