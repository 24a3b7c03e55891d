"""Pods and nodes as a policy sees them; of nodes, one array for each thing known, with an element for each node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


WHOLE_GPU = 1000
"""Milli-GPU of a GPU."""
Kind = tuple[int, int, int, frozenset[str]]


@dataclass(frozen=True)
class Nodes:
    """Some nodes and what is free on them. A policy reads it and never writes into it."""

    position: Whole
    """The place of each among all nodes of the cluster."""
    cpu: Whole
    """Milli-CPU that each has."""
    cpu_free: Whole
    """Milli-CPU that is free."""
    memory: Whole
    """MiB that each has."""
    memory_free: Whole
    """MiB that is free."""
    gpus: Whole
    """How many GPUs each has."""
    gpu_free: Whole
    """Milli-GPU that is free, a row for each node, a column for each GPU; 0 where a node has no such GPU."""
    model: Whole
    """The GPU model of each, a number into `models`."""
    running: Whole
    """GPU pods on each, a column for each size: 0 those that share a GPU, n those of n GPUs."""
    models: tuple[str, ...]
    """The names of all GPU models."""

    def __len__(self) -> int:
        return len(self.position)

    def some(self, which: npt.NDArray[Any] | slice) -> Nodes:
        """The nodes at the given places, or those whose flag is set."""
        return Nodes(
            self.position[which], self.cpu[which], self.cpu_free[which], self.memory[which], self.memory_free[which],
            self.gpus[which], self.gpu_free[which], self.model[which], self.running[which], self.models,
        )  # fmt: skip

    def model_allowed(self, pod: Pod) -> Flags:
        """Which nodes have a GPU model that the pod may run on."""
        if not pod.models or not pod.gpus:
            return np.ones(len(self), dtype=np.bool_)
        return np.array([model in pod.models for model in self.models], dtype=np.bool_)[self.model]

    def fit(self, pod: Pod) -> Flags:
        """On which nodes the pod fits: CPU, memory, GPUs with enough free, and the GPU model."""
        room = (self.cpu_free >= pod.cpu) & (self.memory_free >= pod.memory)
        if pod.gpus:
            room &= (self.gpu_free >= pod.gpu_milli).sum(axis=1) >= pod.gpus
            if pod.models:
                room &= self.model_allowed(pod)
        return room

    def tightest_gpu(self, pod: Pod) -> Whole:
        """For a pod that shares a GPU: the GPU of each node with the least, but enough, free; the first of equals."""
        enough = np.where(self.gpu_free >= pod.gpu_milli, self.gpu_free, 2 * WHOLE_GPU)
        tightest: Whole = enough.argmin(axis=1)
        return tightest

    def with_pod(self, pod: Pod, gpu: Whole | None = None) -> Nodes:
        """The nodes as they would be with one such pod on each of them; it has to fit.

        Args:
            gpu: for each node the GPU that a share is taken from; the tightest unless given. A pod of whole GPUs takes
                the first that are free.
        """
        free = self.gpu_free
        if pod.shares_gpu:
            free = free.copy()
            free[np.arange(len(self)), self.tightest_gpu(pod) if gpu is None else gpu] -= pod.gpu_milli
        elif pod.gpus:
            whole = free >= pod.gpu_milli
            free = free - pod.gpu_milli * (whole & (whole.cumsum(axis=1) <= pod.gpus))
        return replace(self, cpu_free=self.cpu_free - pod.cpu, memory_free=self.memory_free - pod.memory, gpu_free=free)

    def for_each_gpu(self, pod: Pod) -> tuple[Nodes, Whole, Whole]:
        """For a pod that shares a GPU: the nodes once for each of their GPUs that has enough free.

        Returns:
            the nodes, for each of them which of these nodes it is, and the GPU.
        """
        node, gpu = np.nonzero(self.gpu_free >= pod.gpu_milli)
        return self.some(node), node, gpu


@dataclass(frozen=True)
class Pod:
    """What a pod asks for."""

    name: str
    """Its name; policies do not need it."""
    cpu: int
    """Milli-CPU."""
    memory: int
    """MiB."""
    gpus: int = 0
    """How many GPUs."""
    gpu_milli: int = 0
    """Milli-GPU of each of them: 1000, or less of a single one; 0 where it wants none."""
    models: frozenset[str] = frozenset()
    """The GPU models it may run on; empty for any."""

    @property
    def total_gpu_milli(self) -> int:
        """Milli-GPU of all its GPUs together."""
        return self.gpus * self.gpu_milli

    @property
    def shares_gpu(self) -> bool:
        """Whether it wants a part of one GPU."""
        return self.gpus == 1 and 0 < self.gpu_milli < WHOLE_GPU

    @property
    def kind(self) -> Kind:
        """What distinguishes pods in the measure of fragmentation: everything except the memory."""
        return (self.cpu, self.gpu_milli, self.gpus, self.models)
