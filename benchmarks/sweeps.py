"""Sweeps whose truth is known: how often one without a difference is said to have one, and one with it is found.

Its table is in docs/sweeps.md.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

from benchmarks.report import Row
from kumulus.model.words import with_part
from tests.support.simulated_sweeps import Simulated

PAGE = Path(__file__).resolve().parents[1] / "docs" / "sweeps.md"
SWEEPS = 1000
_SEEDS, _REPETITIONS, _SPREADS = range(2, 9), (1, 2, 3, 5, 10), (0.0, 0.3, 1.0, 3.0, 10.0)
# Of sweeps whose six comparisons share the level.
_LARGER_SEEDS = (9, 12, 16)
_MOST, _LEAST = 0.05, 0.8
_POWER_SEEDS = 16


async def judged() -> list[Row]:
    """Sweeps without a difference, of few seeds and many repetitions, and sweeps with one at 16 seeds."""
    false, larger, found = dict(_false()), dict(_false_of_larger()), dict(_found())
    PAGE.write_text(with_part(PAGE.read_text(), "simulated", _table(false, larger, found)))
    worst, least = max([*false.values(), *larger.values()]), min(found.values())
    figures = {f"false, {key}": share for key, share in [*false.items(), *larger.items()]}
    figures |= {f"found, {key}": share for key, share in found.items()}
    return [
        Row(
            f"{SWEEPS:,} simulated sweeps without a difference: 2 to 8 seeds of 1 to 10 repetitions, seeds that differ "
            f"0 to 10 times as much as runs, evenly or skewed: {len(false) + len(larger)} cases",
            f"at most {_MOST:.0%} are said to have one, in each",
            f"{worst:.1%} in the worst",
            worst <= _MOST,
            figures,
        ),
        Row(
            f"{SWEEPS:,} simulated sweeps of {_POWER_SEEDS} seeds, with a difference of one standard deviation of the "
            "seeds' differences",
            f"found in {_LEAST:.0%}",
            f"{least:.1%} in the worst of {len(found)} cases",
            least >= _LEAST,
            {},
        ),
    ]


def _false() -> Iterator[tuple[str, float]]:
    for skewed, seeds, repetitions, spread in product((False, True), _SEEDS, _REPETITIONS, _SPREADS):
        simulated = Simulated(seeds, repetitions, spread, skewed=skewed)
        yield _name(simulated), simulated.called(SWEEPS) / SWEEPS


def _false_of_larger() -> Iterator[tuple[str, float]]:
    for seeds, repetitions, spread in product(_LARGER_SEEDS, (1, 5), _SPREADS):
        simulated = Simulated(seeds, repetitions, spread, groups=4, measures=2)
        yield _name(simulated), simulated.called(SWEEPS) / SWEEPS


def _found() -> Iterator[tuple[str, float]]:
    for repetitions, spread in product(_REPETITIONS, _SPREADS):
        simulated = Simulated(_POWER_SEEDS, repetitions, spread, effect=1)
        yield _name(simulated), sum(each == ["higher"] for each in simulated.verdicts(SWEEPS)) / SWEEPS


def _name(simulated: Simulated) -> str:
    of = f"{simulated.groups} groups, " if simulated.groups > 2 else "skewed, " if simulated.skewed else ""
    return f"{of}{simulated.seeds} seeds x {simulated.repetitions}, {simulated.spread:g}"


def _table(false: dict[str, float], larger: dict[str, float], found: dict[str, float]) -> str:
    """The worst of all repetitions, as a Markdown table."""
    head = " | ".join(f"{spread:g}" for spread in _SPREADS)
    lines = ["", f"| Seeds that differ, ÷ noise of a run | {head} |", f"|---|{'---|' * len(_SPREADS)}"]

    def line(what: str, start: str, shares: dict[str, float], worst: Callable[[list[float]], float] = max) -> None:
        cells = []
        for spread in _SPREADS:
            of = [share for key, share in shares.items() if key.startswith(start) and key.endswith(f", {spread:g}")]
            cells.append(f"{worst(of):.1%}".replace("%", " %"))
        lines.append(f"| {what} | {' | '.join(cells)} |")

    for seeds in _SEEDS:
        line(f"{seeds} seeds", f"{seeds} seeds", false)
    line("2 to 8 seeds, skewed", "skewed", false)
    for seeds in _LARGER_SEEDS:
        line(f"{seeds} seeds, 6 comparisons", f"4 groups, {seeds} seeds", larger)
    line(f"**a difference, {_POWER_SEEDS} seeds: found**", f"{_POWER_SEEDS} seeds", found, min)
    return "\n".join([*lines, "", ""])
