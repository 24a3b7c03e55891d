"""The order in which a trace's pods arrive: as recorded, or drawn by a seed until they ask for enough."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kumulus.lab.errors import LabError
from kumulus.lab.policies import Pod


def drawn(pods: Sequence[Pod], gpu_milli: int, inflate: float | None, source: random.Random) -> list[Pod]:
    """All pods once in a random order, then pods drawn from them until all together ask for a share of the GPUs.

    As of the published study: the first pod that would go past the share ends it, and where all pods ask for more than
    the share to begin with, pods drawn at random are left out.

    Args:
        pods: of the trace.
        gpu_milli: milli-GPU of all GPUs together.
        inflate: the share, such as 1.3 for 130 %; None for every pod once.
        source: of random numbers.

    Raises:
        LabError: no pod asks for a GPU, so that no share is ever reached.
    """
    stream = list(pods)
    source.shuffle(stream)
    if inflate is None:
        return stream
    wanted, demand = inflate * gpu_milli, sum(pod.total_gpu_milli for pod in stream)
    if not demand:
        raise LabError("no task asks for a GPU, so inflate has nothing to reach\n  Leave inflate out")
    while demand > wanted:
        demand -= stream.pop(source.randrange(len(stream))).total_gpu_milli
    if len(stream) < len(pods):
        return stream
    while True:
        pod = pods[source.randrange(len(pods))]
        if demand + pod.total_gpu_milli > wanted:
            return stream
        demand += pod.total_gpu_milli
        stream.append(pod)
