"""A dashboard as data, independent of what draws it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

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


def last(title: str, expr: str, kind: Kind = "stat", *, legend: str = "", unit: str = "short", **more: object) -> Panel:
    """A panel that shows the last value of one query."""
    return Panel(title, (Query(expr, legend),), kind, unit, **more)  # type: ignore[arg-type]


def over_time(title: str, *queries: tuple[str, str], unit: str = "short", **more: object) -> Panel:
    """A panel that shows queries over time, each with its legend."""
    return Panel(title, tuple(Query(*query) for query in queries), "timeseries", unit, **more)  # type: ignore[arg-type]
