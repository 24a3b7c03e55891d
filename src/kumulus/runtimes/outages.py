"""Kill a control plane and start it again, as an experiment's timeline does to a worker of a federation."""

from __future__ import annotations

from pathlib import Path

from kumulus.nodes.reporter import Silent
from kumulus.runtimes.kwok import outage
from kumulus.runtimes.kwok.layout import Layout


def can_be_killed(kubeconfig: Path) -> bool:
    """Whether a cluster's control plane consists of processes of this machine, which can be started again.

    Args:
        kubeconfig: the kubeconfig beside the cluster's files.
    """
    return bool(Layout(kubeconfig.parent).ports())


async def kill(kubeconfig: Path) -> list[str]:
    """Kill every process of a control plane; returns their names."""
    return await outage.kill(Layout(kubeconfig.parent))


async def bring_back(kubeconfig: Path) -> bool:
    """Start the components of a control plane that do not run; returns whether there were any.

    Args:
        kubeconfig: the kubeconfig beside the cluster's files.
    """
    layout = Layout(kubeconfig.parent)
    if layout.removed():
        # It was destroyed with its stack.
        return False
    return bool(await outage.start(layout, Silent()))
