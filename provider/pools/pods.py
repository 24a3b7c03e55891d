"""The pods bound to a pool's nodes: count them for a preview, remove them with their nodes."""

from __future__ import annotations

import asyncio
import time

from kube import ApiError, Client
from kube.bulk import for_each
from provider.engine import Reporter

_PODS = "/api/v1/pods"
# Up to this many nodes are asked for one by one (the server indexes pods by node); beyond it all pods are paged.
_ASK_SINGLY = 40
_PATIENCE = 60.0


class PodsRemain(Exception):
    """Pods of removed nodes did not go in time."""


async def bound_to(client: Client, nodes: set[str], *, running: bool = False) -> list[tuple[str, str]]:
    """Return namespace and name of the pods bound to any of the nodes.

    Args:
        client: the cluster's API.
        nodes: names of nodes.
        running: only those in phase Pending or Running; finished ones hold nothing.
    """
    found: list[tuple[str, str]] = []

    def look(pod: dict[str, object]) -> None:
        spec, status, meta = pod.get("spec"), pod.get("status"), pod.get("metadata")
        assert isinstance(spec, dict)
        assert isinstance(meta, dict)
        phase = status.get("phase") if isinstance(status, dict) else None
        if spec.get("nodeName") in nodes and not (running and phase in ("Succeeded", "Failed")):
            found.append((meta["namespace"], meta["name"]))

    if len(nodes) <= _ASK_SINGLY:

        async def ask(node: str) -> None:
            async for page in client.pages(_PODS, {"fieldSelector": f"spec.nodeName={node}"}):
                for pod in page:
                    look(pod)

        outcome = await for_each(sorted(nodes), ask, workers=16, most_failures=1)
        if outcome.failed:
            raise outcome.failed[0][1]
    else:
        async for page in client.pages(_PODS, {"fieldSelector": "spec.nodeName!="}):
            for pod in page:
                look(pod)
    return found


async def remove_from(client: Client, nodes: set[str], stop: asyncio.Event, report: Reporter) -> int:
    """Remove the pods bound to nodes that no longer exist, and wait until they are gone.

    The scheduler may bind one more pod to a node it has not yet seen go, and a Job's pod stays until its controller
    took its finalizer away: so it is looked again until nothing is left.

    Args:
        client: the cluster's API.
        nodes: names of the removed nodes.
        stop: when set, no further round is begun.
        report: takes passing status lines.

    Returns:
        How many pods were removed.

    Raises:
        PodsRemain: some were still there after a minute.
    """
    removed: set[tuple[str, str]] = set()
    deadline = time.monotonic() + _PATIENCE
    pause = 0.05
    while nodes:
        left = await bound_to(client, nodes)
        if not left or stop.is_set():
            break
        if time.monotonic() > deadline:
            raise PodsRemain(
                f"{len(left):,} pods of removed nodes are still there, {left[0][0]}/{left[0][1]} among them"
            )
        fresh = [pod for pod in left if pod not in removed]
        report.status(f"removing {len(left):,} pods")

        async def remove(pod: tuple[str, str]) -> None:
            try:
                await client.delete(f"/api/v1/namespaces/{pod[0]}/pods/{pod[1]}", {"gracePeriodSeconds": 0})
            except ApiError as error:
                if error.status != 404:
                    raise

        outcome = await for_each(fresh, remove, workers=client.connections, stop=stop)
        if outcome.failed:
            raise outcome.failed[0][1]
        removed.update(outcome.done)
        if not fresh:
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 2)
    return len(removed)
