"""The nodes of a cluster as arrays, and which of them a policy gives a pod: what fits, its scores, a rule for ties."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from kumulus.extras.lab.policies import Nodes, Pod, Study
from kumulus.extras.lab.policies.load import FittingNodes, Policy, Scores
from kumulus.extras.lab.policies.nodes import WHOLE_GPU, Flags, Kind

_NUMBERED = re.compile(r"(.*?)(\d*)")
Ties = Literal["name", "random"]


@dataclass(frozen=True)
class EmptyNode:
    """An empty node."""

    name: str
    cpu: int
    """Milli-CPU."""
    memory: int
    """MiB."""
    gpus: int = 0
    model: str = ""
    """Their model; empty where it is not known or there are none."""


def in_order(machines: Iterable[EmptyNode]) -> list[EmptyNode]:
    """Machines in the order of their names, with numbers at the end compared as numbers: with or without a cluster."""

    def key(machine: EmptyNode) -> tuple[str, int]:
        match = _NUMBERED.fullmatch(machine.name)
        assert match is not None
        return match[1], int(match[2] or 0)

    return sorted(machines, key=key)


@dataclass(frozen=True)
class PodPlacement:
    """Where a pod is."""

    node: int
    gpus: tuple[int, ...]
    """Which of its GPUs it has, or has a share of."""


def empty(machines: Sequence[EmptyNode]) -> Nodes:
    """The nodes of machines on which nothing runs, in the order given."""
    models = tuple(sorted({machine.model for machine in machines}))
    most = max((machine.gpus for machine in machines), default=0)
    gpus = np.array([machine.gpus for machine in machines], dtype=np.int64)
    cpu = np.array([machine.cpu for machine in machines], dtype=np.int64)
    memory = np.array([machine.memory for machine in machines], dtype=np.int64)
    return Nodes(
        position=np.arange(len(machines)),
        cpu=cpu,
        cpu_free=cpu.copy(),
        memory=memory,
        memory_free=memory.copy(),
        gpus=gpus,
        gpu_free=np.where(np.arange(max(most, 1)) < gpus[:, None], WHOLE_GPU, 0),
        model=np.array([models.index(machine.model) for machine in machines], dtype=np.int64),
        running=np.zeros((len(machines), most + 1), dtype=np.int64),
        models=models,
    )


def gpus_for(pod: Pod, node: Nodes, share_of: int) -> tuple[int, ...]:
    """Which GPUs of one node a pod gets: the given one for a share, else the first that are free."""
    if not pod.gpus:
        return ()
    if pod.shares_gpu:
        return (share_of,)
    return tuple(int(gpu) for gpu in np.flatnonzero(node.gpu_free[0] >= pod.gpu_milli)[: pod.gpus])


def place(nodes: Nodes, pod: Pod, where: PodPlacement, times: int = 1) -> None:
    """Take what the pod asks for from its node; `times` of -1 gives it back."""
    nodes.cpu_free[where.node] -= times * pod.cpu
    nodes.memory_free[where.node] -= times * pod.memory
    if pod.gpus:
        nodes.gpu_free[where.node, list(where.gpus)] -= times * pod.gpu_milli
        nodes.running[where.node, 0 if pod.shares_gpu else pod.gpus] += times


class Placer:
    """Asks a policy where pods go, one after the other.

    Args:
        nodes: of the cluster, in the order of their names; changed by the caller, who then calls `changed`.
        study: what the policy may know.
        ties: whether the first of equally good nodes is taken, or one at random.
    """

    def __init__(self, policy: Policy, nodes: Nodes, study: Study, ties: Ties) -> None:
        self._policy, self._nodes, self._study, self._ties = policy, nodes, study, ties
        self._version = np.zeros(len(nodes), dtype=np.int64)
        self._known: dict[Kind, tuple[Scores, npt.NDArray[np.int64]]] = {}

    def changed(self, node: int) -> None:
        """Note that what is free on a node has changed."""
        self._version[node] += 1

    def place(self, pod: Pod) -> PodPlacement | None:
        """Where the pod goes; None where it fits nowhere."""
        best = self.scored(pod).best()
        if not len(best):
            return None
        many = len(best) > 1 and self._ties == "random"
        return self.on(pod, int(self._study.random.choice(best) if many else best[0]))

    def scored(self, pod: Pod, among: Flags | None = None) -> FittingNodes:
        """The nodes on which the pod fits, with the policy's scores; only the chosen one if the policy has `choose`.

        Args:
            among: for each node, whether it is allowed; None for all of them.
        """
        fits = self._nodes.fit(pod)
        fitting = np.flatnonzero(fits if among is None else fits & among)
        if len(fitting):
            fitting = fitting[self._policy.allowed(pod, self._nodes.some(fitting), self._study)]
        if not len(fitting) or self._policy.leaves:
            return FittingNodes(fitting, None)
        if self._policy.chooses:
            return FittingNodes(
                np.array([fitting[self._policy.choose(pod, self._nodes.some(fitting), self._study)]]), None
            )
        return FittingNodes(fitting, self._scores(pod, fitting))

    def on(self, pod: Pod, node: int) -> PodPlacement:
        """What a pod gets of a node on which it fits: its GPUs; for a share, the one that the policy chooses."""
        alone = self._nodes.some(np.array([node]))
        share_of = self._policy.gpu(pod, alone, self._study) if pod.shares_gpu else 0
        return PodPlacement(node, gpus_for(pod, alone, share_of))

    def _scores(self, pod: Pod, fitting: npt.NDArray[np.int64]) -> Scores:
        if not self._policy.remember:
            return self._policy.score(pod, self._nodes.some(fitting), self._study)
        if pod.kind not in self._known:
            self._known[pod.kind] = (np.zeros(len(self._nodes)), np.full(len(self._nodes), -1))
        scores, version = self._known[pod.kind]
        # Only nodes that have changed since the last pod of this kind are scored again.
        stale = fitting[version[fitting] != self._version[fitting]]
        if len(stale):
            scores[stale] = self._policy.score(pod, self._nodes.some(stale), self._study)
            version[stale] = self._version[stale]
        return scores[fitting]
