"""All dashboards, in the order in which they are shown."""

from __future__ import annotations

from kumulus.dashboards.control_plane import CONTROL_PLANE
from kumulus.dashboards.cost import COST
from kumulus.dashboards.faults import FAULTS
from kumulus.dashboards.overview import OVERVIEW
from kumulus.dashboards.scheduler import SCHEDULER

DASHBOARDS = (OVERVIEW, SCHEDULER, CONTROL_PLANE, FAULTS, COST)
