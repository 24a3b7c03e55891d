"""Write what was measured: a JSON file with every figure, and the table of docs/performance.md."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil

RESULTS = Path(__file__).parent / "results" / "latest.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


@dataclass
class Row:
    """One comparison.

    Attributes:
        what: what is compared with what.
        must: what has to be reached, in words; empty when it is published only.
        reached: the figure, in words.
        passed: whether it was reached; None when there is nothing to reach.
        figures: every number behind it, by name with its unit.
    """

    what: str
    must: str
    reached: str
    passed: bool | None
    figures: dict[str, float] = field(default_factory=dict)


def write(rows: list[Row]) -> None:
    """Write the rows to the JSON file and into the page; the page's text around the table stays."""
    machine = {
        "system": platform.platform(),
        "cpus": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_average": psutil.getloadavg()[0],
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}, indent=2) + "\n")
    text = PAGE.read_text()
    head, rest = text.split(_BEGIN)
    tail = rest.split(_END)[1]
    PAGE.write_text(head + _BEGIN + "\n" + _table(rows, machine) + _END + tail)


def _table(rows: list[Row], machine: Mapping[str, object]) -> str:
    lines = [
        f"{machine['date']}, {machine['cpus']} CPUs, {machine['memory_gib']} GiB, "
        f"load average {machine['load_average']:.1f} at the end:",
        "",
        "| What | Must reach | Measured | |",
        "|---|---|---|---|",
    ]
    for row in rows:
        mark = {True: "reached", False: "**missed**", None: ""}[row.passed]
        lines.append(f"| {row.what} | {row.must} | {row.reached} | {mark} |")
    return "\n".join(lines) + "\n\n"
