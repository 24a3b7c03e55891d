"""``python -m kumulus.extras.watch.dashboards``: write each dashboard's JSON file from its description."""

from __future__ import annotations

from kumulus.extras.watch.dashboards import HERE
from kumulus.extras.watch.dashboards.every import DASHBOARDS
from kumulus.extras.watch.dashboards.grafana import text

for dashboard in DASHBOARDS:
    (HERE / f"{dashboard.uid}.json").write_text(text(dashboard), encoding="utf-8")
