"""The bodies of the nodes to post, encoded."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kumulus.kube.media import PROTOBUF
from kumulus.kube.protobuf import NodeBatch
from kumulus.model.pools import Pool
from kumulus.model.posted import posted_node, record_of

MEDIA_TYPE = PROTOBUF


class Bodies:
    """Encodes the nodes of a pool, as :data:`MEDIA_TYPE`; what they share is computed once.

    Args:
        pool: the pool; its nodes are posted Ready as of now.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._record = record_of(replace(pool, faults=None), 0)
        self._batch = NodeBatch(self.manifest(0), self.manifest(1))

    def manifest(self, ordinal: int) -> dict[str, Any]:
        """Return one node as it is posted, a plain v1 Node."""
        faulted = self._pool.faults is not None and bool(self._pool.faults.of(ordinal))
        # Nodes with labels of their own each have a different record.
        record = record_of(self._pool, ordinal) if faulted or self._pool.nodes else self._record
        return posted_node(self._pool, ordinal, self._now, record)

    def of(self, ordinal: int) -> bytes:
        """Return the encoding of one node."""
        return self._batch.encode(self.manifest(ordinal))
