"""Runs of commands on a cluster: what killed ones have left is undone by an update; one that is alive keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.nodes import runs
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.provider.resources.base import Properties
from kumulus.runtimes import apiserver
from kumulus.runtimes.base import Observed


def left_by_runs(outputs: Properties) -> str:
    """A text about changes that ended runs have left on a cluster; empty without any. Does not use the network.

    Args:
        outputs: the cluster's, from the state.
    """
    identity: Any = outputs.get("identity")
    return runs.left(identity) if isinstance(identity, str) and identity else ""


def require_no_run(identity: str) -> None:
    """Refuse to take a cluster away while a run is or may be under way on it. Does not use the network.

    Args:
        identity: the cluster's; empty if it is not known.
    """
    if identity and (who := runs.under_way(identity)):
        raise ProviderError(f"{who}; nothing was removed")


async def put_back(seen: Observed, report: Reporter) -> None:
    """Undo the changes that ended runs have left.

    Args:
        seen: the cluster, whose API server answers.
        report: takes messages about what was done.
    """
    if not runs.left(seen.identity):
        return
    try:
        async with apiserver.client(Path(seen.kubeconfig)) as client:
            for line in await runs.put_back(client, seen.identity):
                report.info(line)
    except (ApiError, KubeconfigError, Unreachable, runs.RunError) as error:
        raise ProviderError(f"what a run has left is not all put back: {error}") from None
