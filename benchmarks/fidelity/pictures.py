"""Draw the pictures of docs/fidelity.md: real against emulated, and the error of a faster replay."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from benchmarks.fidelity import speed
from benchmarks.fidelity.facts import Comparison
from benchmarks.fidelity.situations import situations
from kumulus.extras.lab.report import drawing
from kumulus.extras.lab.report.drawing import COLOURS, INK, REST


def draw(known: Mapping[str, Any], found: Mapping[str, Mapping[str, Comparison]], file: Path) -> None:
    """Draw the share of equal facts, and the time of each situation on both."""
    names = [each.name for each in situations() if each.name in found][::-1]
    with drawing.drawn(11, 1.5 + 0.19 * len(names), columns=2) as (figure, [facts, times]):
        for place, name in enumerate(names):
            sums = [sum(column) for column in zip(*(each.counts for each in found[name].values()), strict=True)]
            left = 0.0
            for value, colour in zip(sums, (COLOURS[0], REST, COLOURS[1]), strict=True):
                facts.barh(place, value / sum(sums), left=left, color=colour, height=0.7)
                left += value / sum(sums)
            for side, colour, shift in (("kind", INK, 0.15), ("emulated", COLOURS[1], -0.15)):
                values = known[side][name]["took_s"]
                times.plot([min(values), max(values)], [place + shift] * 2, color=colour, linewidth=1)
                times.plot(statistics.median(values), place + shift, "o", color=colour, markersize=3)
        for label, colour in {"equal": COLOURS[0], "within the real spread": REST, "different": COLOURS[1]}.items():
            facts.barh(0, 0, color=colour, label=label)
        for label, colour in {"real kubelet: median and all": INK, "emulated": COLOURS[1]}.items():
            times.plot([], [], "o-", color=colour, markersize=3, linewidth=1, label=label)
        _panel(facts, "share of facts", names)
        _panel(times, "seconds until the last step is reached", [])
        times.set_xscale("log")
        times.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        drawing.save(figure, file)


def _panel(axes: Axes, title: str, names: Sequence[str]) -> None:
    drawing.titled(axes, title)
    axes.set_yticks(range(len(names)), names)
    axes.margins(y=0.01)
    drawing.plain(axes, "x")
    axes.set_axisbelow(True)
    axes.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.03), ncols=3)


def draw_speed(known: Mapping[str, Any], file: Path) -> None:
    """Draw the error of each measure over the speed."""
    off = speed.errors(known["speed"])
    with drawing.drawn(7, 3) as (figure, [axes]):
        for (name, title), colour in zip(speed.MEASURES.items(), COLOURS, strict=False):
            of = [row for row in off if row["measure"] == name]
            axes.plot(
                [row["speed"] for row in of],
                [abs(row["worst"]) * 100 for row in of],
                "o-",
                color=colour,
                label=title,
                clip_on=False,
            )
        axes.axhline(1, color=INK, linewidth=0.8, linestyle="--")
        drawing.titled(axes, "largest error against speed 1, per cent")
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_ylim(0)
        measured = sorted({row["speed"] for row in off})
        axes.set_xticks(measured, [f"×{each}" for each in measured])
        axes.minorticks_off()
        drawing.plain(axes)
        drawing.legend(axes, "upper left")
        drawing.save(figure, file)
