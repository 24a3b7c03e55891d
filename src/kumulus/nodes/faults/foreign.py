"""Nodes that have names of a pool and are not its own: faults neither change nor delete them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kumulus.kube import objects
from kumulus.model.identity import STACK_ID
from kumulus.model.pools import POOL_LABEL, Pool
from kumulus.nodes.faults.changes import NodeStep
from kumulus.nodes.pools.live import NODES, LiveNode
from kumulus.nodes.pools.observe import get_node
from kumulus.nodes.pools.others import is_anothers

if TYPE_CHECKING:
    from kumulus.kube import Client


class Foreign(Exception):
    """A node under one of a pool's names is not the pool's; the message says which."""


async def foreign(client: Client, steps: Sequence[NodeStep]) -> dict[str, str]:
    """The nodes under the names of steps that are not their pools', each with a sentence.

    Only names are listed, and only of nodes without the stack's mark: of 10,000 nodes that are the stack's, none.

    Args:
        steps: of nodes of any pools.
    """
    by_name = {each.name: each for each in steps}
    selectors = {
        selector
        for pool in {each.pools.bare.name: each.pools.bare for each in steps}.values()
        for selector in _unmarked(pool)
    }
    strange = {
        name
        for selector in sorted(selectors)
        for name in await objects.names(client, NODES, {"labelSelector": selector})
        if name in by_name
    }
    found = {}
    for name in sorted(strange):
        try:
            await own_node(client, by_name[name])
        except Foreign as error:
            found[name] = str(error)
    return found


async def own_node(client: Client, each: NodeStep) -> LiveNode | None:
    """A node of a pool; None if it does not exist.

    Raises:
        Foreign: it is not the pool's.
    """
    node = await get_node(client, each.name)
    if node is None:
        return None
    if node.real:
        raise Foreign(f"a real node carries the name {node.name}; nothing was done to it")
    if is_anothers(each.pools.bare, node):
        raise Foreign(f"node {node.name} is not this stack's; nothing was done to it")
    return node


def _unmarked(pool: Pool) -> list[str]:
    """Selectors of the nodes that may not be a pool's: they do not carry its stack's identity.

    A stack without an identity has only the pool's label to tell real nodes by.
    """
    identity = pool.labels.get(STACK_ID)
    return [f"{STACK_ID}!={identity}"] if identity else [STACK_ID, f"!{POOL_LABEL}"]
