"""What all nodes of a cluster together have for pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kumulus.kube.messages import MessageCodec
from kumulus.model.quantity import ZERO, Quantity, parse

if TYPE_CHECKING:
    from kumulus.kube import Client


async def allocatable(client: Client) -> dict[str, str]:
    """What all nodes together have for pods, by resource; without the number of pods, which is not requested."""
    total: dict[str, Quantity] = {}
    async for page in client.listed("/api/v1/nodes", MessageCodec("Node")):
        for node in page:
            for resource, written in node.status.allocatable.items():
                total[resource] = total.get(resource, ZERO) + parse(written.string)
    return {resource: str(amount) for resource, amount in sorted(total.items()) if resource != "pods"}
