"""What is in a pool's way in its cluster: other stacks' pools and nodes, and real nodes. None of it is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kumulus.kube import objects
from kumulus.model.applied import APPLIED
from kumulus.model.identity import STACK_ID, Owner
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, Pool
from kumulus.model.words import listed
from kumulus.nodes import ownership
from kumulus.nodes.faults import records
from kumulus.nodes.pools.live import LiveNode, of_pool, selected

if TYPE_CHECKING:
    from kumulus.kube import Client

_RENAME = "rename the node group or its zone"


class PoolTaken(Exception):
    """Another stack has a pool of this name in the cluster, or real nodes have names of the pool."""


async def refuse_real(client: Client, pool: Pool, patience: float | None = None) -> None:
    """Check whether real nodes have names of the pool, in a cluster that is not the stack's own; raises PoolTaken."""
    wanted = set(pool.node_names())
    # Real nodes have no pool; in a fleet of emulated nodes, few others have none.
    nodes = selected(client, f"!{POOL_LABEL}", patience)
    if taken := sorted([node.name async for node in nodes if node.real and node.name in wanted]):
        names = listed(taken)
        raise PoolTaken(f"real nodes carry its names: {names}; nothing was changed: {_RENAME}")


async def refuse_taken(client: Client, pool: Pool, patience: float, recorded: str | None = None) -> None:
    """Check, before anything is done to a pool, whether another stack has one of its name, by two requests.

    Args:
        pool: what is wanted; its labels name the stack and the name that the stack has for its cluster.
        recorded: the identity under which the stack has the pool in its state, empty when it had none: nodes with that
            identity, or with none, are its own. None if the pool is not in the state.

    Raises:
        PoolTaken: there are nodes of such a pool, or a record of one.
    """
    ours = _owner(pool)
    async for node in selected(client, _selector_of_others(pool, recorded), patience):
        if not node.real:
            raise PoolTaken(f"node {node.name} {await _owner_text(client, node)}; {_RENAME}")
    record = await objects.find(client, records.path_of_pool(pool.name)) if ours.identity else None
    if record is None:
        return
    owner = Owner.of(record["metadata"])
    if owner is not None and owner.identity not in (ours.identity, recorded):
        owner_text = await ownership.named(client, owner)
        raise PoolTaken(f"it is on record in the cluster and belongs to {owner_text}; {_RENAME}")
    if owner is None and recorded is None:
        raise PoolTaken(
            "it is on record in the cluster for a stack of an earlier version of Kumulus; destroy it there, or "
            f"{_RENAME}"
        )


def is_anothers(pool: Pool, node: LiveNode, recorded: str | None = None) -> bool:
    """Whether an emulated node is not the pool's, whatever its name and labels; `recorded` as in `refuse_taken`."""
    ours, identity = _owner(pool).identity, node.labels.get(STACK_ID)
    if identity is not None:
        return identity not in (ours, recorded)
    # Without an identity: nodes that we made have our record, even if their labels were removed.
    return bool(ours) and node.labels.get(POOL_LABEL) != pool.name and APPLIED not in node.annotations


async def why_taken(client: Client, pool: Pool, node: LiveNode) -> str:
    """Why a node that has just appeared under one of the pool's names is not the pool's; empty if it is."""
    other_cluster = node.labels.get(CLUSTER_LABEL, pool.cluster) != pool.cluster
    if is_anothers(pool, node) or (other_cluster and STACK_ID not in node.labels):
        return f"node {node.name} {await _owner_text(client, node)}; {_RENAME}"
    return ""


async def _owner_text(client: Client, node: LiveNode) -> str:
    if STACK_ID in node.labels:
        return await ownership.owner_text(client, {"labels": node.labels})
    if cluster := node.labels.get(CLUSTER_LABEL):
        return f"is another stack's, which calls its cluster {cluster}"
    return "was made by somebody else"


def _selector_of_others(pool: Pool, recorded: str | None) -> str:
    """The selector of the nodes that carry the pool's name but are not its own."""
    ours = _owner(pool).identity
    if not ours and recorded is not None:
        # The state has the pool: then another cluster's name on one of its nodes is drift.
        return f"{of_pool(pool.name)},{STACK_ID}"
    if not ours:
        # Only the stack's name for its cluster tells its nodes from others.
        return f"{of_pool(pool.name)},{CLUSTER_LABEL},{CLUSTER_LABEL}!={pool.cluster}"
    if recorded is None:
        return f"{of_pool(pool.name)},{STACK_ID}!={ours}"
    known = ",".join(sorted({ours, recorded} - {""}))
    return f"{of_pool(pool.name)},{STACK_ID},{STACK_ID} notin ({known})"


def _owner(pool: Pool) -> Owner:
    return Owner(pool.labels.get(STACK_ID, ""))
