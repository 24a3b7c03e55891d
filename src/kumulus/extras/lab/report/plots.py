"""The plots of a run, as SVG and PNG: repetitions, Jobs by cluster, and what users had."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes

from kumulus.extras.lab.file.amount import NOT_MEASURED
from kumulus.extras.lab.file.measures import PERCENTILES
from kumulus.extras.lab.report import drawing
from kumulus.extras.lab.report.drawing import COLOURS, INK
from kumulus.extras.lab.report.model import ByUser, OfUser, Report, Test
from kumulus.extras.lab.report.text import assumed, unheard

_NODES = "nodes "
_OTHERS = "others"

Panel = Callable[[Axes, Test], None]
_MOST_MOMENTS = 8
_WAITING, _ON, _COMPLETED = "jobs waiting", "jobs on ", "jobs completed"
_ON_HUB = "waiting on the hub"
_MOST_USERS = 9


def write(report: Report, directory: Path) -> list[Path]:
    """Draw every repetition of a run into its directory; returns the files."""
    found = []
    for number, test in enumerate(report.results.tests, start=1):
        found += _draw(report, test, directory, f"repetition-{number}")
        if test.details.clusters is not None:
            found += _draw_clusters(test, directory, f"clusters-{number}")
        if test.details.users is not None:
            found += _draw_users(test.details.users, test.details.measures, directory, f"users-{number}")
    return found


def _draw(report: Report, test: Test, directory: Path, name: str) -> list[Path]:
    """One repetition in four panels; in six, with its nodes and what they cost, if nodes come and go."""
    panels: list[Panel] = [_pods, _gpus, _time_to_schedule, _cpu]
    if vary(test.details.series):
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
        figure.supxlabel(
            "\n".join([*moments(test), *unheard([test]), *assumed([test])]),
            fontsize=8,
            x=0.01,
            ha="left",
            color="#444444",
        )
        return drawing.save(figure, directory / f"{name}.svg", directory / f"{name}.png")


def _size(test: Test, begun_with: int) -> str:
    measures = test.details.measures
    if vary(test.details.series):
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
    drawing.legend_outside(axes)


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
    drawing.stacked(axes, series["t"], by_type(series, len(COLOURS)).items(), step="post")
    _panel(axes, "nodes by instance type", legend=False)
    drawing.legend_outside(axes)


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


# Nodes by instance type over time, for runs in which nodes come and go. Pure.


def vary(series: Mapping[str, Sequence[float]]) -> bool:
    """Whether nodes of any type come or go."""
    return any(len(set(values)) > 1 for name, values in series.items() if name.startswith(_NODES))


def by_type(series: Mapping[str, Sequence[float]], most: int) -> dict[str, list[float]]:
    """How many nodes there are of each type, the most frequent types first, and the rest as one."""
    found = {name.removeprefix(_NODES): list(values) for name, values in series.items() if name.startswith(_NODES)}
    there = sorted((name for name, values in found.items() if any(values)), key=lambda name: (-sum(found[name]), name))
    if len(there) <= most:
        return {name: found[name] for name in there}
    rest = [sum(counts) for counts in zip(*(found[name] for name in there[most - 1 :]), strict=True)]
    return {**{name: found[name] for name in there[: most - 1]}, _OTHERS: rest}


def happened(axes: Axes, test: Test) -> None:
    """Draw a line for each action of the timeline, with its number in the list below the panels."""
    together: dict[int, list[str]] = {}
    for number, moment in enumerate(test.details.timeline, start=1):
        together.setdefault(round(moment.at), []).append(str(number))
    for at, numbers in together.items():
        axes.axvline(at, color=INK, linewidth=0.7, linestyle=":")
        axes.annotate(
            ", ".join(numbers),
            (at, 1.0),
            (2, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=7,
            ha="left",
            va="top",
        )


def moments(test: Test) -> list[str]:
    """The list of actions, a line for each; no more than fit below a plot."""
    timeline = test.details.timeline
    found = [f"{number}  {each.at:,.0f} s: {each.what}" for number, each in enumerate(timeline, start=1)]
    more = len(found) - _MOST_MOMENTS
    return [*found[:_MOST_MOMENTS], f"and {more} more"] if more > 0 else found


def _draw_clusters(test: Test, directory: Path, name: str) -> list[Path]:
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
        drawing.legend_outside(axes)
    axes.set_xlim(0)
    axes.set_ylim(0)


def _draw_users(found: ByUser, measures: Mapping[str, float], directory: Path, name: str) -> list[Path]:
    most = sorted(found.users, key=lambda each: -found.users[each].hours)[:_MOST_USERS]
    users = {each: found.users[each] for each in most}
    with drawing.drawn(11, 6.4, 2, 2) as (figure, [waits, slowdowns, shares, hours]):
        _bars(waits, users, lambda user: user.waited, "seconds until all of a job has nodes for good")
        _bars(slowdowns, users, lambda user: user.slowdown, "slowdown of completed jobs")
        _shares(shares, found)
        _gpu_hours(hours, measures)
        for axes in figure.axes:
            drawing.plain(axes)
        return drawing.save(figure, directory / f"{name}.svg", directory / f"{name}.png")


def _bars(axes: Axes, users: Mapping[str, OfUser], of: Callable[[OfUser], Mapping[str, float]], title: str) -> None:
    for index, part in enumerate(f"p{percent}" for percent in PERCENTILES):
        places = [place + 0.27 * index for place in range(len(users))]
        axes.bar(places, [of(user).get(part, 0.0) for user in users.values()], 0.25, color=COLOURS[index], label=part)
    axes.set_xticks([place + 0.27 for place in range(len(users))], [name[:14] for name in users], rotation=20)
    drawing.titled(axes, title)
    drawing.legend(axes)


def _shares(axes: Axes, found: ByUser) -> None:
    drawing.titled(axes, f"share of {found.of.upper().removesuffix('S')}s in use")
    axes.set_ylim(0, 1)
    if "t" not in found.shares:
        return
    areas = [(name, values) for name, values in found.shares.items() if name != "t"]
    drawing.stacked(axes, found.shares["t"], areas)
    axes.set_xlabel("seconds")
    drawing.legend_outside(axes)


def _gpu_hours(axes: Axes, measures: Mapping[str, float]) -> None:
    names = [name for name in ("used", "idle", "stranded") if f"gpuHours.{name}" in measures]
    axes.bar(names, [measures[f"gpuHours.{name}"] for name in names], color=COLOURS[: len(names)], width=0.6)
    drawing.titled(axes, "GPU-hours (stranded: of the idle ones)")
