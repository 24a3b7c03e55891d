"""A live node reduced to what a pool compares: small, because a page of a list holds hundreds of them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kumulus.kube.objects import NODES
from kumulus.model.durations import timestamp
from kumulus.model.node_changes import NodeFields
from kumulus.model.pools import POOL_LABEL

if TYPE_CHECKING:
    from kumulus.kube import Client


# A kubelet reports its runtime as a URL (containerd://1.7.2); KWOK's emulated nodes never do.
_REAL_RUNTIME = re.compile(r"[a-z0-9.-]+://")


@dataclass(frozen=True, slots=True)
class LiveNode(NodeFields):
    """What a pool looks at on a node."""

    name: str
    uid: str
    version: str
    """Its resourceVersion."""
    real: bool
    """Whether it has a real kubelet: such a node is never ours to change."""
    provider_id: str = ""
    """A cloud provider's ID of its machine; empty for none."""


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
        conditions={each["type"]: each["status"] for each in status.get("conditions") or ()},
        features=tuple(status.get("declaredFeatures") or ()),
        real=bool(_REAL_RUNTIME.match(runtime)),
        provider_id=(item.get("spec") or {}).get("providerID", ""),
    )


async def selected(client: Client, labels: str, patience: float | None = None) -> AsyncIterator[LiveNode]:
    """Every node that a label selector, such as :func:`of_pool`, selects, including real ones, page by page."""
    # Imported here: a plugin that only compares properties does not need it.
    from kumulus.kube.messages import MessageCodec

    async for page in client.listed(NODES, MessageCodec("Node"), {"labelSelector": labels}, patience=patience):
        for message in page:
            yield listed_node(message)


def of_pool(name: str) -> str:
    """The selector of a pool's nodes."""
    return f"{POOL_LABEL}={name}"


def listed_node(message: Any) -> LiveNode:
    """Reduce a Node of a list, which is a message of ``kube.messages``: a C library has decoded it."""
    meta, status = message.metadata, message.status
    info = {field.name: value for field, value in status.nodeInfo.ListFields()}
    return LiveNode(
        name=meta.name,
        uid=meta.uid,
        version=meta.resourceVersion,
        labels=dict(meta.labels),
        annotations=dict(meta.annotations),
        taints=tuple(_taint(taint) for taint in message.spec.taints),
        capacity={key: quantity.string for key, quantity in status.capacity.items()},
        allocatable={key: quantity.string for key, quantity in status.allocatable.items()},
        node_info=info,
        conditions={each.type: each.status for each in status.conditions},
        features=tuple(status.declaredFeatures),
        real=bool(_REAL_RUNTIME.match(status.nodeInfo.containerRuntimeVersion)),
        provider_id=message.spec.providerID,
    )


def _taint(message: Any) -> dict[str, str]:
    """A taint in its JSON form, as the patch that writes it back is JSON."""
    taint = {field: value for field in ("key", "value", "effect") if (value := getattr(message, field))}
    if message.HasField("timeAdded"):
        taint["timeAdded"] = timestamp(datetime.fromtimestamp(message.timeAdded.seconds, UTC))
    return taint
