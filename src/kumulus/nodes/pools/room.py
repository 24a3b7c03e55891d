"""Record a pool in a cluster whose etcd is full: etcd accepts only deletions, so surplus nodes are removed first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from kumulus.kube import ApiError
from kumulus.model.pools import Pool
from kumulus.nodes.pools.observe import Observation
from kumulus.nodes.pools.removal import remove_nodes
from kumulus.nodes.reporter import Reporter

if TYPE_CHECKING:
    from kumulus.kube import Client

Relieve = Callable[[str, Reporter], Awaitable[bool]]
"""Makes room in the etcd of a kubeconfig's cluster; returns whether there is room now."""


async def no_relief(kubeconfig: str, report: Reporter) -> bool:
    """Make no room: the cluster's etcd is out of reach."""
    return False


async def recorded(
    record: Callable[[], Awaitable[Pool]],
    relieve: Callable[[], Awaitable[bool]],
    look: Callable[[], Awaitable[Observation]],
    client: Client,
    stop: asyncio.Event,
    report: Reporter,
) -> Pool:
    """Record a pool, making room for it if there is none.

    Args:
        record: records the pool, and returns it as it is recorded.
        relieve: makes room in etcd; returns whether there is room now.
        look: compares the pool's nodes with what is wanted.
        client: of the cluster.
        stop: set when the user cancelled.
        report: receives lines of progress.

    Raises:
        ApiError, Unreachable: there is no room, or the server could not be asked.
    """
    try:
        return await record()
    except ApiError as error:
        if not error.quota_exceeded:
            raise
        full = error
    if await relieve():
        try:
            return await record()
        except ApiError as error:
            if not error.quota_exceeded:
                raise
    doomed = (await look()).extra
    if not doomed:
        raise full
    await remove_nodes(client, doomed, stop, report)
    await relieve()
    return await record()
