"""Whether two groups of runs differ: a bootstrap interval of the difference, and a test that is valid for few runs.

The interval is what resampling the runs gives (Efron, "Bootstrap Methods: Another Look at the Jackknife", 1979). With
few runs it is too narrow, so a difference is called one only when a permutation test agrees (Fisher, "The Design of
Experiments", 1935): of all ways to exchange the two groups, fewer than 5 % give as large a difference. Where both have
the same seeds, runs of one seed are compared with each other, and exchanged with each other. Several comparisons on one
page share the 5 % (Bonferroni).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

LEVEL = 0.05
_RESAMPLES = 10_000
_MOST_EXACT = 12
# Ways with as large a difference, after which more would say the same.
_CLEARLY = 10
Verdict = Literal["higher", "lower", "within noise", "too few runs"]
Seed = TypeVar("Seed")
_Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """A group compared with the baseline.

    Args:
        mean: the group's mean less the baseline's.
        low, high: the bootstrap interval of it, at 95 % for all comparisons together.
        chance: how often exchanging the two gives as large a difference.
        paired: whether runs of one seed were compared with each other.
        verdict: the conclusion.
    """

    mean: float
    low: float
    high: float
    chance: float
    paired: bool
    verdict: Verdict


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The bootstrap interval of the mean of at least one value.

    Args:
        values: of the runs.
        seed: of the resampling.
    """
    drawn = _resampled(np.asarray(values, dtype=np.float64), np.random.default_rng(seed))
    return _cut(drawn, LEVEL)


def difference(
    group: Mapping[Seed, float], baseline: Mapping[Seed, float], comparisons: int = 1, seed: int = 0
) -> Difference:
    """Compare a group of runs with the baseline's.

    Args:
        group: a value for each run, by its seed (and repetition).
        baseline: likewise.
        comparisons: how many comparisons there are on the page.
        seed: of the resampling: the same runs give the same answer.
    """
    level = LEVEL / max(1, comparisons)
    source = np.random.default_rng(seed)
    paired = group.keys() == baseline.keys() and len(group) > 1
    if paired:
        one = np.array([group[key] - baseline[key] for key in group], dtype=np.float64)
        mean, drawn = float(one.mean()), _resampled(one, source)
        chance = _flipped(one, source, level)
        least = 2.0 ** (1 - len(one))
    else:
        mine, theirs = (np.array(list(each.values()), dtype=np.float64) for each in (group, baseline))
        mean = float(mine.mean() - theirs.mean())
        drawn = _resampled(mine, source) - _resampled(theirs, source)
        chance = _exchanged(mine, theirs, source, level)
        least = _least(len(mine), len(theirs))
    low, high = _cut(drawn, level)
    if least >= level:
        # Not even the largest difference could be distinguished from chance.
        verdict: Verdict = "too few runs"
    elif chance < level and (low > 0 or high < 0):
        verdict = "higher" if mean > 0 else "lower"
    else:
        verdict = "within noise"
    return Difference(mean, low, high, chance, paired, verdict)


def needed(comparisons: int) -> int:
    """How many seeds a comparison needs before a difference can be called one, if both sides have the same seeds."""
    seeds = 2
    while 2.0 ** (1 - seeds) >= LEVEL / max(1, comparisons):
        seeds += 1
    return seeds


def _resampled(values: _Numbers, source: np.random.Generator) -> _Numbers:
    drawn: _Numbers = values[source.integers(0, len(values), (_RESAMPLES, len(values)))].mean(axis=1)
    return drawn


def _cut(drawn: _Numbers, level: float) -> tuple[float, float]:
    low, high = np.quantile(drawn, [level / 2, 1 - level / 2])
    return float(low), float(high)


def _flipped(differences: _Numbers, source: np.random.Generator, level: float) -> float:
    """Of all ways to exchange the two runs of each seed, the share with as large a mean."""
    count = len(differences)
    if count <= _MOST_EXACT:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=count)))
        return _as_large(signs @ differences, float(differences.sum())) / len(signs)

    def flipped() -> _Numbers:
        sums: _Numbers = source.choice((1.0, -1.0), (_RESAMPLES, count)) @ differences
        return sums

    return _share(flipped, float(differences.sum()), level)


def _exchanged(one: _Numbers, other: _Numbers, source: np.random.Generator, level: float) -> float:
    """Of random ways to split all runs into two such groups, the share with as large a difference of their means."""
    together = np.concatenate([one, other])

    def exchanged() -> _Numbers:
        mixed = together[source.random((_RESAMPLES, len(together))).argsort(axis=1)]
        means: _Numbers = mixed[:, : len(one)].mean(axis=1) - mixed[:, len(one) :].mean(axis=1)
        return means

    return _share(exchanged, float(one.mean() - other.mean()), level)


def _share(draw: Callable[[], _Numbers], seen: float, level: float) -> float:
    """Of random ways, the share with as large a difference.

    Args:
        draw: gives the differences of some ways.
        seen: the observed difference.
        level: more ways are drawn while too few have been for a share below this.
    """
    large = ways = 0
    while not ways or (large < _CLEARLY and ways * level < _CLEARLY):
        found = draw()
        large, ways = large + _as_large(found, seen), ways + len(found)
    # The observed split is one of the ways, too.
    return (large + 1) / (ways + 1)


def _as_large(found: _Numbers, seen: float) -> int:
    return int((np.abs(found) >= abs(seen) * (1 - 1e-9) - 1e-12).sum())


def _least(one: int, other: int) -> float:
    """The smallest share that two groups of these sizes can give: two out of all ways to split the runs."""
    ways = 1
    for step in range(min(one, other)):
        ways = ways * (one + other - step) // (step + 1)
    return 2 / ways if ways > 1 else 1.0
