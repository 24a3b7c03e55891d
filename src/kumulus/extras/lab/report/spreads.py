"""Plots of several runs: one for each measure, and one of allocated and fragmented GPUs by the demand that arrived."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from kumulus.extras.lab.file.measures import MEANINGS, UNITS
from kumulus.extras.lab.report import drawing
from kumulus.extras.lab.report.compare import INCOMPLETE, RunConditions, line_of, names
from kumulus.extras.lab.report.drawing import COLOURS
from kumulus.extras.lab.report.files import os_errors_explained
from kumulus.extras.lab.report.model import PolicyUsed, Report

_COLOUR, _DOT, *_ = drawing.COLOURS

Values = Mapping[str, Sequence[float]]
"""The values of a measure, one for each repetition and seed, by the group they belong to."""
_UNITS: Mapping[str, tuple[float, str]] = {
    "s": (1, "s"),
    "share": (100, "%"),
    "perSecond": (1, "per second"),
    "bytes": (1e-6, "MB"),
    "usd": (1, "$"),
    "gpuHours": (1, "GPU-h"),
    "gpuSeconds": (1, "GPU-s"),
}
"""By how much a value is multiplied in a plot, and what it then counts."""
_BY_DEMAND = "by-demand.svg"
_PANELS = (
    ("allocated_percent", "allocated, % of all GPUs", 60),
    ("fragmented_percent_of_all_gpus", "free, and no typical pod fits, % of all GPUs", 0),
)


def by_measure(reports: Sequence[Report]) -> dict[str, dict[str, list[float]]]:
    """The values of every measure that was taken: one line for all runs that differ by seed alone.

    What was cut off is not among them, and makes its line incomplete.
    """
    found: dict[str, dict[RunConditions, list[float]]] = {}
    incomplete: set[RunConditions] = set()
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
    """Write a file for each measure, named after it; returns the files."""
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
        factor, unit = _UNITS.get(UNITS.get(measure, "count"), (1, ""))
        for row, own in enumerate(values.values()):
            each = [factor * value for value in own]
            axes.plot([min(each), max(each)], [row, row], color=_COLOUR, linewidth=5, alpha=0.3, solid_capstyle="butt")
            axes.plot(each, [row] * len(each), "o", color=_DOT, markersize=4, alpha=0.8)
            axes.plot([statistics.fmean(each)], [row], "|", color=_COLOUR, markersize=14, markeredgewidth=2)
        axes.set_yticks(range(len(values)), [f"{name} (n = {len(each)})" for name, each in values.items()])
        axes.set_ylim(len(values) - 0.5, -0.5)
        drawing.plain(axes, along="x")
        axes.tick_params(axis="y", length=0)
        drawing.titled(axes, f"{measure}{f', {unit}' if unit else ''}")
        if meaning:
            axes.set_xlabel(meaning, fontsize=8)
        return drawing.svg(figure)


def write_by_demand(reports: Sequence[Report], directory: Path) -> list[Path]:
    """Draw the plot if any of the runs has these measures; returns the file."""
    groups = _groups(reports)
    if not groups:
        return []
    with drawing.drawn(10, 4, columns=2) as (figure, panels):
        for axes, (name, what, least) in zip(panels, _PANELS, strict=True):
            smallest: list[float] = []
            for number, (about, runs) in enumerate(groups.items()):
                curves: list[Mapping[str, float]] = [getattr(run, name) for run in runs]
                arrived = sorted({int(percent) for curve in curves for percent in curve})
                at = {each: [curve[str(each)] for curve in curves if str(each) in curve] for each in arrived}
                smallest.append(min((value for each in arrived if each >= least for value in at[each]), default=0.0))
                colour = COLOURS[number % len(COLOURS)]
                middle = [statistics.median(at[each]) for each in arrived]
                axes.plot(arrived, middle, color=colour, linewidth=1.4, label=about)
                if len(runs) > 1:
                    low, high = ([of(at[each]) for each in arrived] for of in (min, max))
                    axes.fill_between(arrived, low, high, color=colour, alpha=0.25, linewidth=0)
            axes.set_xlabel("demand arrived, % of all GPUs")
            drawing.titled(axes, what)
            # What nearly all runs have in common is left out, but nothing of a run that has less, or ends before.
            begin = least if min(smallest) > least - 1 else 0
            axes.set_ylim(bottom=begin)
            axes.set_xlim(left=begin)
            drawing.plain(axes)
        drawing.legend(panels[0], "upper left")
        return drawing.save(figure, directory / _BY_DEMAND)


def _groups(reports: Sequence[Report]) -> dict[str, list[PolicyUsed]]:
    found: dict[RunConditions, list[PolicyUsed]] = {}
    for report in reports:
        for test in report.results.tests:
            used = test.details.policy
            if used is None or not used.allocated_percent:
                continue
            by = f"{used.policy}, ties by {used.ties}" if used.policy else report.metadata.scheduler.name
            label = f"{report.metadata.experiment} · {by}"
            found.setdefault(line_of(report, test, label), []).append(used)
    called = names(found)
    return {f"{called[line]} (n = {len(runs)})": runs for line, runs in found.items()}
