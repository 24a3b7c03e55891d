"""The actions of a timeline in a plot over time: a line for each, with its number in a list."""

from __future__ import annotations

from matplotlib.axes import Axes

from kumulus.extras.lab.report.drawing import INK
from kumulus.extras.lab.report.model import Test

_MOST_MOMENTS = 8


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
