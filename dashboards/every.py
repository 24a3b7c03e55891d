"""All dashboards, in the order in which they are shown."""

from __future__ import annotations

from dashboards.control_plane import CONTROL_PLANE
from dashboards.faults import FAULTS
from dashboards.overview import OVERVIEW
from dashboards.scheduler import SCHEDULER

DASHBOARDS = (OVERVIEW, SCHEDULER, CONTROL_PLANE, FAULTS)
