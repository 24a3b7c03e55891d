"""Fragmentation as in the FGD paper: free GPUs that the expected pods cannot use.

Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
USENIX ATC 2023. A kind of pod can use none of a node's free milli-GPU if the node cannot run it (CPU, number of GPUs,
model) or if it wants no GPU; otherwise it can use the GPUs that have as much free as it asks for. The fragmentation is
what cannot be used, weighted by how often the kind occurs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kumulus.extras.lab.policies.nodes import Kind, Nodes, Pod

_TYPICAL_SHARE = 0.95
"""The share of all pods that are of a typical kind, as in the paper."""

Amounts = npt.NDArray[np.float64]


def typical_kinds(pods: Iterable[Pod]) -> list[tuple[Kind, int]]:
    """The most frequent kinds of a workload's pods that together make up 95 % of them, with how often each occurs."""
    counted = Counter(pod.kind for pod in pods)
    # Of equally frequent kinds the larger comes first, so that the cut does not depend on the order of the pods.
    ordered = sorted(counted.items(), key=lambda item: (item[1], *item[0][:3], sorted(item[0][3])), reverse=True)
    wanted, total, taken = _TYPICAL_SHARE * counted.total(), 0, []
    for kind, count in ordered:
        if total >= wanted:
            break
        taken.append((kind, count))
        total += count
    return taken


@dataclass(frozen=True)
class Fragmentation:
    """Measures the fragmentation of nodes against the expected pods."""

    cpu: Amounts
    """Milli-CPU of each typical kind that wants GPUs."""
    gpus: Amounts
    """How many GPUs it wants."""
    level: npt.NDArray[np.int64]
    """Which of the `levels` it asks for."""
    allowed: npt.NDArray[np.bool_]
    """For each GPU model and kind, whether it may run there."""
    weight: Amounts
    """How often the kind occurs; whole numbers, so that sums are exact and equal ones are equal."""
    levels: Amounts
    """The different amounts of milli-GPU that kinds ask for."""
    total: float
    """How often all typical kinds occur, those without GPUs included."""

    @classmethod
    def of(cls, kinds: Iterable[tuple[Kind, int]], models: tuple[str, ...]) -> Fragmentation:
        """From typical kinds and the GPU models there are."""
        everything = list(kinds)
        wanting = [(kind, count) for kind, count in everything if kind[1] and kind[2]]
        levels = sorted({kind[1] for kind, _ in wanting})
        allowed = [[not kind[3] or model in kind[3] for kind, _ in wanting] for model in models]
        return cls(
            cpu=np.array([kind[0] for kind, _ in wanting], dtype=np.float64),
            gpus=np.array([kind[2] for kind, _ in wanting], dtype=np.float64),
            level=np.array([levels.index(kind[1]) for kind, _ in wanting], dtype=np.int64),
            allowed=np.array(allowed, dtype=np.bool_).reshape(len(models), len(wanting)),
            weight=np.array([count for _, count in wanting], dtype=np.float64),
            levels=np.array(levels, dtype=np.float64),
            total=float(sum(count for _, count in everything)) or 1.0,
        )

    def __call__(self, nodes: Nodes) -> Amounts:
        """The fragmented milli-GPU of each node."""
        free = nodes.gpu_free.astype(np.float64)
        enough = (free[:, :, None] >= self.levels).astype(np.float64)
        enough_gpus = enough.sum(axis=1)[:, self.level] >= self.gpus
        usable = np.matmul(free[:, None, :], enough)[:, 0, :][:, self.level]
        runs = enough_gpus & (nodes.cpu_free[:, None] >= self.cpu) & self.allowed[nodes.model]
        fragmented: Amounts = free.sum(axis=1) * self.total - (usable * runs) @ self.weight
        return fragmented / self.total


@dataclass(frozen=True)
class Study:
    """What is the same throughout a run."""

    fragmentation: Fragmentation
    """Called with nodes, returns the fragmented milli-GPU of each, measured against the typical pods."""
    random: random.Random
    """The run's source of random numbers; the same seed draws the same numbers."""
