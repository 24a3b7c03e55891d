"""How many pools of a fleet are read at a time, and whether a pool may lack nodes, by one answer for all pools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.objects import NODES
from kumulus.model.active_faults import gone_nodes
from kumulus.model.durations import timestamp
from kumulus.nodes.faults import records
from kumulus.nodes.faults.records import ClusterRecords

if TYPE_CHECKING:
    from kumulus.kube import Client

_AT_ONCE = 2
_LONGEST_WAIT_S = 3.0


class ReadLimit:
    """Lets two pools of a fleet be read at a time, so that the first can be changed while others are read.

    Reading thousands of nodes takes the plugin's CPU, changing them the API server's. If all pools were read at once,
    none would be changed during that time. After waiting for three seconds, a pool is read all the same, so that all
    pools time out together, instead of one after the other, when the server does not answer.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(_AT_ONCE)

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Wait until fewer than two are read, and count as one until the end of the block."""
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S):
                await self._free.acquire()
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            self._free.release()


# Pulumi asks for a stack's pools one after the other; during this time they share an answer.
_SHARED_FOR_S = 5.0
_asked: WeakKeyDictionary[Client, tuple[float, asyncio.Task[tuple[ClusterRecords, int | None]]]] = WeakKeyDictionary()


async def may_lack(client: Client, pool: str, patience: float) -> bool:
    """Whether a pool may lack nodes: it is not on record, or the cluster has fewer nodes than its pools together.

    Nodes that belong to no pool are counted, too, and hide as many missing ones; a refresh looks at each node.
    """
    asked = _asked.get(client)
    if asked is None or time.monotonic() - asked[0] > _SHARED_FOR_S:
        asked = _asked[client] = time.monotonic(), asyncio.ensure_future(_look(client, patience))
    known, there = await asyncio.shield(asked[1])
    if pool not in known.pools:
        return True
    wanted, now = 0, timestamp()
    for each in known.pools.values():
        gone = len(gone_nodes(known.with_faults(each, now)))
        # An autoscaler may leave as few as its bounds allow.
        least = each.bounds.least if each.bounds else each.replicas
        wanted += max(0, least - gone)
    return there is not None and there < wanted


async def _look(client: Client, patience: float) -> tuple[ClusterRecords, int | None]:
    """What is on record, and how many nodes there are; None if the server does not say."""
    known, page = await asyncio.gather(
        records.read(client, patience), client.get(NODES, {"limit": "1"}, patience=patience, accept=METADATA_ONLY)
    )
    metadata, items = page.get("metadata") or {}, page.get("items") or []
    if metadata.get("continue") and "remainingItemCount" not in metadata:
        return known, None
    return known, len(items) + int(metadata.get("remainingItemCount") or 0)
