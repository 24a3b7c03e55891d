"""Active faults, and the wanted state of a pool's nodes while they are active: the pool's, overridden by the faults."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kumulus.model.durations import timestamp
from kumulus.model.fault_effects import Condition, NodeEffects, reduced
from kumulus.model.names import uuid_of
from kumulus.model.node_sets import NodeSet

if TYPE_CHECKING:
    from kumulus.model.nodes import OwnedFields
    from kumulus.model.pools import Pool

FAULTS_ANNOTATION = "kumulus.io/faults"
"""Names the faults active on a node; KWOK does not change the status of a node that has this annotation."""

WITHOUT_KWOK = "kumulus.io/without-kwok"
"""A label of nodes that KWOK leaves alone, with their pods: a fault has silenced their kubelet, or they have one."""

FAULT_LABEL = "kumulus.io/fault"
"""The fault that an object belongs to; objects with it are the fault's record and its stages."""

REBOOT_ANNOTATION = "kumulus.io/reboot-until"
"""When a node's reboot ends, RFC 3339 in UTC; KWOK makes it Ready then."""
BOOT_ID_ANNOTATION = "kumulus.io/boot-id"
"""The boot ID that KWOK gives the node then."""
_REBOOTING = Condition("False", "KubeletNotReady", "node is rebooting")
_NOT_READY = Condition("False", "KubeletNotReady", "container runtime network not ready: NetworkReady=false")


@dataclass(frozen=True)
class ActiveFault:
    """An active fault."""

    name: str
    effects: NodeEffects
    """On each of its nodes."""
    nodes: NodeSet
    """The nodes it affects."""
    since: str = ""
    """When it began, RFC 3339 in UTC."""

    def annotations(self, node: str) -> dict[str, str]:
        """The annotations it sets on a node, including those by which KWOK ends a reboot."""
        if self.effects.kubelet != "reboot":
            return dict(self.effects.annotations)
        digest = hashlib.blake2b(f"{node}/{self.name}/{self.since}".encode(), digest_size=16).hexdigest()
        reboot = {REBOOT_ANNOTATION: self.reboot_end(), BOOT_ID_ANNOTATION: uuid_of(digest)}
        return {**self.effects.annotations, **reboot}

    def reboot_end(self) -> str:
        """When the reboot ends, RFC 3339 in UTC."""
        return timestamp(datetime.fromisoformat(self.since) + timedelta(seconds=self.effects.down))

    def conditions(self, now: str) -> dict[str, Condition]:
        """The conditions it sets on a node; `now` is RFC 3339 in UTC."""
        if self.effects.kubelet == "notReady":
            return {"Ready": _NOT_READY, **self.effects.conditions}
        # Once the reboot has ended, the node is left to KWOK.
        if self.effects.kubelet == "reboot" and now < self.reboot_end():
            return {"Ready": _REBOOTING, **self.effects.conditions}
        return dict(self.effects.conditions)


def kubelet_under(faults: Iterable[ActiveFault]) -> str:
    """The state of the kubelet of a node with these faults, one of `KUBELETS`; only one of the faults can set it."""
    return next((fault.effects.kubelet for fault in faults if fault.effects.kubelet), "")


def gone_nodes(pool: Pool) -> set[int]:
    """The ordinals of a pool's nodes that should not exist while its faults are active."""
    return {
        ordinal
        for ordinal, faults in pool.faults.items()
        if ordinal < pool.replicas and kubelet_under(faults) == "gone"
    }


def faults_of(pool: str, faults: Iterable[ActiveFault]) -> dict[int, tuple[ActiveFault, ...]]:
    """The active faults of a pool's nodes, by ordinal, sorted by name."""
    found: dict[int, tuple[ActiveFault, ...]] = {}
    for fault in sorted(faults, key=lambda fault: fault.name):
        for ordinal in fault.nodes.get(pool, ()):
            found[ordinal] = (*found.get(ordinal, ()), fault)
    return found


def with_faults(ours: OwnedFields, node: str, faults: Sequence[ActiveFault]) -> OwnedFields:
    """The wanted state of a node while faults are active.

    Args:
        ours: the state that its pool wants.
        node: the name that its pool and ordinal make, of which a boot ID is made: its own may be another.
    """
    now = timestamp()
    for fault in faults:
        effects = fault.effects
        tainted = {taint.place for taint in effects.taints}
        ours = replace(
            ours,
            labels={**ours.labels, **effects.labels},
            annotations={**ours.annotations, **fault.annotations(node)},
            taints=(*(taint for taint in ours.taints if taint.place not in tainted), *effects.taints),
            allocatable=reduced(ours.allocatable, ours.capacity, effects.capacity),
            capacity=reduced(ours.capacity, ours.capacity, effects.capacity),
            conditions={**ours.conditions, **fault.conditions(now)},
        )
    if kubelet_under(faults) == "silent":
        ours = replace(ours, labels={**ours.labels, WITHOUT_KWOK: "true"})
    names = ",".join(fault.name for fault in faults)
    return replace(ours, annotations={**ours.annotations, FAULTS_ANNOTATION: names})
