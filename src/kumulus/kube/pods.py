"""Pods: those that are bound to some nodes, few or thousands; and why a pod is not ready."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from kumulus.kube.bulk import for_all

if TYPE_CHECKING:
    from kumulus.kube.client import Client

PODS = "/api/v1/pods"
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector of pods that have not ended."""
BOUND = f"spec.nodeName!=,{UNFINISHED}"
"""The field selector of pods that have a node and have not ended."""

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


# The reasons for which a starting pod waits normally.
_ON_ITS_WAY = ("ContainerCreating", "PodInitializing")
_MOST_CHARACTERS = 200


def reason(pod: Mapping[str, Any]) -> str:
    """A pod's name and what keeps it from being ready; empty if nothing does, or if it is starting normally."""
    status = pod.get("status") or {}
    statuses = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for each in statuses:
        waits = (each.get("state") or {}).get("waiting") or {}
        why = waits.get("reason", "")
        if why and why not in _ON_ITS_WAY:
            ended = (each.get("lastState") or {}).get("terminated") or {}
            cause = _short(waits.get("message", "")) if "Image" in why else _ended(ended)
            return f"{pod['metadata']['name']}: {why} {each['image']}{cause}"
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            message = condition.get("message", "")[:_MOST_CHARACTERS]
            return f"{pod['metadata']['name']}: {condition.get('reason')}: {message}"
    return ""


def _short(message: str) -> str:
    """The end of containerd's message, whose beginning says, layer by layer, what it was about to do."""
    parts = " ".join(message.split()).split(": ")
    return f": {': '.join(parts[-2:])[-_MOST_CHARACTERS:]}" if message else ""


def _ended(terminated: Mapping[str, Any]) -> str:
    if not terminated:
        return ""
    return f": it ended with exit code {terminated.get('exitCode')} ({terminated.get('reason')}); see its log"
