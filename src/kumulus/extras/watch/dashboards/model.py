"""A dashboard as data, independent of what draws it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

Kind = Literal["timeseries", "stat", "gauge", "bargauge", "piechart"]
WIDTH = 24


@dataclass(frozen=True)
class Query:
    """One PromQL expression."""

    expr: str
    """It may have the dashboard's variables, as ``$zone``."""
    legend: str = ""
    """Grafana's legend of its series, as ``{{zone}}``; empty where there is one series only."""


@dataclass(frozen=True)
class Panel:
    """One picture."""

    title: str
    queries: tuple[Query, ...]
    kind: Kind = "timeseries"
    """As Grafana calls it; `timeseries` shows the time, the others the last value."""
    unit: str = "short"
    """Grafana's name of the unit: `short`, `percentunit`, `bytes`, `s`, `ops` …."""
    width: int = 8
    """Of 24."""
    height: int = 8
    """In Grafana's rows."""
    about: str = ""
    """For the reader, what it says and what a bad value is."""
    stacked: bool = False
    """Whether the series are drawn on top of each other."""
    upper: float | None = None
    """Where the scale ends; None means with the values."""


@dataclass(frozen=True)
class PanelRow:
    """Panels under one heading, from left to right."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A choice above the dashboard: the values of a label of a metric, all of them at first."""

    name: str
    title: str
    metric: str


CHOICES = (
    Variable("zone", "Zone", "kumulus:nodes:count"),
    Variable("node_group", "Node group", "kumulus:nodes:count"),
    Variable("product", "GPU", "kumulus:nodes:count"),
)
CHOSEN = ",".join(f'{each.name}=~"${each.name}"' for each in CHOICES)


@dataclass(frozen=True)
class Dashboard:
    """A page."""

    uid: str
    """Grafana's identity of it, and the file's name."""
    title: str
    about: str
    rows: tuple[PanelRow, ...]
    variables: tuple[Variable, ...] = ()

    def panels(self) -> Iterator[Panel]:
        """All of its panels, from top to bottom."""
        for row in self.rows:
            yield from row.panels


def load(file: Path) -> tuple[Dashboard, ...]:
    """The dashboards of a file; `CHOSEN` in an expression stands for the dashboard's choices."""
    text = file.read_text(encoding="utf-8").replace("CHOSEN", CHOSEN)
    return tuple(
        Dashboard(
            each["uid"],
            each["title"],
            each["about"],
            tuple(PanelRow(title, tuple(map(_panel, panels.items()))) for title, panels in each["rows"].items()),
            CHOICES if each.get("choices") else (),
        )
        for each in yaml.safe_load(text)
    )


def _panel(described: tuple[str, dict[str, Any]]) -> Panel:
    title, fields = described
    queries = fields.pop("queries", None) or {"": fields.pop("query")}
    return Panel(title, tuple(Query(expr, legend) for legend, expr in queries.items()), **fields)
