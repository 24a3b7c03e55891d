"""Save and restore users' objects in a cluster through its API; for clusters whose etcd is not ours.

Controllers and schedulers keep running, so the snapshot is not of one moment, and restored objects get new UIDs: see
docs/decisions/snapshots-as-objects.md. An interrupted restore is completed by the next one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.cluster.errors import ProviderError
from kumulus.cluster.snapshots import file
from kumulus.cluster.snapshots.file import About
from kumulus.cluster.snapshots.restored import OfAnother, Restored, require_nodes
from kumulus.cluster.snapshots.restoring import Restoring, node_of
from kumulus.cluster.snapshots.scope import contents
from kumulus.kube import objects

if TYPE_CHECKING:
    from kumulus.kube import Client

FORM = "objects"
_NODES = "/api/v1/nodes"


async def save(client: Client, stack: str, to: Path, namespaces: Collection[str] = ()) -> About:
    """Save users' objects in a cluster.

    Args:
        client: of the cluster.
        stack: its stack.
        to: the file; an existing one is replaced once the new one is complete.
        namespaces: the selected ones; empty for all of the users'.

    Raises:
        ProviderError: one of the namespaces does not exist.
        ApiError, Unreachable: the cluster could not be asked, or refuses to list something.
        OSError: the file cannot be written.
    """
    about = About(
        stack,
        await objects.identity(client),
        _written(datetime.now(UTC)),
        form=FORM,
        namespaces=tuple(sorted(namespaces)),
    )
    for name in sorted(namespaces):
        if await objects.find(client, f"/api/v1/namespaces/{name}") is None:
            raise ProviderError(f"there is no namespace {name} in the cluster")
    found = await contents(client, namespaces)
    nodes: dict[str, dict[str, Any]] = {f"{_NODES}/{name}": {} for name in await objects.names(client, _NODES)}
    kept = {**nodes, **found.objects}
    entries = ((path.encode(), json.dumps(each, sort_keys=True).encode()) for path, each in kept.items())
    about = replace(about, forbidden=found.forbidden)
    return await asyncio.to_thread(file.write, to, about, entries)


async def restore(client: Client, source: Path) -> Restored:
    """Restore users' objects in a cluster's namespaces.

    Args:
        client: of the cluster.
        source: the snapshot.

    Raises:
        OfAnother: it is of another cluster, or nodes of its pods do not exist.
        Damaged: it is not a snapshot, or not as it was written.
        ProviderError: an object is not deleted or created in time.
        ApiError, Unreachable: the cluster could not be asked, or refuses something.
        OSError: the file cannot be read.
    """
    about, entries = await asyncio.to_thread(file.read, source)
    if about.cluster != await objects.identity(client):
        raise OfAnother(f"{source.name} is of a cluster that is gone: {about.stack} was made again since {about.taken}")
    wanted = {path.decode(): json.loads(value) for path, value in entries}
    nodes = {path for path in wanted if path.startswith(f"{_NODES}/")}
    wanted = {path: each for path, each in wanted.items() if path not in nodes}
    there = set(await objects.names(client, _NODES))
    require_nodes(about, source, {node_of(each) for each in wanted.values()} - {""}, there)
    return await Restoring(client, about, wanted).run()


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
