"""The machines of an offline run, and what is free on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kumulus.extras.lab.policies import Nodes, Pod
from kumulus.extras.lab.policies.pod import WHOLE_GPU

_NUMBERED = re.compile(r"(.*?)(\d*)")


@dataclass(frozen=True)
class Machine:
    """An empty node.

    Args:
        name: the node's.
        cpu: milli-CPU.
        memory: MiB.
        gpus: how many GPUs.
        model: their model; empty where it is not known or there are none.
    """

    name: str
    cpu: int
    memory: int
    gpus: int = 0
    model: str = ""


def in_order(machines: Iterable[Machine]) -> list[Machine]:
    """Machines in the order of their names, with numbers at the end compared as numbers: with or without a cluster."""

    def key(machine: Machine) -> tuple[str, int]:
        match = _NUMBERED.fullmatch(machine.name)
        assert match is not None
        return match[1], int(match[2] or 0)

    return sorted(machines, key=key)


@dataclass(frozen=True)
class Placement:
    """Where a pod is.

    Args:
        node: the node's place among all.
        gpus: which of its GPUs it has, or has a share of.
    """

    node: int
    gpus: tuple[int, ...]


def empty(machines: Sequence[Machine]) -> Nodes:
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


def place(nodes: Nodes, pod: Pod, where: Placement, times: int = 1) -> None:
    """Take what the pod asks for from its node; `times` of -1 gives it back."""
    nodes.cpu_free[where.node] -= times * pod.cpu
    nodes.memory_free[where.node] -= times * pod.memory
    if pod.gpus:
        nodes.gpu_free[where.node, list(where.gpus)] -= times * pod.gpu_milli
        nodes.running[where.node, 0 if pod.shares_gpu else pod.gpus] += times
