"""A picture for each measure: each run as a dot, with the median and the range of those that differ by seed alone."""

from __future__ import annotations

import io
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.figure import Figure

from kumulus.lab.file.measures import MEANINGS, UNITS
from kumulus.lab.report.files import telling
from kumulus.lab.report.model import Report

_COLOUR, _DOT = "#1b6ca8", "#d98324"

Values = Mapping[str, Sequence[float]]
"""The values of a measure, one for each repetition and seed, by what they are of."""


def by_measure(reports: Sequence[Report]) -> dict[str, dict[str, list[float]]]:
    """The values of every measure that was taken, by experiment, scheduler and policy: one line for all seeds."""
    found: dict[str, dict[str, list[float]]] = {}
    for report in reports:
        for test in report.results.tests:
            used = test.details.policy
            about = (report.metadata.experiment, (used and used.policy) or report.metadata.scheduler.name)
            for measure, value in test.details.measures.items():
                found.setdefault(measure, {}).setdefault(" · ".join(about), []).append(value)
    return found


def write(reports: Sequence[Report], directory: Path) -> list[Path]:
    """A file for each measure, called as it; returns the files.

    Raises:
        LabError: a file cannot be written.
    """
    with telling(directory):
        directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for measure, values in by_measure(reports).items():
        if any(any(each) for each in values.values()):
            paths.append(directory / f"{measure}.svg")
            with telling(paths[-1]):
                paths[-1].write_text(svg(measure, values, MEANINGS.get(measure, "")), encoding="utf-8")
    return paths


def svg(measure: str, values: Values, meaning: str = "") -> str:
    """The picture of a measure, as SVG."""
    figure = _draw(measure, values, meaning)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    found = text.getvalue()
    return found[found.index("<svg") :]


def _draw(measure: str, values: Values, meaning: str) -> Figure:
    with pyplot.rc_context({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "kumulus"}):
        figure, axes = pyplot.subplots(figsize=(8, 0.9 + 0.36 * len(values)), layout="constrained")
        for row, each in enumerate(values.values()):
            axes.plot([min(each), max(each)], [row, row], color=_COLOUR, linewidth=5, alpha=0.3, solid_capstyle="butt")
            axes.plot(each, [row] * len(each), "o", color=_DOT, markersize=4, alpha=0.8)
            axes.plot([statistics.median(each)], [row], "|", color=_COLOUR, markersize=14, markeredgewidth=2)
        axes.set_yticks(range(len(values)), [f"{name} (n = {len(each)})" for name, each in values.items()])
        axes.set_ylim(len(values) - 0.5, -0.5)
        axes.grid(axis="x", color="#dddddd", linewidth=0.5)
        axes.spines[["top", "right", "left"]].set_visible(False)
        unit = UNITS.get(measure, "")
        axes.set_title(f"{measure}{f', {unit}' if unit not in ('', 'count') else ''}", fontsize=10, loc="left")
        if meaning:
            axes.set_xlabel(meaning, fontsize=8)
    return figure
