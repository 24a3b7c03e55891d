"""Make one node of a pool as wanted, despite concurrent changes by others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.kube.codecs import PROTOBUF, STRATEGIC_MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES
from kumulus.kube.protobuf import NodeBatch
from kumulus.model.applied import posted_node, record_of
from kumulus.model.durations import timestamp
from kumulus.model.pools import Pool
from kumulus.nodes.pools.compare import patches
from kumulus.nodes.pools.live import LiveNode
from kumulus.nodes.pools.observe import get_node
from kumulus.nodes.pools.others import why_taken

if TYPE_CHECKING:
    from kumulus.kube import Client


class Bodies:
    """Encodes the nodes of a pool, Ready as of now, in Protocol Buffers; what they share is computed once."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._now = timestamp()
        self._record = record_of(replace(pool, faults={}), 0)
        self._batch = NodeBatch(self.manifest(0), self.manifest(1))

    def manifest(self, ordinal: int) -> dict[str, Any]:
        """Return one node as it is posted, a plain v1 Node."""
        # Nodes with faults, or with labels of their own, have other records.
        differs = ordinal in self._pool.faults or self._pool.nodes
        record = record_of(self._pool, ordinal) if differs else self._record
        return posted_node(self._pool, ordinal, self._now, record)

    def of(self, ordinal: int) -> bytes:
        """Return the encoding of one node."""
        return self._batch.encode(self.manifest(ordinal))


class NameTaken(Exception):
    """A real node, with a kubelet behind it, or another stack's node has a name that the pool wants."""


async def create_node(client: Client, pool: Pool, ordinal: int, body: bytes) -> str:
    """Post a node; if one of that name exists (a repeated post, a concurrent run), change it to what is wanted.

    Returns:
        The node's UID, if the pool publishes devices, which the node owns; otherwise the answer is not read.
    """
    name, uid = pool.node_name(ordinal), ""

    async def attempt() -> bool:
        nonlocal uid
        with tolerating(409):
            if pool.devices is None:
                await client.write("POST", NODES, body, content_type=PROTOBUF)
            else:
                made = await client.request("POST", NODES, body=body, content_type=PROTOBUF)
                uid = str(made["metadata"]["uid"])
            return True
        node = await get_node(client, name)
        if node is None:
            return False
        if reason := await why_taken(client, pool, node):
            raise NameTaken(reason)
        await change_node(client, pool, ordinal, node)
        uid = node.uid
        return True

    await objects.persist(attempt, f"{NODES}/{name}", f"node {name}")
    return uid


async def change_node(client: Client, pool: Pool, ordinal: int, node: LiveNode) -> None:
    """Patch a node's owned fields; if its taints change concurrently, they are read again and kept."""
    path = f"{NODES}/{node.name}"
    # As it was read already: only the first attempt goes by that.
    read_before: LiveNode | None = node

    async def attempt() -> bool:
        nonlocal read_before
        current = read_before or await get_node(client, node.name)
        read_before = None
        if current is None:
            await client.write("POST", NODES, Bodies(pool).of(ordinal), content_type=PROTOBUF)
            return True
        if current.real:
            raise NameTaken(f"a real node already carries the name {node.name}")
        main, status = patches(pool, ordinal, current)
        with tolerating(404):
            if main is not None:
                await client.write("PATCH", path, main, content_type=STRATEGIC_MERGE_PATCH)
            if status is not None:
                await client.write("PATCH", f"{path}/status", status, content_type=STRATEGIC_MERGE_PATCH)
            return True
        return False

    await objects.persist(attempt, path, f"node {node.name}")
