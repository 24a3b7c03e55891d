"""Snapshots of a cluster of any runtime: through etcd for the runtime kwok, through the API for the others."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.extras.snapshots import kwok as snapshot
from kumulus.extras.snapshots import objects
from kumulus.extras.snapshots.file import about
from kumulus.extras.snapshots.restored import OfAnother
from kumulus.kube.objects import identity
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.existing.source import outlives_by_note
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.extras.snapshots.file import SnapshotSummary
    from kumulus.extras.snapshots.restored import Begin, Restored
    from kumulus.kube import Client


async def save(
    client: Client, kubeconfig: Path, stack: str, to: Path, namespaces: Collection[str] = ()
) -> SnapshotSummary:
    """Save the objects in a cluster.

    Args:
        to: the file; an existing one is replaced once the new one is complete.
        namespaces: the ones to save, of a cluster that is not kwok's; all of the users' if empty.
    """
    if layout := of_kwok(kubeconfig):
        if namespaces:
            raise ProviderError("all that is in a cluster of the runtime kwok is saved; leave --namespace out")
        return await asyncio.to_thread(snapshot.save, layout, stack, await identity(client), to)
    if not namespaces and outlives_by_note(kubeconfig):
        raise ProviderError(
            "the cluster is others', too: which of its namespaces are to be saved, and put back by a restore?\n"
            "  Name them: --namespace NAME, as often as there are some"
        )
    return await objects.save(client, stack, to, namespaces)


async def restore(
    client: Client,
    kubeconfig: Path,
    source: Path,
    begin: Begin,
    stop: asyncio.Event,
    of_another: bool = False,
    only: Collection[str] | None = None,
) -> Restored:
    """Make a cluster's objects what they were.

    Args:
        begin: called before the first change.
        stop: set to stop before the next change; a cluster of the runtime kwok is restored to the end all the same, as
            its controllers are paused and it takes seconds.
        of_another: put what users had in another cluster of the runtime kwok into this one.
        only: paths of the objects that may be touched, of a cluster that is not kwok's; None for all.

    Raises:
        OfAnother: the snapshot is of another cluster, or cannot be put into this one; nothing was changed.
        RestoreRefused: the cluster would refuse a part of it; nothing was changed.
        DamagedSnapshot: it is no snapshot, or not as it was written; nothing was changed.
    """
    layout = of_kwok(kubeconfig)
    if of_another and (layout is None or (await asyncio.to_thread(about, source)).form != "etcd"):
        raise OfAnother("--of needs two clusters of the runtime kwok: only snapshots of those are complete")
    if layout is None:
        return await objects.restore(client, source, begin, stop, only)
    if of_another:
        return await asyncio.to_thread(snapshot.restore_into, layout, source, begin)
    return await asyncio.to_thread(snapshot.restore, layout, await identity(client), source, begin)


def of_kwok(kubeconfig: Path) -> Layout | None:
    """The files of a cluster of the runtime kwok; None for any other cluster."""
    layout = Layout(kubeconfig.parent)
    return layout if layout.ports() else None
