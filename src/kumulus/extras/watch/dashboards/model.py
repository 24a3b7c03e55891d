"""A dashboard as data, independent of what draws it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

Kind = Literal["timeseries", "stat", "gauge", "bargauge", "piechart"]
WIDTH = 24


@dataclass(frozen=True)
class Query:
    """One PromQL expression.

    Args:
        expr: it may have the dashboard's variables, as ``$zone``.
        legend: Grafana's legend of its series, as ``{{zone}}``; empty where there is one series only.
    """

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One picture.

    Args:
        title: what it shows.
        queries: what is drawn.
        kind: as Grafana calls it; `timeseries` shows the time, the others the last value.
        unit: Grafana's name of the unit: `short`, `percentunit`, `bytes`, `s`, `ops` …
        width: of 24.
        height: in Grafana's rows.
        about: for the reader, what it says and what a bad value is.
        stacked: whether the series are drawn on top of each other.
        upper: where the scale ends; None means with the values.
    """

    title: str
    queries: tuple[Query, ...]
    kind: Kind = "timeseries"
    unit: str = "short"
    width: int = 8
    height: int = 8
    about: str = ""
    stacked: bool = False
    upper: float | None = None


@dataclass(frozen=True)
class Row:
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
    """A page.

    Args:
        uid: Grafana's identity of it, and the file's name.
        title: its name.
        about: what it is for.
        rows: its panels.
        variables: its choices.
    """

    uid: str
    title: str
    about: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = field(default=())

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
            tuple(Row(title, tuple(map(_panel, panels.items()))) for title, panels in each["rows"].items()),
            CHOICES if each.get("choices") else (),
        )
        for each in yaml.safe_load(text)
    )


def _panel(described: tuple[str, dict[str, Any]]) -> Panel:
    title, fields = described
    queries = fields.pop("queries", None) or {"": fields.pop("query")}
    return Panel(title, tuple(Query(expr, legend) for legend, expr in queries.items()), **fields)
