"""A node as it is posted: its wanted state, the record of that, and labels that others would add at once."""

from __future__ import annotations

from typing import Any

from kumulus.model.applied import APPLIED, applied_of, encode_applied
from kumulus.model.nodes import node_manifest, owned_fields
from kumulus.model.pools import ARCH_LABEL, CLUSTER_LABEL, OS_LABEL, Pool


def record_of(pool: Pool, ordinal: int) -> str:
    """The record of a node, the annotation's value; the same on every node without an active fault."""
    return encode_applied(applied_of(owned_fields(pool, ordinal, pool.labels.get(CLUSTER_LABEL, ""))))


def posted_node(pool: Pool, ordinal: int, now: str, record: str) -> dict[str, Any]:
    """One node as it is posted, a plain v1 Node.

    Args:
        ordinal: which of its nodes, from 0.
        now: the time of the conditions, RFC 3339 in UTC.
        record: its `record_of`.
    """
    manifest: Any = node_manifest(pool, ordinal, now, pool.labels.get(CLUSTER_LABEL, ""))
    manifest["metadata"]["annotations"][APPLIED] = record
    # The controller manager adds these copies to every node that lacks them, with two requests per node.
    labels = manifest["metadata"]["labels"]
    for stable in (ARCH_LABEL, OS_LABEL):
        if stable in labels:
            labels.setdefault(f"beta.{stable}", labels[stable])
    return dict(manifest)
