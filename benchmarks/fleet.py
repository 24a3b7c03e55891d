"""Operate a fleet of nine pools through the plugin's own resources, as the engine does, and time it."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.control_plane import ControlPlane, pools
from kumulus.kube import Client
from kumulus.model.pool_form import pool_to_properties
from kumulus.model.pools import Pool
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Operation
from kumulus.provider.resources.node_pool import NodePool
from kumulus.runtimes.kwok.priority import CpuYield
from kumulus.runtimes.kwok.storage import Storages
from tests.support.said import Said

NODES = "/api/v1/nodes"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


class Fleet:
    """Nine pools on one control plane.

    Args:
        posted: whether its nodes are created by POST, as with ``createThrough: api``.
    """

    def __init__(self, plane: ControlPlane, *, posted: bool = False) -> None:
        self._plane = plane
        self._connections = Connections()
        self._resource = NodePool(self._connections, CpuYield().yielding, None if posted else Storages().of)
        self._recorded: dict[str, dict[str, Any]] = {}
        self._op = Operation("urn:pulumi:bench::bench::kumulus:index:NodePool::bench", Said(), asyncio.Event())

    def _properties(self, pool: Pool) -> dict[str, Any]:
        observed = self._plane.observed
        place = {"kubeconfig": observed.kubeconfig, "clusterIdentity": observed.identity, "clusterName": "bench"}
        return {**place, **pool_to_properties(pool)}

    async def become(self, nodes: int, labels: Mapping[str, str] | None = None) -> float:
        """Create or update the pools so that they have this many nodes in all; returns the seconds it took."""
        wanted = [replace(pool, labels={**pool.labels, **(labels or {})}) for pool in pools(nodes)]

        async def apply(pool: Pool) -> None:
            inputs = self._properties(pool)
            old = self._recorded.get(pool.name)
            if old is None:
                _, self._recorded[pool.name] = await self._resource.create(self._op, inputs)
            else:
                self._recorded[pool.name] = await self._resource.update(self._op, pool.name, old, inputs)

        started = time.monotonic()
        await asyncio.gather(*(apply(pool) for pool in wanted))
        return time.monotonic() - started

    async def relabel(self, pool: str, labels: Mapping[str, str]) -> float:
        """Put labels on the nodes of one pool, as an update of the stack does; returns the seconds it took."""
        old = self._recorded[pool]
        inputs = {**old, "labels": {**old["labels"], **labels}}
        started = time.monotonic()
        self._recorded[pool] = await self._resource.update(self._op, pool, old, inputs)
        return time.monotonic() - started

    async def until_ready(self, nodes: int) -> float:
        """Wait until this many nodes are Ready; returns the time when they were (``time.monotonic``)."""
        return await until_ready(self._plane.client, nodes)

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()


async def until_ready(client: Client, nodes: int) -> float:
    """Wait until exactly this many nodes exist and all are Ready; returns the time when they were (``time.monotonic``).

    This is the time when the successful check began, so that the check itself is not part of the measurement.
    """
    # The table that kubectl shows: listing whole nodes would cost the server more than creating some of them.
    query = {"resourceVersion": "0", "includeObject": "None"}
    while True:
        looked = time.monotonic()
        rows = (await client.get(NODES, query, accept=_TABLE))["rows"]
        if len(rows) == nodes and all(row["cells"][1] == "Ready" for row in rows):
            return looked
        await asyncio.sleep(0.1)
