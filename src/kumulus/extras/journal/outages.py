"""Kill a control plane of the kwok runtime and start it again, as an experiment's timeline does to a worker."""

import asyncio
from pathlib import Path
from typing import Any

from kumulus.host import processes
from kumulus.nodes.reporter import Silent
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.directories import exclusive
from kumulus.runtimes.kwok import addition, objects, starting
from kumulus.runtimes.kwok.components import flag
from kumulus.runtimes.kwok.layout import Layout


def can_be_killed(kubeconfig: Path) -> bool:
    """Whether a cluster's control plane consists of processes of this machine, which can be started again.

    Args:
        kubeconfig: the kubeconfig next to the cluster's files; so in what follows.
    """
    return bool(Layout(kubeconfig.parent).ports())


async def kill(kubeconfig: Path) -> list[str]:
    """End every process of a control plane by SIGKILL; returns their names."""
    there = processes.running(kubeconfig.parent)
    # This waits until they are gone, in a thread, because the caller measures during that time.
    await asyncio.to_thread(processes.end, [pid for pids in there.values() for pid in pids])
    return sorted(there)


async def bring_back(kubeconfig: Path) -> bool:
    """Start the components of a control plane that do not run; returns whether there were any."""
    layout, report = Layout(kubeconfig.parent), Silent()
    if layout.removed():
        # It was destroyed with its stack.
        return False
    async with exclusive(layout):
        dead = starting.dead_components(layout)
        wanted = WantedControlPlane(layout.name, "", str(layout.home), "", _options(layout))
        await starting.start(layout, wanted, report, changed=False, dead=dead)
    await starting.all_running(layout, report)
    return bool(dead)


def _options(layout: Layout) -> dict[str, Any]:
    """The options of the cluster that a start needs, read from the cluster's own files."""
    there = layout.components()
    found: dict[str, Any] = {}
    for each in addition.every():
        found |= each.options_of(there)
    # What kwokctl has yet to define is no sign: it forgets that once the kinds are defined.
    kinds = (flag(layout.settings(), "kwok-controller", "enable-crds") or "").split(",")
    if objects.STAGE in kinds:
        found["stageObjects"] = True
    if objects.USAGE in kinds:
        # It may be podUsage's: a start does the same for both.
        found["observability"] = {}
    return found
