"""Sweeps whose truth is known: runs are drawn, and the product's page is asked what it calls a difference."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kumulus.extras.lab.sweep import page
from kumulus.extras.lab.sweep.file import Sweep
from kumulus.extras.lab.sweep.store import CellResult

MEASURES = ("timeToSchedule.p50", "makespan", "allocation.gpuEnd")


@dataclass(frozen=True)
class Simulated:
    """A sweep of some groups."""

    seeds: int
    """How many."""
    repetitions: int
    """Of each seed."""
    spread: float
    """Of what a seed adds to one group's figures and not to another's, in standard deviations of the difference of two
    groups; the noise of a run is 1."""
    effect: float = 0.0
    """What the other groups have more than the first, in standard deviations of the seeds' differences."""
    groups: int = 2
    """How many."""
    measures: int = 1
    """How many."""
    skewed: bool = False
    """Whether a few seeds and runs are much slower than most, instead of a normal spread."""

    def verdicts(self, count: int) -> list[list[str]]:
        """The verdicts of so many sweeps, one for each comparison."""
        source = np.random.default_rng(41)
        sweep = Sweep.model_construct(
            name="simulated",
            experiment="e.yaml",
            live=True,
            matrix={"policy": list(range(self.groups)), "seed": list(range(self.seeds))},
            baseline={},
            measures=list(MEASURES[: self.measures]),
        )
        tables = (page.tables(sweep, self._results(source)) for _ in range(count))
        return [
            [row.against.verdict for rows in table.values() for row in rows if row.against is not None]
            for table in tables
        ]

    def called(self, count: int) -> int:
        """Of so many sweeps, how many call anything a difference."""
        return sum(not {"higher", "lower"}.isdisjoint(each) for each in self.verdicts(count))

    def _results(self, source: np.random.Generator) -> list[CellResult]:
        shape = (self.groups, self.seeds, self.repetitions, self.measures)
        each_seed = 5.0 * self._drawn(source, (1, *shape[1:2], 1, 1))
        each_group = self.spread / math.sqrt(2) * self._drawn(source, (*shape[:2], 1, shape[3]))
        values = 100 + each_seed + each_group + self._drawn(source, shape)
        values[1:] += self.effect * math.sqrt(self.spread**2 + 2 / self.repetitions)
        return [
            CellResult(
                f"{group}-{seed}",
                {"policy": group, "seed": seed},
                seed,
                "success",
                [dict(zip(MEASURES, run, strict=False)) for run in values[group, seed].tolist()],
            )
            for group in range(self.groups)
            for seed in range(self.seeds)
        ]

    def _drawn(self, source: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        return source.exponential(size=shape) - 1 if self.skewed else source.normal(size=shape)
