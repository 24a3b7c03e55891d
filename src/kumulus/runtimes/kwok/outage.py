"""Kill a control plane of the kwok runtime as a whole, and start it again as it was."""

from __future__ import annotations

import asyncio
from typing import Any

from kumulus.host import processes
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.base import Wanted
from kumulus.runtimes.exclusive import exclusive
from kumulus.runtimes.kwok import addition, etcd, objects, starting
from kumulus.runtimes.kwok.layout import Layout


async def kill(layout: Layout) -> list[str]:
    """End every process of a cluster by SIGKILL; returns their names."""
    there = processes.running(layout.directory)
    # This waits until they are gone, in a thread, because the caller measures during that time.
    await asyncio.to_thread(processes.end, [pid for pids in there.values() for pid in pids])
    return sorted(there)


async def start(layout: Layout, report: Reporter) -> list[str]:
    """Start the components that do not run, and wait until the API server is ready; returns their names."""
    async with exclusive(layout):
        dead = starting.dead(layout)
        wanted = Wanted(layout.name, "", str(layout.home), "", _options(layout))
        await starting.start(layout, wanted, report, changed=False, dead=dead)
    await starting.all_running(layout, report)
    return dead


def _options(layout: Layout) -> dict[str, Any]:
    """The options of the cluster that a start needs, read from the cluster's own files."""
    components = layout.components()
    found: dict[str, Any] = {}
    for each in addition.every():
        found |= each.options_of(components)
    # What kwokctl has yet to define is no sign: it forgets that once the kinds are defined.
    kinds = (etcd.flag(layout.settings(), "kwok-controller", "enable-crds") or "").split(",")
    if objects.STAGE in kinds:
        found["stageObjects"] = True
    if objects.USAGE in kinds:
        # It may be podUsage's: a start does the same for both.
        found["observability"] = {}
    return found
