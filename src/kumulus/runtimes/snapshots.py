"""Snapshots of a cluster of any runtime: through etcd for the runtime kwok, through the API for the others."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.extras.snapshots import objects
from kumulus.kube.objects import identity
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.existing.copy import outlives_by_note
from kumulus.runtimes.kwok import snapshot
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.extras.snapshots.file import About
    from kumulus.extras.snapshots.restored import Restored
    from kumulus.kube import Client


async def save(client: Client, kubeconfig: Path, stack: str, to: Path, namespaces: Collection[str] = ()) -> About:
    """Save the objects in a cluster.

    Args:
        client: of the cluster.
        kubeconfig: the kubeconfig beside its files.
        stack: the stack that owns it.
        to: the file; an existing one is replaced once the new one is complete.
        namespaces: the ones to save, of a cluster that is not kwok's; all of the users' if empty.

    Raises:
        ProviderError: etcd does not answer, a namespace does not exist, or the namespaces have to be named.
        ApiError, Unreachable: the cluster could not be asked, or refuses to list something.
        OSError: the file cannot be written.
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


async def restore(client: Client, kubeconfig: Path, source: Path) -> Restored:
    """Make a cluster's objects what they were.

    Args:
        client: of the cluster.
        kubeconfig: the kubeconfig beside its files.
        source: the snapshot.

    Raises:
        OfAnother: the snapshot is of another cluster.
        Damaged: it is no snapshot, or not as it was written.
        ProviderError: etcd does not answer, or an object is not deleted or created in time.
        ApiError, Unreachable: the cluster could not be asked, or refuses something.
        OSError: the file cannot be read.
    """
    if layout := of_kwok(kubeconfig):
        return await asyncio.to_thread(snapshot.restore, layout, await identity(client), source)
    return await objects.restore(client, source)


def of_kwok(kubeconfig: Path) -> Layout | None:
    """The files of a cluster of the runtime kwok; None for any other cluster."""
    layout = Layout(kubeconfig.parent)
    return layout if layout.ports() else None
