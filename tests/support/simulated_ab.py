"""Runs of A and B whose truth is known: their measures are drawn, and the product is asked when it is decided."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kumulus.extras.lab.ab.pairs import Pairs

MEASURE = "timeToSchedule.p99"


@dataclass(frozen=True)
class SimulatedAb:
    """A and B, of which each run differs from the next by noise."""

    noise: float
    """The standard deviation of a run's logarithm: 0.05 is 5 %."""
    slower: float = 0.0
    """By how much B is slower than A, as a share of its time."""
    spread: str = "normal"
    """How runs are spread: normal, heavy (now and then one is far off) or skewed (a few are much slower)."""
    drift: float = 0.0
    """By how much each run is slower than the one before, as on a machine that fills up."""
    pairs: int = 100
    """The most."""

    def verdicts(self, count: int) -> Counter[str]:
        """Of so many comparisons until it is decided, how many have each verdict."""
        source = np.random.default_rng(45)
        return Counter(self._one(source)[0] for _ in range(count))

    def lengths(self, count: int) -> list[int]:
        """How many pairs each of so many comparisons took."""
        source = np.random.default_rng(45)
        return [self._one(source)[1] for _ in range(count)]

    def _one(self, source: np.random.Generator) -> tuple[str, int]:
        pairs = Pairs((MEASURE,), 0.1)
        noise = self.noise * self._drawn(source, (self.pairs, 2))
        # Which comes first is drawn, as where they are run.
        for number, first in enumerate(source.integers(0, 2, self.pairs)):
            one, two = (noise[number, side] + self.drift * (2 * number + (side != first)) for side in (0, 1))
            a, b = 10 * np.exp(one), 10 * (1 + self.slower) * np.exp(two)
            pairs.runs.append(({MEASURE: float(a)}, {MEASURE: float(b)}))
            if pairs.verdict != "not decided":
                break
        return pairs.verdict, len(pairs.runs)

    def _drawn(self, source: np.random.Generator, shape: tuple[int, int]) -> npt.NDArray[np.float64]:
        if self.spread == "heavy":
            heavy: npt.NDArray[np.float64] = source.standard_t(3, shape) / np.sqrt(3)
            return heavy
        return source.exponential(size=shape) - 1 if self.spread == "skewed" else source.normal(size=shape)
