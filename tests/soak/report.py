"""Count the recorded trials and write the table of docs/reliability.md."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from kumulus.model.words import with_part
from tests.support.trials import Trial, recorded

RECORD = Path(__file__).resolve().parent / "results" / "trials.jsonl"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"


def publish(record: Path = RECORD, page: Path = PAGE) -> None:
    """Write the table into the page; the page's text around it stays."""
    found = list(recorded(record))
    page.write_text(with_part(page.read_text(), "counted", table(found)))


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
