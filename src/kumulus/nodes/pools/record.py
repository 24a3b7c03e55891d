"""A pool's record in its cluster, and the faults that are active on its nodes according to the records there.

A cluster whose etcd is full accepts only deletions: surplus nodes are removed before the pool is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from kumulus.kube import ApiError
from kumulus.model.durations import timestamp
from kumulus.model.pools import Pool
from kumulus.nodes.faults import records
from kumulus.nodes.pools.observe import PoolObservation
from kumulus.nodes.pools.removal import remove_nodes
from kumulus.nodes.reporter import Reporter

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.model.identity import Owner

Relieve = Callable[[str, Reporter], Awaitable[bool]]
"""Makes room in the etcd of the cluster of a kubeconfig, the first argument; returns whether there is room now."""


async def no_relief(kubeconfig: str, report: Reporter) -> bool:
    """Make no room: the cluster's etcd is out of reach."""
    return False


async def find(client: Client, name: str, patience: float) -> Pool | None:
    """A pool as its cluster has it on record; None when it is not."""
    return (await records.read(client, patience, name)).pools.get(name)


async def look(client: Client, pool: Pool, patience: float) -> tuple[Pool, bool, tuple[str, ...]]:
    """A pool with its faults, whether the cluster's record of it is up to date, and the names of damaged records."""
    known = await records.read(client, patience, pool.name)
    return known.with_faults(pool, timestamp()), known.pools.get(pool.name) == pool, known.damaged


class Damages:
    """Warns of damaged records, of each once."""

    def __init__(self) -> None:
        self._known: set[tuple[object, str]] = set()

    def warn(self, report: Reporter, cluster: object, names: Iterable[str]) -> None:
        """Warn of those damaged ConfigMaps of a cluster, known by its identity, that are new."""
        for name in names:
            if (cluster, name) not in self._known:
                self._known.add((cluster, name))
                report.warn(records.damage(name))


async def write(client: Client, pool: Pool, owner: Owner) -> Pool:
    """Record a stack's pool as it is wanted; returns it with its faults."""
    known = await records.read(client, only_pool=pool.name)
    if known.pools.get(pool.name) != pool:
        await records.write_pool(client, pool, owner)
    return known.with_faults(pool, timestamp())


async def making_room(
    record: Callable[[], Awaitable[Pool]],
    relieve: Callable[[], Awaitable[bool]],
    look: Callable[[], Awaitable[tuple[Pool, PoolObservation]]],
    client: Client,
    stop: asyncio.Event,
    report: Reporter,
) -> Pool:
    """:func:`write` a pool, after making room for its record if etcd is full: by `relieve`, or by removing extra nodes.

    Args:
        record: records the pool, and returns it with its faults.
        relieve: makes room in etcd; returns whether there is room now.
        look: returns the pool as its autoscaler has left it, and what exists of it.
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
    _, seen = await look()
    if not seen.extra:
        raise full
    await remove_nodes(client, seen.extra, stop, report)
    await relieve()
    return await record()
