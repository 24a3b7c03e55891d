"""Pools of other stacks in the same cluster: their nodes are not taken over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kumulus.cluster.pools.live import NODES
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, Pool

if TYPE_CHECKING:
    from kumulus.kube import Client


class PoolTaken(Exception):
    """Another stack has a pool of this name in the cluster."""


async def refuse_taken(client: Client, pool: Pool, patience: float) -> None:
    """Ask, before a pool is made, whether another stack has made one of its name; one request.

    A pool that is there already is not asked about: there, another cluster's name on a node is drift.

    Args:
        client: the cluster's API.
        pool: what is to be made; its labels name the stack's own cluster.
        patience: seconds to keep trying an unreachable server.

    Raises:
        PoolTaken: there are nodes of such a pool.
        ApiError, Unreachable: the server could not be asked.
    """
    selector = f"{POOL_LABEL}={pool.name},{CLUSTER_LABEL},{CLUSTER_LABEL}!={_own(pool)}"
    query = {"labelSelector": selector, "limit": "1"}
    for item in (await client.get(NODES, query, patience=patience)).get("items") or []:
        metadata = item["metadata"]
        raise PoolTaken(_taken(metadata["name"], metadata["labels"]))


def taken(pool: Pool, name: str, labels: Mapping[str, str]) -> str:
    """Why a node that has just come up under one of the pool's names is not the pool's; empty for one that is."""
    return _taken(name, labels) if labels.get(CLUSTER_LABEL, _own(pool)) != _own(pool) else ""


def _own(pool: Pool) -> str:
    return pool.labels.get(CLUSTER_LABEL, "")


def _taken(node: str, labels: Mapping[str, str]) -> str:
    owner = f"another stack's, which calls its cluster {labels[CLUSTER_LABEL]}"
    return f"node {node} is {owner}; rename the node group or its zone"
