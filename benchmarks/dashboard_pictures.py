"""Draw the dashboards from a live Prometheus, for docs/observability.md: each panel's own queries, in its place.

``python -m benchmarks.dashboard_pictures https://127.0.0.1:9090 [MINUTES] [.kumulus/clusters/NAME/pki]``
"""

from __future__ import annotations

import json
import math
import re
import ssl
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
from matplotlib import dates, pyplot
from matplotlib.axes import Axes
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import LinearLocator

from kumulus.extras.watch.dashboards.every import DASHBOARDS
from kumulus.extras.watch.dashboards.grafana import document
from kumulus.extras.watch.dashboards.model import WIDTH, Dashboard

_PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
_POINTS = 150
_INCHES_WIDE, _INCHES_PER_ROW = 14.0, 0.3
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
Series = list[tuple[str, list[tuple[float, float]]]]


def main(address: str, minutes: float = 15, *, pki: Path | None = None) -> int:
    """Draw each dashboard; `pki` has the client certificates, for a Prometheus that requires them."""
    if pki:
        tls = ssl.create_default_context(cafile=pki / "ca.crt")
        tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        urllib.request.install_opener(urllib.request.build_opener(urllib.request.HTTPSHandler(context=tls)))
    pyplot.rcParams.update({"font.size": 7, "axes.titlesize": 8, "axes.titlelocation": "left"})
    for dashboard in DASHBOARDS:
        draw(dashboard, address, minutes * 60, _PICTURES / f"{dashboard.uid}.png")
    return 0


def draw(dashboard: Dashboard, address: str, seconds: float, file: Path) -> None:
    """Draw one dashboard's last seconds."""
    panels = document(dashboard)["panels"]
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    figure = pyplot.figure(figsize=(_INCHES_WIDE, rows * _INCHES_PER_ROW))
    top, bottom = 1 - 0.35 / figure.get_figheight(), 0.05 / figure.get_figheight()
    grid = GridSpec(rows, WIDTH, figure, left=0.05, right=0.99, top=top, bottom=bottom, wspace=3.4, hspace=0.9)
    figure.suptitle(dashboard.title, x=0.01, y=1 - 0.05 / figure.get_figheight(), ha="left", va="top", fontsize=12)
    for panel in panels:
        at = panel["gridPos"]
        # One row of the grid is left free below, for the labels.
        down = at["y"] + max(1, at["h"] - (2 if panel["type"] == "timeseries" else 1))
        axes = figure.add_subplot(grid[at["y"] : down, at["x"] : at["x"] + at["w"]])
        if panel["type"] == "row":
            axes.set_axis_off()
            axes.text(0, 0.3, panel["title"], transform=axes.transAxes, fontsize=10, fontweight="bold")
            continue
        axes.set_title(panel["title"])
        found = series(address, panel, seconds)
        _DRAWN[panel["type"]](axes, panel, found)
        if panel["type"] == "timeseries":
            _span(axes, seconds)
        if not any(points for _, points in found):
            axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", color="#888888")
    figure.savefig(file, dpi=80)
    pyplot.close(figure)


def series(address: str, panel: Mapping[str, Any], seconds: float) -> Series:
    """The results of a panel's queries: the legend and the points of each series."""
    now, found = time.time(), []
    for target in panel["targets"]:
        expr = re.sub(r"\$\w+", ".*", target["expr"])
        span = {"start": f"{now - seconds}", "end": f"{now}", "step": f"{max(1, seconds / _POINTS)}"}
        kind, given = ("query_range", span) if target["range"] else ("query", {"time": f"{now}"})
        query = urllib.parse.urlencode({"query": expr, **given})
        with urllib.request.urlopen(f"{address}/api/v1/{kind}?{query}", timeout=60) as answer:
            result = json.load(answer)["data"]["result"]
        for each in result:
            points = [(float(at), float(value)) for at, value in each.get("values") or [each["value"]]]
            found.append((_legend(target["legendFormat"], each["metric"]), points))
    return found


def _legend(pattern: str, labels: Mapping[str, str]) -> str:
    if pattern == "__auto":
        return ", ".join(value for key, value in labels.items() if key != "__name__")
    return re.sub(r"{{(\w+)}}", lambda match: labels.get(match[1], ""), pattern)


