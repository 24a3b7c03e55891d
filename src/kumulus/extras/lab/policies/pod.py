"""A pod as a policy sees it: what it asks for."""

from __future__ import annotations

from dataclasses import dataclass

WHOLE_GPU = 1000
"""Milli-GPU of a GPU."""

Kind = tuple[int, int, int, frozenset[str]]


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
