"""Find real nodes in a pool's way: in a cluster that is not the stack's own, one may have a name of the pool's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kumulus.model.pools import POOL_LABEL, Pool
from kumulus.model.words import listed
from kumulus.nodes.pools.live import selected

if TYPE_CHECKING:
    from kumulus.kube import Client

_NAMED = 5


async def in_the_way(client: Client, pool: Pool, patience: float | None = None) -> list[str]:
    """Names of the pool that real nodes carry.

    Args:
        client: the cluster's API.
        pool: what is wanted.
        patience: seconds to keep trying an unreachable server.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    wanted = set(pool.node_names())
    # Real nodes have no pool; in a fleet of emulated nodes, few others have none.
    nodes = selected(client, f"!{POOL_LABEL}", patience)
    return sorted([node.name async for node in nodes if node.real and node.name in wanted])


def refusal(pool: Pool, taken: list[str]) -> str:
    """The error message about them."""
    names = listed(taken, _NAMED)
    return f"pool {pool.name}: real nodes carry its names: {names}; nothing was changed: rename the group or its zone"
