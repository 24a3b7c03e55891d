"""The bodies of the nodes to post, encoded."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from provider.pools.compare import applied_record
from provider.pools.live import APPLIED, encode_applied
from spec.nodes import node_manifest
from spec.pools import ARCH_LABEL, CLUSTER_LABEL, OS_LABEL, Pool


class Bodies:
    """Encodes the nodes of a pool; what they share is computed once.

    Args:
        pool: the pool; its nodes are posted Ready as of now.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._record = encode_applied(applied_record(pool, 0))

    def of(self, ordinal: int) -> bytes:
        """Return the JSON of one node."""
        manifest: Any = node_manifest(self._pool, ordinal, self._now, self._pool.labels.get(CLUSTER_LABEL, ""))
        manifest["metadata"]["annotations"][APPLIED] = self._record
        # The controller manager copies these to every node that comes without, at two requests for each.
        labels = manifest["metadata"]["labels"]
        for stable in (ARCH_LABEL, OS_LABEL):
            if stable in labels:
                labels.setdefault(f"beta.{stable}", labels[stable])
        return json.dumps(manifest, separators=(",", ":")).encode()
