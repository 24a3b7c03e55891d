"""A plot for each measure: each run as a dot, with the mean and the range of runs that differ by seed alone."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from kumulus.extras.lab.file.measures import MEANINGS, UNITS
from kumulus.extras.lab.report import drawing
from kumulus.extras.lab.report.compare import INCOMPLETE
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.extras.lab.report.lines import Line, line_of, names
from kumulus.extras.lab.report.model import Report

_COLOUR, _DOT, *_ = drawing.COLOURS

Values = Mapping[str, Sequence[float]]
"""The values of a measure, one for each repetition and seed, by the group they belong to."""


def by_measure(reports: Sequence[Report]) -> dict[str, dict[str, list[float]]]:
    """The values of every measure that was taken: one line for all runs that differ by seed alone.

    What was cut off is not among them, and makes its line incomplete.
    """
    found: dict[str, dict[Line, list[float]]] = {}
    incomplete: set[Line] = set()
    for report in reports:
        for test in report.results.tests:
            used = test.details.policy
            about = (report.metadata.experiment, (used and used.policy) or report.metadata.scheduler.name)
            line = line_of(report, test, " · ".join(about))
            if test.status == "partial":
                incomplete.add(line)
                continue
            for measure, value in test.details.measures.items():
                found.setdefault(measure, {}).setdefault(line, []).append(value)
    called = names(line for lines in found.values() for line in lines)
    called |= {line: f"{name} · {INCOMPLETE}" for line, name in called.items() if line in incomplete}
    return {measure: {called[line]: each for line, each in lines.items()} for measure, lines in found.items()}


def write(reports: Sequence[Report], directory: Path) -> list[Path]:
    """Write a file for each measure, named after it; returns the files.

    Raises:
        LabError: a file cannot be written.
    """
    with os_errors_explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for measure, values in by_measure(reports).items():
        if any(any(each) for each in values.values()):
            paths.append(directory / f"{measure}.svg")
            with os_errors_explained(paths[-1]):
                paths[-1].write_text(svg(measure, values, MEANINGS.get(measure, "")), encoding="utf-8")
    return paths


def svg(measure: str, values: Values, meaning: str = "") -> str:
    """The plot of a measure, as SVG."""
    with drawing.drawn(8, 0.9 + 0.36 * len(values)) as (figure, [axes]):
        for row, each in enumerate(values.values()):
            axes.plot([min(each), max(each)], [row, row], color=_COLOUR, linewidth=5, alpha=0.3, solid_capstyle="butt")
            axes.plot(each, [row] * len(each), "o", color=_DOT, markersize=4, alpha=0.8)
            axes.plot([statistics.fmean(each)], [row], "|", color=_COLOUR, markersize=14, markeredgewidth=2)
        axes.set_yticks(range(len(values)), [f"{name} (n = {len(each)})" for name, each in values.items()])
        axes.set_ylim(len(values) - 0.5, -0.5)
        drawing.plain(axes, along="x")
        unit = UNITS.get(measure, "")
        drawing.titled(axes, f"{measure}{f', {unit}' if unit not in ('', 'count') else ''}")
        if meaning:
            axes.set_xlabel(meaning, fontsize=8)
        return drawing.svg(figure)
