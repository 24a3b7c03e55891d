"""Save and restore users' objects in a cluster through its API; for clusters whose etcd is not ours.

Controllers and schedulers keep running, so the snapshot is not of one moment, and restored objects get new UIDs: see
docs/decisions/snapshots-as-objects.md.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.snapshots import file
from kumulus.extras.snapshots.file import SnapshotSummary
from kumulus.extras.snapshots.planning import RestorePlan, planned
from kumulus.extras.snapshots.restored import Begin, CutOff, OfAnother, Restored, require_nodes, unrecorded
from kumulus.extras.snapshots.restoring import Restoring, checked, node_of
from kumulus.extras.snapshots.scope import contents
from kumulus.kube import objects
from kumulus.kube.objects import NODES
from kumulus.model.durations import timestamp
from kumulus.nodes.errors import ProviderError

if TYPE_CHECKING:
    from kumulus.kube import Client

FORM = "objects"


async def save(client: Client, stack: str, to: Path, namespaces: Collection[str] = ()) -> SnapshotSummary:
    """Save users' objects in the selected namespaces of a cluster; with none selected, in all of the users'."""
    identity, chosen = await objects.identity(client), tuple(sorted(namespaces))
    about = SnapshotSummary(stack, identity, timestamp(), form=FORM, namespaces=chosen)
    for name in sorted(namespaces):
        if await objects.find(client, f"/api/v1/namespaces/{name}") is None:
            raise ProviderError(f"there is no namespace {name} in the cluster")
    found = await contents(client, namespaces)
    nodes: dict[str, dict[str, Any]] = {f"{NODES}/{name}": {} for name in await objects.names(client, NODES)}
    kept = {**nodes, **found.objects}
    entries = ((path.encode(), json.dumps(each, sort_keys=True).encode()) for path, each in kept.items())
    about = replace(about, forbidden=found.forbidden)
    return await asyncio.to_thread(file.write, to, about, entries)


async def restore(
    client: Client,
    source: Path,
    begin: Begin = unrecorded,
    stop: asyncio.Event | None = None,
    only: Collection[str] | None = None,
) -> Restored:
    """Restore users' objects in a cluster's namespaces; raises what :func:`plan` does.

    Args:
        only: paths of the objects that may be touched, as :func:`plan` said before; None for all.
    """
    about, todo = await _planned(client, source, only)
    stop = stop or asyncio.Event()
    if stop.is_set():
        raise CutOff("the restore was stopped before it changed anything")
    if todo.touched:
        begin(todo.touched)
    return await Restoring(client, datetime.fromisoformat(about.taken), todo, stop).run()


async def plan(client: Client, source: Path) -> RestorePlan:
    """What a restore would do now.

    Raises:
        OfAnother: it is of another cluster, or nodes of its pods do not exist.
        RestoreRefused: the cluster would refuse a part of it.
        DamagedSnapshot: it is not a snapshot, or not as it was written.
    """
    return (await _planned(client, source, None))[1]


async def _planned(client: Client, source: Path, only: Collection[str] | None) -> tuple[SnapshotSummary, RestorePlan]:
    about, entries = await asyncio.to_thread(file.read, source)
    if about.cluster != await objects.identity(client):
        raise OfAnother(f"{source.name} is of a cluster that is gone: {about.stack} was made again since {about.taken}")
    wanted = {path.decode(): json.loads(value) for path, value in entries}
    nodes = {path for path in wanted if path.startswith(f"{NODES}/")}
    wanted = {path: each for path, each in wanted.items() if path not in nodes}
    there = set(await objects.names(client, NODES))
    require_nodes(about, source, {node_of(each) for each in wanted.values()} - {""}, there)
    return about, await checked(client, planned(wanted, await contents(client, about.namespaces), only))
