"""Find pods by the nodes they are bound to, of few nodes or of thousands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from kumulus.kube.bulk import for_all

if TYPE_CHECKING:
    from kumulus.kube.client import Client

PODS = "/api/v1/pods"
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector of pods that have not ended."""

# Up to this many nodes are asked for one by one (the server indexes pods by node); beyond it all pods are paged.
_ASK_SINGLY = 40


def path_of(pod: Mapping[str, Any]) -> str:
    """The path of a pod."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


async def each_bound(
    client: Client, nodes: Collection[str], look: Callable[[dict[str, Any]], object], *, unfinished: bool = False
) -> None:
    """Call a function with each pod that is bound to any of the nodes; the pods are not kept.

    Args:
        look: called with a pod.
        unfinished: call it only with those that have not ended.
    """
    among = set(nodes)

    async def page_through(selector: str) -> None:
        fields = f"{selector},{UNFINISHED}" if unfinished else selector
        async for page in client.pages(PODS, {"fieldSelector": fields}):
            for pod in page:
                if pod["spec"].get("nodeName") in among:
                    look(pod)

    if len(among) > _ASK_SINGLY:
        await page_through("spec.nodeName!=")
        return
    selectors = [f"spec.nodeName={node}" for node in sorted(among)]
    await for_all(selectors, page_through, workers=16, most_failures=1)
