"""The nodes of a cluster, and which pods have which part of each, for a policy alongside a real scheduler."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kumulus.extras.lab.cluster.claims import published
from kumulus.extras.lab.extender.calling import Caller
from kumulus.extras.lab.offline.placing import EmptyNode, Placer, PodPlacement, Ties, empty, gpus_for, in_order, place
from kumulus.extras.lab.plan.asked import pod_of
from kumulus.extras.lab.policies import Pod, Study
from kumulus.extras.lab.policies.fragmentation import Fragmentation
from kumulus.extras.lab.policies.load import Policy, PolicyFailed
from kumulus.extras.lab.policies.nodes import Flags, Kind
from kumulus.extras.schedulers.pod_requests import lenient
from kumulus.kube.messages import MessageCodec
from kumulus.kube.objects import NODES
from kumulus.model.gfd import GPU_RESOURCE
from kumulus.model.pools import GROUP_LABEL
from kumulus.model.quantity import NANO, ZERO

if TYPE_CHECKING:
    from kumulus.kube import Client


@dataclass(frozen=True)
class Reservation:
    """The part of a node that a pod has or is to have."""

    pod: Pod
    where: PodPlacement
    seen: bool
    """Whether the cluster has reported it as bound there; until then it is only expected."""


class NodeLedger:
    """The nodes of a cluster, and what pods have of them.

    Args:
        machines: the cluster's nodes, in the order in which ties are decided.
    """

    def __init__(self, machines: Sequence[EmptyNode]) -> None:
        self.machines = tuple(machines)
        self.nodes = empty(machines)
        self._places = {machine.name: number for number, machine in enumerate(machines)}
        self.reservations: dict[str, Reservation] = {}

    def grown(self, machines: Iterable[EmptyNode]) -> NodeLedger:
        """A ledger with the new ones among some machines behind the known ones, and with all that is reserved."""
        larger = NodeLedger([*self.machines, *(each for each in machines if each.name not in self._places)])
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

    def reserve(self, uid: str, pod: Pod, where: PodPlacement, seen: bool = False) -> None:
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

    def anywhere_on(self, pod: Pod, node: int) -> PodPlacement:
        """A place on a node that another party chose: for a share its tightest GPU, otherwise the first free ones."""
        alone = self.nodes.some(np.array([node]))
        return PodPlacement(node, gpus_for(pod, alone, int(alone.tightest_gpu(pod)[0])))


class Accounting:
    """A policy with its ledger of the cluster's nodes.

    Args:
        ties: which of the nodes that it finds equally good it takes.
        refresh: lists the machines that there are now.

    Attributes:
        study, ledger: of the present repetition.
    """

    def __init__(
        self,
        policy: Policy,
        ties: Ties,
        limit: float,
        product_label: str,
        refresh: Callable[[], Awaitable[list[EmptyNode]]],
    ) -> None:
        self.policy, self._ties, self._product_label, self._refresh = policy, ties, product_label, refresh
        self._caller = Caller(limit)
        self._begun(NodeLedger(()), [], random.Random())

    def _begun(self, ledger: NodeLedger, kinds: Sequence[tuple[Kind, int]], source: random.Random) -> None:
        self.ledger, self._kinds = ledger, kinds
        self.study = Study(Fragmentation.of(kinds, ledger.nodes.models), source)
        self._placer = Placer(self.policy, ledger.nodes, self.study, self._ties)

    async def _grown(self) -> None:
        """Add new nodes, behind the known ones, so that these keep their order."""
        self._begun(self.ledger.grown(await self._refresh()), self._kinds, self.study.random)

    async def _called(self, work: Callable[[], Any]) -> Any:
        try:
            return await self._caller.call(work)
        except PolicyFailed:
            # An abandoned call may still write into the placer's memory, so the next call gets a new placer.
            self._placer = Placer(self.policy, self.ledger.nodes, self.study, self._ties)
            raise

    def _asked(self, arguments: Mapping[str, Any]) -> tuple[Pod, str, Sequence[str]]:
        """The pod of a request of kube-scheduler, its UID, and the names of the nodes that its filters left."""
        metadata = arguments["Pod"]["metadata"]
        pod = pod_of(metadata["name"], arguments["Pod"]["spec"], self._product_label)
        return pod, metadata["uid"], arguments.get("NodeNames") or ()


async def machines_of(client: Client, product_label: str) -> list[EmptyNode]:
    """The nodes of a cluster, in the order of their pools and numbers.

    Args:
        product_label: the node label that says which GPUs a node has; for a node without it, the group's name is used.
    """
    found, devices = [], await published(client)
    async for page in client.listed(NODES, MessageCodec("Node")):
        for node in page:
            has = lenient({name: amount.string for name, amount in node.status.allocatable.items()})
            labels = node.metadata.labels
            model = labels.get(product_label) or labels.get(GROUP_LABEL, "")
            found.append(
                EmptyNode(
                    node.metadata.name,
                    has.get("cpu", ZERO).nanos * 1000 // NANO,
                    has.get("memory", ZERO).nanos // (NANO << 20),
                    # GPUs that a node offers both ways are counted once.
                    max(has.get(GPU_RESOURCE, ZERO).nanos // NANO, devices[node.metadata.name]),
                    model,
                )
            )
    return in_order(found)
