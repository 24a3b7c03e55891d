"""All dashboards, in the order in which they are shown."""

from __future__ import annotations

from kumulus.extras.watch.dashboards.control_plane import CONTROL_PLANE
from kumulus.extras.watch.dashboards.cost import COST
from kumulus.extras.watch.dashboards.faults import FAULTS
from kumulus.extras.watch.dashboards.overview import OVERVIEW
from kumulus.extras.watch.dashboards.scheduler import SCHEDULER

DASHBOARDS = (OVERVIEW, SCHEDULER, CONTROL_PLANE, FAULTS, COST)
