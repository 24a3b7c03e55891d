"""Write the measurements: a JSON file with every figure, and the tables of docs/performance.md."""

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from kumulus.model.words import with_part

RESULTS = Path(__file__).parent / "results" / "latest.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"


@dataclass
class Row:
    """One comparison."""

    what: str
    """What is compared with what."""
    must: str
    """What has to be reached, in words."""
    reached: str
    """The figure, in words."""
    passed: bool
    """Whether it was reached."""
    figures: dict[str, float] = field(default_factory=dict)
    """Every number behind it, by name with its unit."""


def write(scenario: str, rows: list[Row], load: float, order: Iterable[str]) -> None:
    """Write a scenario's rows to the JSON file and the page, in place of those of its last run.

    Args:
        load: the load average when it began.
        order: the scenarios in the page's order.
    """
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known[scenario] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "system": platform.platform(),
        "cpus": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_average_before": round(load, 1),
        "rows": [asdict(row) for row in rows],
    }
    known = {name: known[name] for name in order if name in known}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(known, indent=2) + "\n")
    PAGE.write_text(with_part(PAGE.read_text(), "measured", tables(known)))


def tables(known: dict[str, Any]) -> str:
    """The rows as a Markdown table."""
    gates = ["| What | Must reach | Measured | | Load before |", "|---|---|---|---|---|"]
    for run in known.values():
        for row in run["rows"]:
            mark, load = "reached" if row["passed"] else "**missed**", run["load_average_before"]
            gates.append(f"| {row['what']} | {row['must']} | {row['reached']} | {mark} | {load} |")
    dates, run = sorted(run["date"] for run in known.values()), next(iter(known.values()))
    days = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    machine = f"{days}, {run['cpus']} CPUs, {run['memory_gib']} GiB:"
    return "\n".join(["", machine, "", *gates, "", ""])
