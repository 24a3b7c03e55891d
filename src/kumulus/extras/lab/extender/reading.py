"""Nodes of a cluster as a policy sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kumulus.extras.lab.cluster.claims import published
from kumulus.extras.lab.offline.placing import Machine, in_order
from kumulus.extras.schedulers.pod_requests import lenient
from kumulus.kube.messages import MessageCodec
from kumulus.model.gfd import GPU_RESOURCE
from kumulus.model.pools import GROUP_LABEL
from kumulus.model.quantity import NANO, ZERO

if TYPE_CHECKING:
    from kumulus.kube import Client


async def machines_of(client: Client, product_label: str) -> list[Machine]:
    """The nodes of a cluster, in the order of their pools and numbers.

    Args:
        product_label: the node label that says which GPUs a node has; for a node without it, the group's name is used.
    """
    found, devices = [], await published(client)
    async for page in client.listed("/api/v1/nodes", MessageCodec("Node")):
        for node in page:
            has = lenient({name: amount.string for name, amount in node.status.allocatable.items()})
            labels = node.metadata.labels
            model = labels.get(product_label) or labels.get(GROUP_LABEL, "")
            found.append(
                Machine(
                    node.metadata.name,
                    has.get("cpu", ZERO).nanos * 1000 // NANO,
                    has.get("memory", ZERO).nanos // (NANO << 20),
                    # GPUs that a node offers both ways are counted once.
                    max(has.get(GPU_RESOURCE, ZERO).nanos // NANO, devices[node.metadata.name]),
                    model,
                )
            )
    return in_order(found)
