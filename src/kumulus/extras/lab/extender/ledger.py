"""Which pods have which part of each node, for a policy beside a real scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kumulus.extras.lab.offline.placing import Machine, Placement, empty, gpus_for, place
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.nodes import Flags


@dataclass(frozen=True)
class Reservation:
    """The part of a node that a pod has or is to have.

    Args:
        pod: what it asks for.
        where: what it has.
        seen: whether the cluster has reported it as bound there; until then it is only expected.
    """

    pod: Pod
    where: Placement
    seen: bool


class Ledger:
    """The nodes of a cluster, and what pods have of them.

    Args:
        machines: the cluster's nodes, in the order in which ties are decided.
    """

    def __init__(self, machines: Sequence[Machine]) -> None:
        self.machines = tuple(machines)
        self.nodes = empty(machines)
        self._places = {machine.name: number for number, machine in enumerate(machines)}
        self.reservations: dict[str, Reservation] = {}

    def grown(self, machines: Iterable[Machine]) -> Ledger:
        """A ledger with the new ones among some machines behind the known ones, and with all that is reserved."""
        larger = Ledger([*self.machines, *(each for each in machines if each.name not in self._places)])
        for uid, reserved in self.reservations.items():
            larger.reserve(uid, reserved.pod, reserved.where, reserved.seen)
        return larger

    def among(self, names: Iterable[str]) -> tuple[Flags, bool]:
        """A flag for each node, set if it is named, and whether all named nodes are known."""
        flags = np.zeros(len(self.machines), dtype=np.bool_)
        known = True
        for name in names:
            number = self._places.get(name)
            if number is None:
                known = False
            else:
                flags[number] = True
        return flags, known

    def name(self, node: int) -> str:
        """The name of a node by its place."""
        return self.machines[node].name

    def number(self, name: str) -> int | None:
        """The place of a node by its name; None for one that is not known."""
        return self._places.get(name)

    def reserve(self, uid: str, pod: Pod, where: Placement, seen: bool = False) -> None:
        """Reserve a place for a pod, which has it or will be bound to it; what it had before is freed."""
        self.release(uid)
        place(self.nodes, pod, where)
        self.reservations[uid] = Reservation(pod, where, seen)

    def release(self, uid: str) -> int | None:
        """Free what a pod has; returns its node, or None if it had none."""
        reserved = self.reservations.pop(uid, None)
        if reserved is None:
            return None
        place(self.nodes, reserved.pod, reserved.where, -1)
        return reserved.where.node

    def anywhere_on(self, pod: Pod, node: int) -> Placement:
        """A place on a node that another party chose: for a share its tightest GPU, otherwise the first free ones."""
        alone = self.nodes.some(np.array([node]))
        return Placement(node, gpus_for(pod, alone, int(alone.tightest_gpu(pod)[0])))
