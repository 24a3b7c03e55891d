"""A plot of allocated and fragmented GPUs by the demand that has arrived, one line for all seeds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from kumulus.extras.lab.report import drawing
from kumulus.extras.lab.report.drawing import COLOURS
from kumulus.extras.lab.report.lines import Line, line_of, names
from kumulus.extras.lab.report.model import PolicyUsed, Report

FILE = "by-demand.svg"
_PANELS = (
    ("allocated_percent", "allocated, % of all GPUs", 60),
    ("fragmented_percent_of_all_gpus", "free, and no typical pod fits, % of all GPUs", 0),
)


def write(reports: Sequence[Report], directory: Path) -> list[Path]:
    """Draw the plot if any of the runs has these measures; returns the file.

    Raises:
        LabError: it cannot be written.
    """
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
        return drawing.save(figure, directory / FILE)


def _groups(reports: Sequence[Report]) -> dict[str, list[PolicyUsed]]:
    """The outcomes of the runs: one line for all that differ by seed alone."""
    found: dict[Line, list[PolicyUsed]] = {}
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
