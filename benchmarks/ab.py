"""Comparisons of A and B whose truth is known: how often what has not changed is said to have, and what has is found.

Its table is in docs/ci.md.
"""

import statistics
from itertools import product
from pathlib import Path

from benchmarks.report import Row
from kumulus.model.words import with_part
from tests.support.simulated_ab import SimulatedAb

PAGE = Path(__file__).resolve().parents[1] / "docs" / "ci.md"
RUNS = 500
_NOISE, _SPREADS, _DRIFT, _SLOWER = (0.02, 0.05, 0.08, 0.1), ("normal", "heavy", "skewed"), (0.0, 0.002), 0.1
_MOST, _LEAST = 0.01, 0.95


async def decided() -> list[Row]:
    """500 comparisons of what has not changed, and of what is 10 % slower, for each noise, spread and drift."""
    figures: dict[str, float] = {}
    lines = [
        "",
        "| Runs differ by | said to have changed | of 10 % slower: found | pairs until then | alike after |",
        "|---|---|---|---|---|",
    ]
    for noise in _NOISE:
        wrong, found, until, alike = [], [], [], []
        for spread, drift in product(_SPREADS, _DRIFT):
            same = SimulatedAb(noise, spread=spread, drift=drift)
            slower = SimulatedAb(noise, slower=_SLOWER, spread=spread, drift=drift)
            verdicts = same.verdicts(RUNS)
            wrong.append((verdicts["better"] + verdicts["worse"]) / RUNS)
            found.append(slower.verdicts(RUNS)["worse"] / RUNS)
            until += slower.lengths(RUNS)
            alike += same.lengths(RUNS)
            about = f"{spread}, noise {noise:g}, drift {drift:g}"
            figures |= {f"changed, {about}": wrong[-1], f"found, {about}": found[-1]}
        cells = f"{max(wrong):.1%} | {min(found):.1%} | {_usual(until)} | {_usual(alike)}"
        lines.append(f"| {noise:.0%} | {cells} |".replace("%", " %"))
    PAGE.write_text(with_part(PAGE.read_text(), "simulated", "\n".join([*lines, "", ""])))
    worst = max(value for name, value in figures.items() if name.startswith("changed"))
    least = min(value for name, value in figures.items() if name.startswith("found"))
    cases = len(_NOISE) * len(_SPREADS) * len(_DRIFT)
    return [
        Row(
            f"{RUNS} simulated `experiment ab` of what has not changed, runs that differ by 2 to 10 %, {cases} cases",
            f"below {_MOST:.0%} are said to be better or worse, in each",
            f"{worst:.1%} in the worst",
            worst < _MOST,
            figures,
        ),
        Row(
            f"{RUNS} simulated `experiment ab` of what is 10 % slower",
            f"{_LEAST:.0%} are found, in each case",
            f"{least:.1%} in the worst",
            least >= _LEAST,
            {},
        ),
    ]


def _usual(lengths: list[int]) -> str:
    """The median, and what 95 % of them do not exceed."""
    return f"{statistics.median(lengths):.0f} (95%: {statistics.quantiles(lengths, n=20)[-1]:.0f})"
