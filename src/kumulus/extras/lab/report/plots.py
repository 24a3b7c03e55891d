"""The plots of a repetition, as SVG and PNG: pods, GPUs by product and zone, time to schedule, CPU time, cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.axes import Axes

from kumulus.extras.lab.file.measures import PERCENTILES
from kumulus.extras.lab.file.units import NOT_MEASURED
from kumulus.extras.lab.report import drawing
from kumulus.extras.lab.report import plots_clusters as clusters
from kumulus.extras.lab.report import plots_nodes as nodes
from kumulus.extras.lab.report import plots_users as users
from kumulus.extras.lab.report.drawing import COLOURS, INK
from kumulus.extras.lab.report.heard import unheard
from kumulus.extras.lab.report.model import Report, Test
from kumulus.extras.lab.report.plots_moments import happened, moments

Panel = Callable[[Axes, Test], None]


def write(report: Report, directory: Path) -> list[Path]:
    """Draw every repetition of a run into its directory; returns the files.

    Raises:
        LabError: a file cannot be written.
    """
    found = []
    for number, test in enumerate(report.results.tests, start=1):
        found += _draw(report, test, directory, f"repetition-{number}")
        if test.details.clusters is not None:
            found += clusters.write(test, directory, f"clusters-{number}")
    return [*found, *_users(report, directory)]


def _users(report: Report, directory: Path) -> list[Path]:
    found = []
    for number, test in enumerate(report.results.tests, start=1):
        if test.details.users is not None:
            found += users.write(test.details.users, test.details.measures, directory, f"users-{number}")
    return found


def _draw(report: Report, test: Test, directory: Path, name: str) -> list[Path]:
    """One repetition in four panels; in six, with its nodes and what they cost, if nodes come and go."""
    panels: list[Panel] = [_pods, _gpus, _time_to_schedule, _cpu]
    if nodes.vary(test.details.series):
        panels[1:1] = [_nodes]
        panels[-1:-1] = [_hourly]
    columns = len(panels) // 2
    with drawing.drawn(5.5 * columns, 6.4, 2, columns) as (figure, places):
        for panel, place in zip(panels, places, strict=True):
            panel(place, test)
            if place.get_xlabel():
                happened(place, test)
            drawing.plain(place)
        metadata, title = report.metadata, test.test_name
        figure.suptitle(
            f"{title} · {_size(test, metadata.cluster.nodes)} · {metadata.scheduler.name} scheduler · {test.status}",
            fontsize=11,
            x=0.01,
            ha="left",
        )
        figure.supxlabel("\n".join([*moments(test), *unheard([test])]), fontsize=8, x=0.01, ha="left", color="#444444")
        return drawing.save(figure, directory / f"{name}.svg", directory / f"{name}.png")


def _size(test: Test, begun_with: int) -> str:
    measures = test.details.measures
    if nodes.vary(test.details.series):
        return f"{measures.get('nodes.peak', begun_with):,.0f} nodes at most"
    return f"{begun_with:,} nodes"


def _pods(axes: Axes, test: Test) -> None:
    series = test.details.series
    for index, name in enumerate(("created", "bound", "running", "pending")):
        if name in series:
            axes.plot(series["t"], series[name], color=COLOURS[index], label=name)
    _panel(axes, "pods")


def _gpus(axes: Axes, test: Test) -> None:
    """GPUs by product and zone, stacked, with the capacity as a line."""
    series = test.details.series
    cells = [name for name in series if name.startswith("gpus ")]
    if not cells:
        axes.plot(series.get("t", []), series.get("jobs partly admitted", []), color=COLOURS[0])
        _panel(axes, "jobs partly admitted", legend=False)
        return
    drawing.stacked(axes, series["t"], [(cell.removeprefix("gpus "), series[cell]) for cell in cells])
    axes.plot(series["t"], series["gpu capacity"], "--", color=INK, linewidth=1, label="capacity")
    _panel(axes, "GPUs allocated", legend=False)
    drawing.legend_beside(axes)


def _time_to_schedule(axes: Axes, test: Test) -> None:
    measures = test.details.measures
    parts = ("min", *(f"p{percent}" for percent in PERCENTILES), "max")
    shown = ("timeToSchedule", "timeToRun")
    for index, name in enumerate(shown):
        values = [measures.get(f"{name}.{part}", 0.0) for part in parts]
        places = [place + 0.4 * index for place in range(len(parts))]
        axes.bar(places, values, width=0.38, color=COLOURS[index], label=name)
    axes.set_xticks([place + 0.2 for place in range(len(parts))], parts)
    unknown = [f"{name}.{part}" for name in shown for part in parts if f"{name}.{part}" in test.details.not_measured]
    lacks = f", {len(unknown)} of these {NOT_MEASURED}" if unknown else ""
    _panel(axes, f"seconds from creation{lacks}", over_time=False)


def _nodes(axes: Axes, test: Test) -> None:
    """Nodes by instance type, stacked; changes are steps, as nodes come and go as a whole."""
    series = test.details.series
    drawing.stacked(axes, series["t"], nodes.by_type(series, len(COLOURS)).items(), step="post")
    _panel(axes, "nodes by instance type", legend=False)
    drawing.legend_beside(axes)


def _hourly(axes: Axes, test: Test) -> None:
    series, measures = test.details.series, test.details.measures
    axes.plot(series["t"], series.get("cost per hour", [0.0] * len(series["t"])), color=COLOURS[0])
    total = f", ${measures['cost.total']:,.2f} in all" if "cost.total" in measures else ""
    _panel(axes, f"dollars an hour{total}", legend=False)


def _cpu(axes: Axes, test: Test) -> None:
    series = test.details.series
    names = [name for name in series if name.startswith("cpu ")]
    for index, name in enumerate(sorted(names, key=lambda name: -series[name][-1])):
        axes.plot(series["t"], series[name], color=COLOURS[index % len(COLOURS)], label=name.removeprefix("cpu "))
    _panel(axes, "CPU seconds used")


def _panel(axes: Axes, title: str, legend: bool = True, over_time: bool = True) -> None:
    drawing.titled(axes, title)
    axes.set_ylim(0)
    if over_time:
        axes.set_xlim(0)
        axes.set_xlabel("seconds")
    if legend:
        drawing.legend(axes)
