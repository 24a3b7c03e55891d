"""Count the recorded trials and write the table of docs/reliability.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from tests.support.trials import Trial, recorded

RECORD = Path(__file__).resolve().parent / "results" / "trials.jsonl"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
_BEGIN, _END = "<!-- counted: begin -->", "<!-- counted: end -->"


def publish(record: Path = RECORD, page: Path = PAGE) -> None:
    """Write the table into the page; the page's text around it stays."""
    found = list(recorded(record))
    text = page.read_text()
    head, rest = text.split(_BEGIN)
    tail = rest.split(_END)[1]
    page.write_text(f"{head}{_BEGIN}\n{table(found)}{_END}{tail}")


def table(found: Sequence[tuple[str, Trial]]) -> str:
    """The counts by fault and operation.

    Args:
        found: trials, each with its date.
    """
    groups: dict[tuple[str, str], list[Trial]] = {}
    for _, trial in found:
        groups.setdefault((trial.fault, trial.during), []).append(trial)
    dates = sorted({date for date, _ in found})
    failed = sum(not trial.converged for _, trial in found)
    lines = [
        f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}: {len(found)} trials, "
        f"{failed} of which did not converge. "
        f"Every fault struck, {sum(trial.injected for _, trial in found):,} times in all; "
        f"{sum(trial.redrawn for _, trial in found)} that came too late were drawn anew.",
        "",
        "| Fault | During | Tried | Struck | Converged | Seconds, median | Longest |",
        "|---|---|---|---|---|---|---|",
    ]
    for (fault, during), trials in groups.items():
        seconds = [trial.seconds for trial in trials]
        struck = sum(trial.injected for trial in trials)
        good = sum(trial.converged for trial in trials)
        timed = [f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}"] if any(seconds) else ["", ""]
        lines.append(f"| {fault} | {during} | {len(trials)} | {struck:,} | {good} | {' | '.join(timed)} |")
    return "\n".join(lines) + "\n\n"
