"""What exists of a pool after an unfinished run: it is read from the cluster, because it is what gets recorded.

A request may still be carried out after its client has stopped waiting, and one that was answered with an error may
have been carried out (etcd performs the write that crosses its quota). So the answers do not say what exists.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kumulus.kube import ApiError, Unreachable
from kumulus.nodes.pools.observe import Observation, observe
from kumulus.nodes.pools.slices import NotServed

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.model.pools import Pool

# Seconds between two looks that must find the same.
_STILL = 0.25


@dataclass(frozen=True)
class Patience:
    """How long to look after a failure, in seconds.

    Attributes:
        whole: for one complete read, long enough for a busy machine.
        still: after the first read, for nothing to change any more.
    """

    whole: float
    still: float


# The user has pressed Ctrl-C and waits; the server did not answer an earlier request; neither.
STOPPED, SILENT, CALM = Patience(5.0, 1.0), Patience(1.0, 1.0), Patience(45.0, 8.0)


async def look(client: Client, pool: Pool, patience: Patience, recorded: str | None = None) -> Observation | None:
    """What exists; None when it cannot be read.

    It reads until nothing changes: a server completes requests even if no client waits for the answer.

    Args:
        client: the cluster's API.
        pool: what is wanted.
        patience: how long.
        recorded: as for :func:`kumulus.nodes.pools.observe.observe`.
    """
    seen = await _within(client, pool, patience.whole, recorded)
    with suppress(TimeoutError):
        async with asyncio.timeout(patience.still):
            while seen is not None:
                await asyncio.sleep(_STILL)
                before, seen = seen, await _within(client, pool, patience.whole, recorded) or seen
                if seen.same_nodes(before):
                    break
    return seen


async def _within(client: Client, pool: Pool, seconds: float, recorded: str | None) -> Observation | None:
    with suppress(ApiError, Unreachable, NotServed, TimeoutError):
        async with asyncio.timeout(seconds):
            return await observe(client, pool, patience=seconds, recorded=recorded)
    return None
