"""What changes on the nodes that faults come to or leave: computed once for all nodes that change in the same way."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from kumulus.model.active_faults import ActiveFault, faults_of
from kumulus.model.node_delta import delta
from kumulus.model.node_effects import Condition
from kumulus.model.node_sets import NodeSet
from kumulus.model.nodes import CONDITIONS, OwnedFields, boot_id, owned_fields
from kumulus.model.pools import CLUSTER_LABEL, Pool

_UNKNOWN = Condition("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")


@dataclass(frozen=True)
class Both:
    """One pool: without faults, before, and after."""

    bare: Pool
    before: Pool
    after: Pool

    @cached_property
    def cluster(self) -> str:
        """The cluster's name."""
        return self.bare.labels.get(CLUSTER_LABEL, "")

    def faults(self, ordinal: int) -> tuple[tuple[ActiveFault, ...], tuple[ActiveFault, ...]]:
        """The faults on a node before and after."""
        was, will = (pool.faults.of(ordinal) if pool.faults else () for pool in (self.before, self.after))
        return was, will


@dataclass(frozen=True)
class Turn:
    """One node, before and after."""

    pools: Both
    ordinal: int

    @property
    def name(self) -> str:
        """The node's name."""
        return self.pools.bare.node_name(self.ordinal)

    def kubelets(self) -> tuple[str, str]:
        """The state of its kubelet before and after; each one of :data:`kumulus.model.node_effects.KUBELETS`."""
        pools = (self.pools.before, self.pools.after)
        was, will = (pool.faults.kubelet(self.ordinal) if pool.faults else "" for pool in pools)
        return was, will

    def owned(self) -> tuple[OwnedFields, OwnedFields]:
        """What we own on it, before and after."""
        pools = (self.pools.before, self.pools.after)
        was, will = (owned_fields(pool, self.ordinal, self.pools.cluster) for pool in pools)
        return was, will

    def alike(self) -> Hashable:
        """A key, equal for nodes that change in the same way; None for a node with its own change, as in a reboot."""
        was, will = self.pools.faults(self.ordinal)
        if any(fault.effects.kubelet == "reboot" for fault in (*was, *will)):
            return None
        ours = owned_fields(self.pools.bare, self.ordinal, self.pools.cluster)
        # All nodes of a pool have the same field names. Their values differ, which matters only where a fault overrides
        # one: when it ends, the node's own value is restored.
        places = {key for fault in (*was, *will) for key in (*fault.effects.labels, *fault.effects.annotations)}
        return (
            self.pools.bare.name,
            tuple(fault.name for fault in was),
            tuple(fault.name for fault in will),
            tuple(ours.labels),
            tuple(ours.annotations),
            tuple((ours.labels.get(key), ours.annotations.get(key)) for key in sorted(places)),
        )


@dataclass(frozen=True)
class Change:
    """What to request from the API server for a node.

    Attributes:
        status: a strategic merge patch for its status, encoded; None when nothing changes there.
        taints: whether its taints change too.
        had, wanted: what we own on one of the nodes that change this way.
    """

    status: bytes | None
    taints: bool
    had: OwnedFields
    wanted: OwnedFields


class Changes:
    """The changes of nodes, each computed and encoded once for all nodes that change in the same way.

    Args:
        now: the time for changed conditions, RFC 3339 in UTC.
    """

    def __init__(self, now: str) -> None:
        self._now = now
        self._known: dict[Hashable, Change] = {}

    def of(self, each: Turn) -> Change:
        """The change of a node."""
        key = each.alike()
        if key is None:
            return self._made(each)
        if key not in self._known:
            self._known[key] = self._made(each)
        return self._known[key]

    def _made(self, each: Turn) -> Change:
        had, wanted = each.owned()
        if each.kubelets()[0] == "silent":
            # The node lifecycle controller has taken over its conditions, and waits for the kubelet to report again.
            had = replace(had, conditions={**had.conditions, **dict.fromkeys(CONDITIONS, _UNKNOWN)})
        found = delta(had, wanted, boot_id(each.name, each.pools.cluster), self._now)
        status = json.dumps(found.status, separators=(",", ":")).encode() if found.status is not None else None
        return Change(status, found.taints, had, wanted)


def turns_of(
    pools: Mapping[str, Pool], nodes: NodeSet, before: list[ActiveFault], after: list[ActiveFault]
) -> list[Turn]:
    """The nodes that turn from some faults to others.

    Args:
        pools: as recorded, by name; nodes of other pools and ordinals that a pool does not have are skipped.
        nodes: which ones.
        before: the faults that they show.
        after: the faults that they should show.
    """
    found = []
    for name, members in sorted(nodes.items()):
        if pool := pools.get(name):
            states = (
                replace(pool, faults=faults) for faults in (None, faults_of(name, before), faults_of(name, after))
            )
            both = Both(*states)
            found += [Turn(both, ordinal) for ordinal in sorted(members) if ordinal < pool.replicas]
    return found
