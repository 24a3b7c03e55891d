"""The picture of what users had: waits, slowdowns, shares over time, and GPU-hours used, idle and stranded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

from kumulus.lab.file.measures import PERCENTILES
from kumulus.lab.report.files import telling
from kumulus.lab.report.model import ByUser, OfUser

COLOURS = ("#1b6ca8", "#d98324", "#7a9e3f", "#8d5a97", "#b5483a", "#5f6b73", "#c9a227", "#3aa6a0", "#7f7f7f", "#bcbcbc")
FORMATS = ("svg", "png")
_MOST = 9


def write(found: ByUser, measures: Mapping[str, float], directory: Path, name: str) -> list[Path]:
    """Draw what users had, once as SVG and once as PNG; returns the files.

    Args:
        found: the users.
        measures: of the repetition.
        directory: where to.
        name: of the files.

    Raises:
        LabError: a file cannot be written.
    """
    most = sorted(found.users, key=lambda each: -found.users[each].hours)[:_MOST]
    users = {each: found.users[each] for each in most}
    with pyplot.rc_context({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "kumulus", "axes.grid": True}):
        figure, axes = pyplot.subplots(2, 2, figsize=(11, 6.4), layout="constrained")
        _bars(axes[0][0], users, lambda user: user.waited, "seconds from a pod's creation to its node")
        _bars(axes[0][1], users, lambda user: user.slowdown, "slowdown of completed pods")
        _shares(axes[1][0], found)
        _hours(axes[1][1], measures)
        for place in axes.flat:
            place.grid(color="#dddddd", linewidth=0.5)
            place.spines[["top", "right"]].set_visible(False)
    paths = [directory / f"{name}.{suffix}" for suffix in FORMATS]
    for path in paths:
        with telling(path):
            figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return paths


def _bars(axes: Axes, users: Mapping[str, OfUser], of: Callable[[OfUser], Mapping[str, float]], title: str) -> None:
    for index, part in enumerate(f"p{percent}" for percent in PERCENTILES):
        places = [place + 0.27 * index for place in range(len(users))]
        axes.bar(places, [of(user).get(part, 0.0) for user in users.values()], 0.25, color=COLOURS[index], label=part)
    axes.set_xticks([place + 0.27 for place in range(len(users))], [name[:14] for name in users], rotation=20)
    axes.set_title(title, fontsize=10, loc="left")
    axes.legend(fontsize=7, frameon=False)


def _shares(axes: Axes, found: ByUser) -> None:
    axes.set_title(f"share of {found.of.upper().removesuffix('S')}s in use", fontsize=10, loc="left")
    axes.set_ylim(0, 1)
    if "t" not in found.shares:
        return
    lines = {name: values for name, values in found.shares.items() if name != "t"}
    axes.stackplot(found.shares["t"], list(lines.values()), labels=list(lines), colors=COLOURS, alpha=0.85)
    axes.set_xlabel("seconds")
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)


def _hours(axes: Axes, measures: Mapping[str, float]) -> None:
    names = [name for name in ("used", "idle", "stranded") if f"gpuHours.{name}" in measures]
    axes.bar(names, [measures[f"gpuHours.{name}"] for name in names], color=COLOURS[: len(names)], width=0.6)
    axes.set_title("GPU-hours (stranded: of the idle ones)", fontsize=10, loc="left")
