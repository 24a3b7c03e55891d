"""A pool whose number of nodes an autoscaler decides: which of its nodes exist is read from the cluster.

An autoscaler removes any of its nodes, which leaves gaps in the numbers, and creates those with the lowest free ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from kumulus.model.pools import Pool
from kumulus.nodes.pools.live import LiveNode, of_pool, selected
from kumulus.nodes.pools.others import is_anothers

if TYPE_CHECKING:
    from kumulus.kube import Client


async def as_left(
    client: Client, pool: Pool, patience: float | None = None, recorded: str | None = None, *, new: bool = False
) -> Pool:
    """A pool with the nodes that its autoscaler has left; a pool without one is returned unchanged.

    If there are fewer than its bounds allow, the lowest free numbers are wanted too; if there are more, the highest are
    not wanted.

    Args:
        recorded: as for :func:`kumulus.nodes.pools.observe.observe`.
        new: whether the pool is new: if it has no nodes yet, it begins with as many as it declares.
    """
    if pool.bounds is None:
        return pool
    there = await numbered(client, pool, patience, recorded)
    if new and not there:
        return pool
    return with_ordinals(pool, within_bounds(pool, there.keys()))


async def numbered(
    client: Client, pool: Pool, patience: float | None = None, recorded: str | None = None
) -> dict[int, LiveNode]:
    """The existing nodes of a pool, by number."""
    found = {}
    async for node in selected(client, of_pool(pool.name), patience):
        ordinal = pool.ordinal_of(node.name)
        if ordinal is not None and not node.real and not is_anothers(pool, node, recorded):
            found[ordinal] = node
    return dict(sorted(found.items()))


def free(taken: Collection[int], count: int) -> list[int]:
    """The lowest numbers that are not taken."""
    found: list[int] = []
    ordinal = 0
    while len(found) < count:
        if ordinal not in taken:
            found.append(ordinal)
        ordinal += 1
    return found


def within_bounds(pool: Pool, there: Iterable[int]) -> list[int]:
    """The numbers of the nodes that a pool with bounds should have; `there`: those of the nodes that exist."""
    found = sorted(there)
    assert pool.bounds is not None
    wanted = pool.bounds.nearest(len(found))
    return sorted([*found[:wanted], *free(set(found), wanted - len(found))])


def with_ordinals(pool: Pool, ordinals: Iterable[int]) -> Pool:
    """A pool of just these nodes."""
    wanted = set(ordinals)
    replicas = max(wanted, default=-1) + 1
    return replace(pool, replicas=replicas, absent=frozenset(range(replicas)) - wanted)