def _amount(value: float, unit: str) -> str:
    if math.isnan(value):
        return "-"
    if unit in ("percentunit", "percent"):
        return f"{value * (100 if unit == 'percentunit' else 1):.3g} %"
    if unit == "s":
        return f"{value:.3g} s" if value >= 1 else f"{value * 1000:.3g} ms"
    steps = _BINARY if unit == "bytes" else _PREFIXES
    size, suffix = next(((size, suffix) for size, suffix in steps if abs(value) >= size), (1, ""))
    return f"{value / size:.3g}{' ' if unit == 'bytes' else ''}{suffix}" + {"ops": "/s", "watt": " W"}.get(unit, "")


def _over_time(axes: Axes, panel: Mapping[str, Any], found: Series) -> None:
    shown = [(name, points) for name, points in found if any(not math.isnan(value) for _, value in points)]
    defaults = panel["fieldConfig"]["defaults"]
    if defaults["custom"]["stacking"]["mode"] == "normal":
        times = sorted({at for _, points in shown for at, _ in points})
        values = [[dict(points).get(at, 0.0) for at in times] for _, points in shown]
        axes.stackplot([_when(at) for at in times], values, labels=[name for name, _ in shown], alpha=0.8)
    else:
        for name, points in shown:
            axes.plot([_when(at) for at, _ in points], [value for _, value in points], label=name, linewidth=1)
    axes.set_ylim(0, defaults.get("max"))
    axes.yaxis.set_major_formatter(lambda value, _: _amount(value, defaults["unit"]))
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    if len(shown) > 1 or (shown and shown[0][0]):
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.12),
            ncols=3,
            fontsize=6,
            frameon=False,
            handlelength=1,
            columnspacing=1,
        )


def _span(axes: Axes, seconds: float) -> None:
    now = time.time()
    axes.set_xlim(_when(now - seconds), _when(now))
    axes.xaxis.set_major_locator(LinearLocator(5))
    axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))  # type: ignore[no-untyped-call]


def _when(at: float) -> float:
    """A time as matplotlib's axes count it, in days."""
    return float(dates.date2num(datetime.fromtimestamp(at, UTC)))  # type: ignore[no-untyped-call]


def _number(axes: Axes, panel: Mapping[str, Any], found: Series) -> None:
    axes.set_axis_off()
    unit = panel["fieldConfig"]["defaults"]["unit"]
    if len(found) == 1:
        text = _amount(found[0][1][-1][1], unit)
        axes.text(0, 0.4, text, transform=axes.transAxes, fontsize=20, color="#1b6ca8", va="center")
        return
    for index, (name, points) in enumerate(found):
        x = index / max(1, len(found))
        axes.text(x, 0.6, _amount(points[-1][1], unit), transform=axes.transAxes, fontsize=14, color="#1b6ca8")
        axes.text(x, 0.2, name, transform=axes.transAxes, fontsize=7)


def _bars(axes: Axes, panel: Mapping[str, Any], found: Series) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    values = [points[-1][1] for _, points in found]
    drawn = axes.barh([name for name, _ in found], values, color="#1b6ca8", height=0.5)
    axes.bar_label(drawn, [_amount(value, defaults["unit"]) for value in values], padding=3)
    axes.set_xlim(0, defaults.get("max") or max([*values, 1]) * 1.2)
    axes.xaxis.set_visible(False)
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def _pie(axes: Axes, panel: Mapping[str, Any], found: Series) -> None:
    values = [points[-1][1] for _, points in found]
    labels = [f"{name}: {_amount(value, 'short')}" for (name, _), value in zip(found, values, strict=True)]
    if not any(values):
        axes.set_axis_off()
        return
    wedges, *_ = axes.pie(values, wedgeprops={"width": 0.4})
    axes.legend(wedges, labels, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2, fontsize=6, frameon=False)


_DRAWN = {"timeseries": _over_time, "stat": _number, "gauge": _number, "bargauge": _bars, "piechart": _pie}

if __name__ == "__main__":
    pki = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    sys.exit(main(sys.argv[1], *map(float, sys.argv[2:3]), pki=pki))
