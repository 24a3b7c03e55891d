"""What runs of experiments have left on a cluster that were killed: a difference, and put back by the next update."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kumulus.cluster.errors import ProviderError
from kumulus.cluster.reporter import Reporter
from kumulus.journal import book
from kumulus.journal.errors import JournalError
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.provider.resources.base import Properties
from kumulus.runtimes import apiserver
from kumulus.runtimes.base import Observed


def left_by_runs(outputs: Properties) -> str:
    """How a cluster is that runs have changed which are gone, in words; empty when none has. Without the network.

    Args:
        outputs: the cluster's, as the state has them.
    """
    identity: Any = outputs.get("identity")
    left = book.left(identity) if isinstance(identity, str) and identity else []
    return f"as experiment run {', '.join(each.changes.run for each in left)} has left it" if left else ""


async def put_back(seen: Observed, report: Reporter) -> None:
    """Put back what runs have left that are gone.

    Args:
        seen: the cluster, whose API server answers.
        report: takes what was done.

    Raises:
        ProviderError: it could not all be put back.
    """
    if not book.left(seen.identity):
        return
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kumulus.journal import recover

    try:
        async with apiserver.client(Path(seen.kubeconfig)) as client:
            for line in await recover.recover_cluster(client, seen.identity):
                report.info(line)
    except (ApiError, JournalError, KubeconfigError, Unreachable) as error:
        raise ProviderError(f"what an experiment has left is not all put back: {error}") from None
