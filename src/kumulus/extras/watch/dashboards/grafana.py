"""Dashboards as Grafana's JSON (schema version 39, which Grafana 10.3 and later read)."""

import json
from typing import Any

from kumulus.extras.watch.dashboards.model import WIDTH, Dashboard, Panel, Variable

SCHEMA = 39
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_LEGEND = {"showLegend": True, "displayMode": "list", "placement": "bottom"}
_LAST = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
_OPTIONS: dict[str, dict[str, Any]] = {
    "timeseries": {"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    "stat": {**_LAST, "colorMode": "value", "graphMode": "area", "textMode": "auto"},
    "gauge": {**_LAST, "showThresholdMarkers": True},
    "bargauge": {**_LAST, "displayMode": "gradient", "orientation": "horizontal"},
    "piechart": {**_LAST, "pieType": "donut", "legend": {**_LEGEND, "placement": "right", "values": ["value"]}},
}
# Allocation is wanted high: there is no red in it.
_STEPS = {"mode": "absolute", "steps": [{"color": "blue", "value": None}]}


def text(dashboard: Dashboard) -> str:
    """A dashboard's file."""
    return json.dumps(document(dashboard), indent=2, ensure_ascii=False) + "\n"


def document(dashboard: Dashboard) -> dict[str, Any]:
    """A dashboard as Grafana imports or provisions it."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.about,
        "tags": ["kumulus"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "15s",
        "time": {"from": "now-30m", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [
            {"type": "dashboards", "title": "Kumulus", "tags": ["kumulus"], "asDropdown": False, "includeVars": False}
        ],
        "templating": {"list": [_data_source(), *map(_variable, dashboard.variables)]},
        "panels": _laid_out(dashboard),
    }


def _laid_out(dashboard: Dashboard) -> list[dict[str, Any]]:
    """Rows one below the other, the panels of a row from left to right and on the next line where they do not fit."""
    found: list[dict[str, Any]] = []
    y = 0
    for row in dashboard.rows:
        place = {"h": 1, "w": WIDTH, "x": 0, "y": y}
        found.append({"id": len(found) + 1, "type": "row", "title": row.title, "collapsed": False, "gridPos": place})
        x, y, tallest = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, tallest = 0, y + tallest, 0
            found.append(_panel(panel, len(found) + 1, x, y))
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    return found


def _panel(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "color": {"mode": "palette-classic"}, "min": 0}
    if panel.upper is not None:
        defaults["max"] = panel.upper
    if panel.kind in ("stat", "gauge"):
        defaults |= {"color": {"mode": "thresholds"}, "thresholds": _STEPS}
    if panel.kind == "timeseries":
        stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
        defaults["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 30 if panel.stacked else 5,
            "showPoints": "never",
            "stacking": stacking,
        }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "gridPos": {"h": panel.height, "w": panel.width, "x": x, "y": y},
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _OPTIONS[panel.kind],
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "expr": query.expr,
                "legendFormat": query.legend or "__auto",
                "instant": panel.kind != "timeseries",
                "range": panel.kind == "timeseries",
            }
            for index, query in enumerate(panel.queries)
        ],
    }


def _data_source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0}


def _variable(variable: Variable) -> dict[str, Any]:
    query = f"label_values({variable.metric}, {variable.name})"
    return {
        "name": variable.name,
        "label": variable.title,
        "type": "query",
        "datasource": _SOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"variable-{variable.name}"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
