"""A cluster's fleet as the live views see it, even if the cluster is replaced while they run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import cluster, stack_file
from kumulus.cli.errors import UserError

if TYPE_CHECKING:
    from kumulus.extras.watch.live.fleet import Live
    from kumulus.extras.watch.live.node import PlaceLabels
    from kumulus.model.pools import Pool
    from kumulus.nodes.catalog.prices import Prices

_INTERVAL = 1.0


@asynccontextmanager
async def live(found: cluster.NamedCluster) -> AsyncIterator[Live]:
    """A cluster's fleet, kept up to date for the duration of a view.

    If the cluster is recreated, its kubeconfig changes, and the view switches to the new one.
    """
    from kumulus.extras.watch.live.fleet import Live

    async with AsyncExitStack() as clients:
        before = _content(found.kubeconfig)
        client = await clients.enter_async_context(cluster.client(found))
        async with Live(client, places(found), found.endpoints, _prices(found)) as made:
            seeking = asyncio.create_task(_seek(found, made, clients, before))
            try:
                yield made
            finally:
                seeking.cancel()
                await asyncio.gather(seeking, return_exceptions=True)


async def _seek(found: cluster.NamedCluster, live: Live, clients: AsyncExitStack, known: bytes) -> None:
    """While the connection is lost, check whether the kubeconfig leads to another cluster."""
    from kumulus.kube import ApiError, KubeconfigError, Unreachable

    while True:
        await asyncio.sleep(_INTERVAL)
        if live.lost is None:
            continue
        content = _content(found.kubeconfig)
        if content in (known, b""):
            continue
        try:
            client = cluster.client(found)
        except KubeconfigError:
            # It is only half written yet.
            continue
        try:
            endpoints = cluster.health_endpoints(found.kubeconfig.parent)
            await live.move(client, places(found), endpoints)
        except (ApiError, Unreachable):
            await client.close()
            continue
        clients.push_async_callback(client.close)
        known = content


def _content(file: Path) -> bytes:
    try:
        # A pipe, as of `--kubeconfig <(…)`, can be read only once, and a device has no end.
        return file.read_bytes() if file.is_file() else b""
    except OSError:
        return b""


def places(found: cluster.NamedCluster) -> PlaceLabels:
    """The labels that say where nodes are: those that the stack's file names, and those of every preset.

    If that file is missing or has mistakes, only the presets' labels are used.
    """
    from kumulus.extras.watch.live.node import PlaceLabels
    from kumulus.stackfile.group_topology import PRESETS

    own = [{level.name: level.label for level in pool.topology.levels} for pool in _pools(found) if pool.topology]
    return PlaceLabels.of([*own, *PRESETS.values()])


def _prices(found: cluster.NamedCluster) -> Prices:
    """What machines cost: the catalog's prices, and the stack's own, unless their file has mistakes."""
    from kumulus.model.errors import SpecError
    from kumulus.nodes.catalog.prices import catalog, with_own

    try:
        own = stack_file.prices(found.stack) if found.stack else None
        return with_own(own) if own else catalog()
    except (SpecError, UserError):
        return catalog()


def _pools(found: cluster.NamedCluster) -> Sequence[Pool]:
    """The cluster's pools; none if its stack's file has mistakes, which other commands report."""
    try:
        described = stack_file.described(found.stack or found.name)
    except UserError:
        return ()
    loaded = described.clusters.get(found.member) if described else None
    return loaded.pools if loaded else ()
