"""A live node reduced to what a pool compares: small, because a page of a list holds hundreds of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spec.pools import Taint

APPLIED = "kumulus.io/applied"
"""Annotation that records which keys we set on a node, so that a key dropped from the template can be removed."""

NODES = "/api/v1/nodes"

# A kubelet reports its runtime as a URL (containerd://1.7.2); KWOK's emulated nodes never do.
_REAL_RUNTIME = re.compile(r"[a-z0-9.-]+://")


@dataclass(frozen=True, slots=True)
class LiveNode:
    """What a pool looks at on a node.

    Attributes:
        name: the node's name.
        uid: the object's UID.
        version: its resourceVersion.
        labels, annotations: as they are, ours and others'.
        taints: as they are, with the raw objects, since others' taints must be written back unchanged.
        capacity, allocatable: quantities by resource.
        node_info: what it says of its machine.
        real: whether a real kubelet stands behind it: such a node is never ours to change.
    """

    name: str
    uid: str
    version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    node_info: Mapping[str, str]
    real: bool


@dataclass(frozen=True, slots=True)
class Applied:
    """The keys that we set on a node when we last wrote it."""

    labels: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    taints: frozenset[tuple[str, str]] = frozenset()
    resources: frozenset[str] = frozenset()


def live_node(item: Mapping[str, Any]) -> LiveNode:
    """Reduce a Node object as the API server returns it."""
    meta = item["metadata"]
    status = item.get("status") or {}
    info = status.get("nodeInfo") or {}
    runtime = str(info.get("containerRuntimeVersion") or "")
    return LiveNode(
        name=meta["name"],
        uid=meta.get("uid", ""),
        version=meta.get("resourceVersion", ""),
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        taints=tuple((item.get("spec") or {}).get("taints") or ()),
        capacity=status.get("capacity") or {},
        allocatable=status.get("allocatable") or {},
        node_info=info,
        real=bool(_REAL_RUNTIME.match(runtime)),
    )


def taint_key(taint: Mapping[str, Any] | Taint) -> tuple[str, str]:
    """What identifies a taint on a node: its key and its effect (core/v1, Taint)."""
    if isinstance(taint, Taint):
        return (taint.key, taint.effect)
    return (str(taint.get("key")), str(taint.get("effect")))


def encode_applied(applied: Applied) -> str:
    """Write the record as the annotation's value."""
    record = {
        "labels": sorted(applied.labels),
        "annotations": sorted(applied.annotations),
        "taints": sorted(list(taint) for taint in applied.taints),
        "resources": sorted(applied.resources),
    }
    return json.dumps(record, separators=(",", ":"))


def decode_applied(node: LiveNode) -> Applied:
    """Read the record of a node; empty when it is missing or was spoiled by hand."""
    try:
        record = json.loads(node.annotations[APPLIED])
        return Applied(
            labels=frozenset(map(str, record["labels"])),
            annotations=frozenset(map(str, record["annotations"])),
            taints=frozenset((str(key), str(effect)) for key, effect in record["taints"]),
            resources=frozenset(map(str, record["resources"])),
        )
    except (KeyError, ValueError, TypeError):
        return Applied()
