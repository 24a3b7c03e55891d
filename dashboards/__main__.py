"""``python -m dashboards``: write each dashboard's JSON file from its description."""

from __future__ import annotations

from dashboards import HERE
from dashboards.every import DASHBOARDS
from dashboards.grafana import text

for dashboard in DASHBOARDS:
    (HERE / f"{dashboard.uid}.json").write_text(text(dashboard), encoding="utf-8")
