"""``python -m kumulus.dashboards``: write each dashboard's JSON file from its description."""

from __future__ import annotations

from kumulus.dashboards import HERE
from kumulus.dashboards.every import DASHBOARDS
from kumulus.dashboards.grafana import text

for dashboard in DASHBOARDS:
    (HERE / f"{dashboard.uid}.json").write_text(text(dashboard), encoding="utf-8")
