"""Draw the curves of docs/scale.md and write its table, from ``benchmarks/results/sizes.json`` and the model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from kumulus.extras.lab.report import drawing
from kumulus.extras.lab.report.drawing import COLOURS, INK
from kumulus.model import scale
from kumulus.model.words import with_part

RESULTS = Path(__file__).parent / "results" / "sizes.json"
_DOCS = Path(__file__).resolve().parents[1] / "docs"
# Leases become longer at 1,000 and 5,000 nodes, where the curve of the CPU has its steps.
_STEPS = 200
# All sizes were measured on this.
_MACHINE = scale.Machine(cores=2, memory_mb=25_200)


def main() -> int:
    """Draw and write."""
    sizes = json.loads(RESULTS.read_text())
    draw(sizes, _DOCS / "pictures" / "scale.svg")
    page = _DOCS / "scale.md"
    page.write_text(with_part(page.read_text(), "measured", table(sizes)))
    return 0


def table(sizes: list[dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| Nodes | until all are Ready | CPU time of it, largest part | memory | then: CPU | lease renewals | etcd |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        spent, memory = size["creating_cpu_s"], size["memory_mb"]
        most = max(spent, key=lambda name: spent[name])
        lines.append(
            f"| {size['nodes']:,} | {size['ready_s']:.1f} s ({size['nodes'] / size['ready_s']:,.0f}/s) "
            f"| {sum(spent.values()):.0f} s, {most} {spent[most] / sum(spent.values()):.0%} "
            f"| {sum(memory.values()) / 1000:.2f} GB, kube-apiserver {memory['kube-apiserver'] / 1000:.2f} "
            f"| {sum(size['standing_cores'].values()):.2f} cores | {size['leases_per_s']:,.0f}/s "
            f"| {size['etcd_mb']:,.0f} MB |" + ("" if size["steady"] else " not all stayed Ready |")
        )
    return "\n".join(lines) + "\n"


def draw(sizes: list[dict[str, Any]], file: Path) -> None:
    """Draw time, memory and CPU over the number of nodes: points are measured, lines are the model."""
    nodes = [size["nodes"] for size in sizes]
    line = [max(nodes) * step / _STEPS for step in range(_STEPS + 1)]
    costs = [scale.cost(round(count), _MACHINE) for count in line]
    components = sorted(sizes[-1]["memory_mb"], key=lambda name: -sizes[-1]["memory_mb"][name])
    file.parent.mkdir(exist_ok=True)
    with drawing.drawn(11, 3.4, columns=3) as (figure, [time, memory, cpu]):
        # The points first: a panel's bounds are those of what has been drawn in it.
        time.plot(nodes, [size["ready_s"] for size in sizes], "o", color=COLOURS[0])
        _panel(time, "seconds until all are Ready", line, [each.creation_s for each in costs])
        cpu.plot(nodes, [sum(size["standing_cores"].values()) for size in sizes], "o", color=COLOURS[0])
        _panel(cpu, "cores used by a fleet that stands", line, [each.standing_cores for each in costs])
        areas = [(name, [size["memory_mb"].get(name, 0) / 1000 for size in sizes]) for name in components]
        drawing.stacked(memory, nodes, areas)
        _panel(memory, "GB of memory", line, [each.total_memory_mb / 1000 for each in costs])
        drawing.legend(memory, "upper left")
        drawing.save(figure, file)


def _panel(axes: Axes, title: str, nodes: list[float], model: list[float]) -> None:
    axes.plot(nodes, model, "--", color=INK, linewidth=1, label="model")
    drawing.titled(axes, title)
    axes.set_xlabel("nodes")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
    axes.set_xlim(0)
    axes.set_ylim(0)
    drawing.plain(axes)


if __name__ == "__main__":
    sys.exit(main())
