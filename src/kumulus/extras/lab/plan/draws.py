"""Seeded draws: a stream of random numbers for each thing that is drawn.

A draw depends only on the seed and on what is drawn, so that a workload that is added to a file changes nothing about
the others.
"""

from __future__ import annotations

import random


def stream(seed: int, *what: object) -> random.Random:
    """The stream of random numbers for one thing that is drawn."""
    # Random hashes a text by SHA-512, which is the same on every machine and in every version of Python since 3.2.
    return random.Random("/".join(map(str, (seed, *what))))
