"""The order in which a trace's pods arrive: as recorded, or drawn by a seed until they ask for enough."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.policies import Pod

T = TypeVar("T")


def drawn(pods: Sequence[Pod], gpu_milli: int, inflate: float | None, source: random.Random) -> list[Pod]:
    """The stream of pods: :func:`drawn_from` with what each of them asks for.

    Args:
        pods: of the trace.
        gpu_milli: milli-GPU of all GPUs together.
        inflate: the share, such as 1.3 for 130 %; None for every pod once.
        source: of random numbers.

    Raises:
        LabError: see :func:`drawn_from`.
    """
    return drawn_from(pods, lambda pod: pod.total_gpu_milli, gpu_milli, inflate, source)


def drawn_from(
    items: Sequence[T], asks: Callable[[T], int], gpu_milli: int, inflate: float | None, source: random.Random
) -> list[T]:
    """All pods once in a random order, then pods drawn from them until all together ask for a share of the GPUs.

    As in the published study, the first pod that would exceed the share ends the stream. If the pods exceed the share
    to begin with, pods drawn at random are left out.

    Args:
        items: pods of the trace, or jobs.
        asks: the milli-GPU that one asks for.
        gpu_milli: milli-GPU of all GPUs together.
        inflate: the share, such as 1.3 for 130 %; None for every pod once.
        source: of random numbers.

    Raises:
        LabError: no pod asks for a GPU, so that no share is ever reached.
    """
    stream = list(items)
    source.shuffle(stream)
    if inflate is None:
        return stream
    wanted, demand = inflate * gpu_milli, sum(map(asks, stream))
    if not demand:
        raise LabError("no task asks for a GPU, so inflate has nothing to reach\n  Leave inflate out")
    while demand > wanted:
        demand -= asks(stream.pop(source.randrange(len(stream))))
    if len(stream) < len(items):
        return stream
    while True:
        item = items[source.randrange(len(items))]
        if demand + asks(item) > wanted:
            return stream
        demand += asks(item)
        stream.append(item)
