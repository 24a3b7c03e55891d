"""The record, kept on a node, of the keys that we set there, so that those no longer wanted can be removed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kumulus.model.nodes import CONDITIONS, OwnedFields, node_manifest, owned_fields
from kumulus.model.pools import ARCH_LABEL, OS_LABEL, Pool

APPLIED = "kumulus.io/applied"
"""The annotation that carries the record."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The keys that we set on a node when we last wrote it."""

    labels: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    taints: frozenset[tuple[str, str]] = frozenset()
    resources: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    features: bool = False
    """Whether the pool named, or needed, the features that the node declares."""

    def joined(self, other: Applied) -> Applied:
        """The record of a node on the way from this state to another: it may have the keys of either."""
        return Applied(
            labels=self.labels | other.labels,
            annotations=self.annotations | other.annotations,
            taints=self.taints | other.taints,
            resources=self.resources | other.resources,
            conditions=self.conditions | other.conditions,
            features=self.features or other.features,
        )


def applied_of(ours: OwnedFields) -> Applied:
    """The record of a node in its wanted state."""
    return Applied(
        labels=frozenset(ours.labels),
        annotations=frozenset(ours.annotations),
        taints=frozenset(taint.place for taint in ours.taints),
        resources=frozenset(ours.capacity) | frozenset(ours.allocatable),
        # A healthy node has those of CONDITIONS too: they never have to be removed.
        conditions=frozenset(ours.conditions) - frozenset(CONDITIONS),
        features=ours.declared_features is not None,
    )


# The nodes of a pool share a few distinct records.
@lru_cache(maxsize=64)
def encode_applied(applied: Applied) -> str:
    """Write the record as the annotation's value."""
    record: dict[str, object] = {
        "labels": sorted(applied.labels),
        "annotations": sorted(applied.annotations),
        "taints": sorted(applied.taints),
        "resources": sorted(applied.resources),
    }
    if applied.conditions:
        # Only a fault sets any: the record of a node without faults keeps its old form.
        record["conditions"] = sorted(applied.conditions)
    if applied.features:
        record["declaredFeatures"] = True
    return json.dumps(record, separators=(",", ":"))


def decode_applied(annotations: Mapping[str, str]) -> Applied:
    """Read the record from a node's annotations; empty when it is missing or malformed."""
    value = annotations.get(APPLIED)
    return _decoded(value) if value is not None else Applied()


@lru_cache(maxsize=64)
def _decoded(value: str) -> Applied:
    try:
        record = json.loads(value)
        return Applied(
            labels=frozenset(map(str, record["labels"])),
            annotations=frozenset(map(str, record["annotations"])),
            taints=frozenset((str(key), str(effect)) for key, effect in record["taints"]),
            resources=frozenset(map(str, record["resources"])),
            conditions=frozenset(map(str, record.get("conditions", ()))),
            features=bool(record.get("declaredFeatures")),
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        return Applied()


def record_of(pool: Pool, ordinal: int) -> str:
    """The record of a node, as the annotation's value; it is the same on every node without faults or own labels."""
    return encode_applied(applied_of(owned_fields(pool, ordinal)))


def posted_node(pool: Pool, ordinal: int, now: str, record: str) -> dict[str, Any]:
    """One node as it is posted, a plain v1 Node; `now`, RFC 3339 in UTC, is the time of its conditions."""
    manifest = node_manifest(pool, ordinal, now)
    manifest["metadata"]["annotations"][APPLIED] = record
    # The controller manager adds these copies to every node that lacks them, with two requests per node.
    labels = manifest["metadata"]["labels"]
    for stable in (ARCH_LABEL, OS_LABEL):
        if stable in labels:
            labels.setdefault(f"beta.{stable}", labels[stable])
    return manifest
