"""The plot of what users had: waits, slowdowns, shares over time, and GPU-hours used, idle and stranded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.axes import Axes

from kumulus.extras.lab.file.measures import PERCENTILES
from kumulus.extras.lab.report import drawing
from kumulus.extras.lab.report.drawing import COLOURS
from kumulus.extras.lab.report.model import ByUser, OfUser

_MOST = 9


def write(found: ByUser, measures: Mapping[str, float], directory: Path, name: str) -> list[Path]:
    """Draw what users had, once as SVG and once as PNG; returns the files.

    Args:
        found: the users.
        measures: of the repetition.
        directory: to write to.
        name: of the files.

    Raises:
        LabError: a file cannot be written.
    """
    most = sorted(found.users, key=lambda each: -found.users[each].hours)[:_MOST]
    users = {each: found.users[each] for each in most}
    with drawing.drawn(11, 6.4, 2, 2) as (figure, [waits, slowdowns, shares, hours]):
        _bars(waits, users, lambda user: user.waited, "seconds until all of a job has nodes for good")
        _bars(slowdowns, users, lambda user: user.slowdown, "slowdown of completed jobs")
        _shares(shares, found)
        _hours(hours, measures)
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
    drawing.legend_beside(axes)


def _hours(axes: Axes, measures: Mapping[str, float]) -> None:
    names = [name for name in ("used", "idle", "stranded") if f"gpuHours.{name}" in measures]
    axes.bar(names, [measures[f"gpuHours.{name}"] for name in names], color=COLOURS[: len(names)], width=0.6)
    drawing.titled(axes, "GPU-hours (stranded: of the idle ones)")
