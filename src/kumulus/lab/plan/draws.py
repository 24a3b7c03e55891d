"""Seeded draws: durations, and times between arrivals.

A draw depends on the seed and on what is drawn for, and on nothing else, so that a workload that is added to a file
changes nothing about the others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from kumulus.model.distributions import Distribution


def stream(seed: int, *what: object) -> random.Random:
    """A stream of random numbers of its own for something that is drawn."""
    # Random takes a text by its SHA-512, which is the same on every machine and in every version of Python since 3.2.
    return random.Random("/".join(map(str, (seed, *what))))


def drawn(distribution: Distribution, source: random.Random) -> float:
    """A duration in seconds; what would be below 0 is 0."""
    first, second = distribution.first, distribution.second
    draw: dict[str, Callable[[], float]] = {
        "fixed": lambda: first,
        "uniform": lambda: source.uniform(first, second),
        "normal": lambda: source.gauss(first, second),
        "lognormal": lambda: source.lognormvariate(math.log(first), second) if first else 0.0,
        "exponential": lambda: source.expovariate(1 / first) if first else 0.0,
    }
    return max(0.0, draw[distribution.kind]())
