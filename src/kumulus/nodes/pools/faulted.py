"""A pool with the active faults of its nodes: what the nodes should be like at this moment.

The package `faults` is imported only when a cluster is queried: a preview without a change does not need it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.model.identity import Owner
    from kumulus.model.pools import Pool


async def looked_at(client: Client, pool: Pool, patience: float) -> tuple[Pool, bool]:
    """A pool with its faults, and whether the cluster's record of it is up to date; nothing is changed.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    from kumulus.nodes.faults import records

    known = await records.read(client, patience, pool.name)
    return known.with_faults(pool, records.now()), known.pools.get(pool.name) == pool


async def on_record(client: Client, name: str, patience: float) -> Pool | None:
    """A pool as recorded in the cluster; None when it is not.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    from kumulus.nodes.faults import records

    return (await records.read(client, patience, name)).pools.get(name)


async def recorded(client: Client, pool: Pool, owner: Owner) -> Pool:
    """A pool with its faults, after recording it and ending the stack's faults whose time is up.

    Args:
        client: of the cluster.
        pool: the pool.
        owner: the stack.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    from kumulus.nodes.faults import operations, records

    known = await records.read(client, only_pool=pool.name)
    if await operations.settle(client, known, owner):
        known = await records.read(client, only_pool=pool.name)
    if known.pools.get(pool.name) != pool:
        await records.write_pool(client, pool, owner)
    return known.with_faults(pool, records.now())


async def forget(client: Client, name: str, owner: Owner) -> None:
    """Remove a pool's record, unless it is another stack's.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    from kumulus.nodes.faults import records

    await records.forget_pool(client, name, owner)


async def wait_for_kwok(client: Client, pool: Pool, ordinals: list[int], stop: asyncio.Event) -> str:
    """Wait until KWOK manages new nodes, where that takes time; returns a sentence about those that it does not.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    from kumulus.nodes.faults.new_pods import wait_until_managed

    return await wait_until_managed(client, [pool.node_name(ordinal) for ordinal in ordinals], stop)
