"""Runs of commands on a cluster: what killed ones have left is undone by an update; one that is alive keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kumulus.extras.journal import book
from kumulus.extras.journal.errors import JournalError
from kumulus.kube import ApiError, KubeconfigError, Unreachable
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
    left = book.unrestored(identity) if isinstance(identity, str) and identity else []
    # What another command has to finish, an update cannot put back.
    runs = [f"{each.changes.command} run {each.changes.run}" for each in left if not each.changes.finish]
    return f"as {', '.join(runs)} has left it" if runs else ""


def require_no_run(identity: str) -> None:
    """Refuse to take a cluster away while a run is or may be under way on it. Does not use the network.

    Args:
        identity: the cluster's; empty if it is not known.

    Raises:
        ProviderError: says which run, and what to do.
    """
    if identity and (who := book.under_way(identity)):
        raise ProviderError(f"{who}; nothing was removed")


async def put_back(seen: Observed, report: Reporter) -> None:
    """Undo the changes that ended runs have left.

    Args:
        seen: the cluster, whose API server answers.
        report: takes messages about what was done.

    Raises:
        ProviderError: not all changes could be undone.
    """
    if not book.unrestored(seen.identity):
        return
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kumulus.extras.journal import recover

    try:
        async with apiserver.client(Path(seen.kubeconfig)) as client:
            for line in await recover.recover_cluster(client, seen.identity):
                report.info(line)
    except (ApiError, JournalError, KubeconfigError, Unreachable) as error:
        raise ProviderError(f"what a run has left is not all put back: {error}") from None
