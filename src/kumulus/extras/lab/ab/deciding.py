"""When a difference is decided: a test that may look after every pair, and is wrong no more often for it.

Each pair is a run of A and one of B in drawn order. Without a difference, either is the larger one equally often,
however figures are spread and whatever else happens on the machine. So whoever bets on one of the two, more on pairs
that are further apart, does not get rich: the stake grows to 1/p only with probability p, at any time (Ville, 1939;
Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024). The interval has all
differences on which nobody would have got rich.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LEVEL = 0.002
"""How often a difference is decided where there is none, at most: less than the 1 % that is promised, so that a count
among 500 is below it, too."""

_STAKES = np.array([[0.5], [1.0], [2.0]])
_STEPS = 60
_Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Decision:
    """What is known after some pairs.

    Args:
        difference: B less A, in the middle.
        low, high: the interval of it; infinite where there are too few pairs.
    """

    difference: float
    low: float
    high: float


def decision(apart: Sequence[float], level: float = LEVEL) -> Decision:
    """What is known.

    Args:
        apart: B less A of each pair, in the order in which they ran; at least one.
        level: how often the interval may miss the difference, all looks at it together.
    """
    values = np.asarray(apart, dtype=np.float64)
    middle = _middle(values)
    return Decision(
        middle,
        middle - _end(lambda away: _stake(values, middle - away, 1), values, level),
        middle + _end(lambda away: _stake(values, middle + away, -1), values, level),
    )


def excludes(apart: Sequence[float], difference: float, level: float = LEVEL) -> int:
    """Whether a difference is excluded: 1 if the true one is larger, -1 if it is smaller, 0 if it is not excluded."""
    values = np.asarray(apart, dtype=np.float64)
    for sign in (1, -1):
        if _stake(values, difference, sign) >= 2 / level:
            return sign
    return 0


def _stake(values: _Numbers, centre: float, sign: int) -> float:
    """The most that a stake of 1 has been worth which bets on values above (1) or below (-1) a centre."""
    moved = sign * (values - centre)
    # How far apart pairs usually are, by those until now: what is bet does not depend on the unit.
    usual = np.sqrt(np.cumsum(moved**2) / np.arange(1, len(moved) + 1))
    won = np.tanh(_STAKES * moved / np.where(usual > 0, usual, 1.0))
    with np.errstate(divide="ignore"):
        return float(np.exp(np.cumsum(np.log1p(won), axis=1)).mean(axis=0).max())


def _end(stake: Callable[[float], float], values: _Numbers, level: float) -> float:
    """How far from the middle an interval ends."""
    away = max(float(np.abs(values).max()), 1e-9)
    for _ in range(_STEPS):
        if stake(away) >= 2 / level:
            break
        away *= 2
    else:
        return math.inf
    near, far = 0.0, away
    for _ in range(_STEPS):
        between = (near + far) / 2
        near, far = (near, between) if stake(between) >= 2 / level else (between, far)
    return far


def _middle(values: _Numbers) -> float:
    """The median of the means of all two values (Hodges and Lehmann, 1963)."""
    first, second = np.triu_indices(len(values))
    return float(np.median((values[first] + values[second]) / 2))
