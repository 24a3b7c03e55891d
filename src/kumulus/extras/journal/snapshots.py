"""Restore a snapshot so that the next command finishes the restore if it is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledRestore
from kumulus.extras.journal.errors import NotPutBack
from kumulus.extras.snapshots import clusters as snapshots
from kumulus.extras.snapshots.file import DamagedSnapshot
from kumulus.extras.snapshots.restored import OfAnother, Restored, RestoreRefused, unrecorded
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError

if TYPE_CHECKING:
    from kumulus.kube import Client

_SHOWN = 5


async def restore(
    client: Client,
    journal: Journal,
    kubeconfig: Path,
    file: Path,
    stop: asyncio.Event,
    *,
    of_another: bool = False,
    only: Collection[str] | None = None,
) -> Restored:
    """Restore a snapshot; before the first change, the journal has what is to be restored.

    Args:
        kubeconfig: the kubeconfig next to the cluster's files.
        stop: set to stop early, as :func:`kumulus.extras.snapshots.clusters.restore` does.
        of_another: put what users had in another cluster of the runtime kwok into this one.
        only: paths of the objects that may be touched, of a cluster that is not kwok's; None for all.

    Raises:
        NotWritten: the journal cannot be written; nothing was changed.
        OfAnother, Refused, Damaged: the snapshot cannot be restored into this cluster; nothing was changed.
        CutOff, ProviderError, ApiError, Unreachable, OSError: it has not come to its end; the next command finishes it.
    """

    def begin(objects: Collection[str]) -> None:
        where = (str(kubeconfig.absolute()), str(file.absolute()))
        journal.add(restoring=JournaledRestore(*where, of_another, tuple(sorted(objects))))

    try:
        done = await snapshots.restore(client, kubeconfig, file, begin, stop, of_another, only)
    except (OfAnother, RestoreRefused, DamagedSnapshot):
        journal.drop(restoring=None)
        raise
    journal.drop(restoring=None)
    return done


async def finish(client: Client, journal: Journal, begun: JournaledRestore) -> str:
    """Finish a restore that was cut off; returns what was done, in words.

    Through the API, it touches nothing but what it was to touch before.

    Args:
        journal: of the run that was cut off.

    Raises:
        NotPutBack: it cannot be finished; says what to do.
    """
    file = Path(begun.snapshot)
    try:
        done = await snapshots.restore(
            client, Path(begun.kubeconfig), file, unrecorded, asyncio.Event(), begun.of_another, begun.objects or None
        )
    except (ProviderError, DamagedSnapshot, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise NotPutBack(
            f"the restore of {file.stem} is half done, and cannot be finished: {why}\n"
            f"  The next command tries again; to leave the cluster as it is: rm {journal.file}"
        ) from None
    left = "".join(f"; left as they are, {reason}: {listed(names, _SHOWN)}" for reason, names in done.left.items())
    return f"the restore of {file.stem} finished: {done.summary}{left}"
