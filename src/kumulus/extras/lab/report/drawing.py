"""How plots look and are saved: one style, one row of colours, files that do not depend on when they are drawn."""

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kumulus.extras.lab.report.files import os_errors_explained

COLOURS = ("#1b6ca8", "#d98324", "#7a9e3f", "#8d5a97", "#b5483a", "#5f6b73", "#c9a227", "#3aa6a0", "#7f7f7f")
REST = "#bcbcbc"
"""The colour of everything that has no colour of its own."""

INK = "#333333"
"""The colour of lines that are no series, such as a limit or a moment."""

_TITLE, _LEGEND = 10, 7
# Text stays text, dollars are dollars and no formulas, and ids do not change from one drawing to the next.
_STYLE: Any = {
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "kumulus",
    "text.parse_math": False,
    "axes.axisbelow": True,
}
_DPI = 120


@contextmanager
def drawn(wide: float, high: float, rows: int = 1, columns: int = 1) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure in the common style, and its panels row by row; it is closed at the end.

    Args:
        wide: in inches.
        high: likewise.
    """
    with pyplot.rc_context(_STYLE):
        figure, panels = pyplot.subplots(rows, columns, figsize=(wide, high), layout="constrained", squeeze=False)
        try:
            yield figure, list(panels.flat)
        finally:
            pyplot.close(figure)


def titled(axes: Axes, title: str) -> None:
    """Give a panel its title."""
    axes.set_title(title, fontsize=_TITLE, loc="left")


def plain(axes: Axes, along: Literal["both", "x"] = "both") -> None:
    """Give a panel a thin grid and no frame around it.

    Args:
        along: ``x`` where the other axis has names: no line on it, no grid across it.
    """
    axes.grid(visible=True, axis=along, color="#dddddd", linewidth=0.5)
    axes.spines[["top", "right"] if along == "both" else ["top", "right", "left"]].set_visible(False)


def legend(axes: Axes, place: Literal["best", "upper left"] = "best") -> None:
    """Add a legend within a panel, if anything in it has a label."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=_LEGEND, frameon=False, loc=place)


def legend_outside(axes: Axes) -> None:
    """Add a legend next to a panel, from the top down: within, it would cover the areas that it explains."""
    axes.legend(fontsize=_LEGEND, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)


def stacked(
    axes: Axes,
    at: Sequence[float],
    areas: Iterable[tuple[str, Sequence[float]]],
    step: Literal["post"] | None = None,
    rest: str = "",
) -> None:
    """Draw series stacked on top of each other.

    Args:
        at: where the series have their values.
        areas: the name and values of each.
        step: ``post`` where a value holds until the next one.
        rest: the name of the area that has no colour of its own; empty for none.
    """
    found = dict(areas)
    colours = [REST if name == rest else colour for name, colour in zip(found, cycle([*COLOURS, REST]), strict=False)]
    axes.stackplot(at, list(found.values()), labels=list(found), colors=colours, alpha=0.85, step=step)


def save(figure: Figure, *paths: Path) -> list[Path]:
    """Write a figure into files, each in the format that its suffix names; returns them."""
    for path in paths:
        with os_errors_explained(path):
            figure.savefig(path, dpi=_DPI, metadata={"Date": None} if path.suffix == ".svg" else None)
    return list(paths)


def svg(figure: Figure) -> str:
    """A figure as an SVG element, for a page of HTML."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    found = text.getvalue()
    return found[found.index("<svg") :]
