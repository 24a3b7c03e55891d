"""What changes on the nodes that faults come to or leave: computed once for all nodes that change in the same way."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from kumulus.model.active_faults import ActiveFault, faults_of, kubelet_under
from kumulus.model.fault_effects import Condition
from kumulus.model.node_changes import NodePatch, node_patch
from kumulus.model.node_sets import NodeSet
from kumulus.model.nodes import CONDITIONS, OwnedFields, boot_id, owned_fields
from kumulus.model.pools import Pool

_UNKNOWN = Condition("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")


@dataclass(frozen=True)
class NodeStep:
    """One node, before and after."""

    bare: Pool
    """Its pool without faults."""
    befores: tuple[Pool, ...]
    """Its pool with the faults that the node may show before: one pool for each possibility."""
    after: Pool
    """Its pool with the faults after."""
    ordinal: int

    @property
    def name(self) -> str:
        """The node's name."""
        return self.bare.node_name(self.ordinal)

    @property
    def becomes(self) -> str:
        """The state of its kubelet afterwards, one of :data:`kumulus.model.fault_effects.KUBELETS`."""
        return self._kubelet(self.after)

    def may_have_been(self, kubelet: str) -> bool:
        """Whether its kubelet may be in this state before."""
        return any(self._kubelet(pool) == kubelet for pool in self.befores)

    def _kubelet(self, pool: Pool) -> str:
        return kubelet_under(pool.faults.get(self.ordinal, ()))

    def owned(self) -> tuple[list[OwnedFields], OwnedFields]:
        """What we own on it: as it may be before, and after."""
        return [self._owned_before(pool) for pool in self.befores], owned_fields(self.after, self.ordinal)

    def _owned_before(self, pool: Pool) -> OwnedFields:
        found = owned_fields(pool, self.ordinal)
        if self._kubelet(pool) == "silent":
            # The node lifecycle controller has taken over its conditions, and waits for the kubelet to report again.
            return replace(found, conditions={**found.conditions, **dict.fromkeys(CONDITIONS, _UNKNOWN)})
        return found

    def alike(self) -> Hashable:
        """A key, equal for nodes that change in the same way; None for a node with its own change, as in a reboot."""
        states = [pool.faults.get(self.ordinal, ()) for pool in (*self.befores, self.after)]
        faults = [fault for state in states for fault in state]
        if any(fault.effects.kubelet == "reboot" for fault in faults):
            return None
        ours = owned_fields(self.bare, self.ordinal)
        # All nodes of a pool have the same field names. Their values differ, which matters only where a fault overrides
        # one: when it ends, the node's own value is restored.
        overridden = {key for fault in faults for key in (*fault.effects.labels, *fault.effects.annotations)}
        return (
            self.bare.name,
            tuple(tuple(fault.name for fault in state) for state in states),
            tuple(ours.labels),
            tuple(ours.annotations),
            tuple((ours.labels.get(key), ours.annotations.get(key)) for key in sorted(overridden)),
        )


class NodePatches:
    """The changes of nodes, each computed once for all that change in the same way, as of `now`, RFC 3339 in UTC."""

    def __init__(self, now: str) -> None:
        self._now = now
        self._known: dict[Hashable, NodePatch] = {}

    def of(self, step: NodeStep) -> NodePatch:
        """The change of a node."""
        key = step.alike()
        if key in self._known:
            return self._known[key]
        befores, after = step.owned()
        found = node_patch(befores, after, boot_id(step.name, step.bare.cluster), self._now)
        if key is not None:
            self._known[key] = found
        return found


def steps_of(
    pools: Mapping[str, Pool], nodes: NodeSet, befores: Sequence[list[ActiveFault]], after: list[ActiveFault]
) -> list[NodeStep]:
    """The nodes that change from some faults to others.

    Args:
        pools: as recorded, by name; nodes of other pools and ordinals that a pool does not have are skipped.
        befores: the faults that they may show: a list for each possibility.
        after: the faults that they should show.
    """
    found = []
    for name, members in sorted(nodes.items()):
        if pool := pools.get(name):
            *states, last = (replace(pool, faults=faults_of(name, each)) for each in (*befores, after))
            bare, shown = replace(pool, faults={}), tuple(states)
            found += [NodeStep(bare, shown, last, n) for n in sorted(members) if n < pool.replicas]
    return found
