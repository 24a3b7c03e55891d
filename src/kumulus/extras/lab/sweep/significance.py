"""Whether two groups of runs differ: what is known of all seeds from a few of them.

A seed is a workload. Its repetitions say how exact its figure is, and nothing about other workloads, so they are
averaged first, and n is the number of seeds. Groups are compared seed by seed.

The interval is made of typical values (Hartigan, "Using Subsample Values as Typical Values", 1969): the means of all
subsets of n values divide the line into 2^n parts, each of which holds the centre equally often, however the values are
spread, if they are spread alike to both sides. A difference of two groups that do not differ is. It is the interval of
Fisher's permutation test (1935), in which the two runs of a seed are exchanged: a difference is called one where the
interval excludes 0. Several comparisons share the level (Bonferroni).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

PROMISED = 0.05
"""At most this share of sweeps without a difference are said to have one, and of intervals miss the mean."""

# What the tests use of it: a count of false ones among 1,000 sweeps is then below 50, too, and not only on average.
_TESTED = 0.035
_DRAWN = 10_000
# Of so many times as many subsets as are drawn, few are drawn twice.
_RARELY_TWICE = 4
# Smaller differences are of how floats are added up.
_EQUAL = 1e-9
Verdict = Literal["higher", "lower", "within noise", "one seed", "too few seeds", "incomplete"]
Interval = tuple[float, float]
_Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GroupDifference:
    """A group compared with the baseline, by the seeds that both have."""

    mean: float
    """Of the group's values less the baseline's."""
    interval: Interval | None
    """Of it, at the level that all comparisons share; None for too few seeds."""
    seeds: int
    verdict: Verdict


def interval(values: Sequence[float], level: float = PROMISED) -> Interval | None:
    """The interval of the centre of some values; None where there are too few for its level.

    Args:
        values: one for each seed.
        level: how often it may miss.
    """
    means = _means_of_subsets(np.asarray(values, dtype=np.float64), level)
    if not (aside := int(level * (len(means) + 1) / 2)):
        return None
    low, high = aside - 1, len(means) - aside
    means.partition((low, high))
    return float(means[low]), float(means[high])


def difference(
    group: Mapping[int, float], baseline: Mapping[int, float], comparisons: int, *, incomplete: bool = False
) -> GroupDifference | None:
    """Compare a group with the baseline; None where they have no seed in common.

    Args:
        group: a value for each seed.
        baseline: likewise.
        comparisons: how many comparisons there are on the page.
        incomplete: whether seeds are missing whose runs were cut off: those left may be the easy ones.
    """
    apart = [_apart(group[seed], baseline[seed]) for seed in group if seed in baseline]
    if not apart:
        return None
    mean, found = math.fsum(apart) / len(apart), interval(apart, _TESTED / max(1, comparisons))
    return GroupDifference(mean, found, len(apart), "incomplete" if incomplete else _verdict(len(apart), found))


def needed(comparisons: int) -> int:
    """How many seeds a comparison needs before a difference can be called one."""
    return math.ceil(1 - math.log2(_TESTED / max(1, comparisons)))


def _verdict(seeds: int, found: Interval | None) -> Verdict:
    if seeds == 1:
        return "one seed"
    if found is None:
        return "too few seeds"
    return "higher" if found[0] > 0 else "lower" if found[1] < 0 else "within noise"


def _apart(one: float, other: float) -> float:
    return 0.0 if math.isclose(one, other, rel_tol=_EQUAL) else one - other


def _means_of_subsets(values: _Numbers, level: float) -> _Numbers:
    """The means of all subsets but the empty one; of many values, those of drawn subsets."""
    count = len(values)
    # A block more than the level takes: an empty subset may be among them.
    blocks = math.ceil(2 / level / _DRAWN + 0.01)
    if 2**count <= _RARELY_TWICE * blocks * _DRAWN:
        subsets = [_all_subsets(count)]
    else:
        subsets = [_drawn_subsets(count, block) for block in range(blocks)]
    return np.concatenate([chosen @ values / chosen.sum(axis=1) for chosen in subsets])


# Rows of zeros and ones, the same for all comparisons of a page: the same values give the same answer.
@lru_cache(maxsize=4)
def _all_subsets(count: int) -> _Numbers:
    return (np.arange(1, 2**count)[:, None] >> np.arange(count) & 1).astype(np.float64)


@lru_cache(maxsize=32)
def _drawn_subsets(count: int, block: int) -> _Numbers:
    chosen = np.random.default_rng([count, block]).integers(0, 2, (_DRAWN, count))
    return chosen[chosen.any(axis=1)].astype(np.float64)
