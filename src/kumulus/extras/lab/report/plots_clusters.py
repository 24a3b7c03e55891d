"""The plot of a federation: where its Jobs were over time, with what its timeline did to workers."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes

from kumulus.extras.lab.report import drawing
from kumulus.extras.lab.report.model import Test
from kumulus.extras.lab.report.plots_moments import happened, moments

_WAITING, _ON, _COMPLETED = "jobs waiting", "jobs on ", "jobs completed"
_ON_HUB = "waiting on the hub"


def write(test: Test, directory: Path, name: str) -> list[Path]:
    """Draw a repetition, once as SVG and once as PNG; returns the files.

    Args:
        test: the repetition.
        directory: to write to.
        name: of the files.

    Raises:
        LabError: a file cannot be written.
    """
    with drawing.drawn(9, 4.2) as (figure, [axes]):
        _jobs(axes, test)
        happened(axes, test)
        drawing.plain(axes)
        figure.supxlabel("\n".join(moments(test)), fontsize=8, x=0.01, ha="left", color="#444444")
        return drawing.save(figure, directory / f"{name}.svg", directory / f"{name}.png")


def _jobs(axes: Axes, test: Test) -> None:
    """Jobs on each worker, stacked, with those that wait on top, and a line for those that have completed."""
    series = test.details.series
    drawing.titled(axes, f"{test.test_name}: Jobs by cluster")
    axes.set_xlabel("seconds")
    if workers := [column for column in series if column.startswith(_ON)]:
        areas = [*((each.removeprefix("jobs "), series[each]) for each in workers), (_ON_HUB, series[_WAITING])]
        drawing.stacked(axes, series["t"], areas, rest=_ON_HUB)
        axes.plot(series["t"], series[_COMPLETED], "--", color=drawing.INK, linewidth=1, label="completed")
        drawing.legend_beside(axes)
    axes.set_xlim(0)
    axes.set_ylim(0)
