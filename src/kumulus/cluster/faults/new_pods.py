"""See to it that KWOK plays the pods on nodes that are new.

KWOK v0.8.0 passes over a pod that is bound to a node whose lease it does not hold yet. It looks at a node's pods once
more when it has taken the lease, but may pass over them again, as its own view of the lease is some milliseconds behind
(controller.go, podsOnNodeSyncWorker; pod_controller.go, readOnly): until such a pod changes, it does not run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from kumulus.cluster.faults import pods
from kumulus.cluster.faults.leases import LEASES
from kumulus.kube import ApiError, objects
from kumulus.kube.pods import PODS
from kumulus.kwok.stages import STAGES

if TYPE_CHECKING:
    from kumulus.kube import Client

_PATIENCE = 20.0


async def wait_until_managed(client: Client, nodes: Collection[str], stop: asyncio.Event | None = None) -> str:
    """Wait until KWOK has the leases of new nodes, and have it look at the pods that are bound to them by then.

    Where it reads its stages as objects, it begins to take leases seconds after the cluster answers, and pods that are
    made meanwhile would be lost on it: all leases are waited for. Elsewhere only those of nodes that have pods already.

    Args:
        client: of the cluster.
        nodes: names of the nodes that were made.
        stop: when set, nothing is waited for any longer.

    Returns:
        Which nodes are not played yet, in a sentence; empty when all are.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    wanted = set(nodes)
    if wanted and not await _reads_objects(client):
        wanted = {pod["spec"]["nodeName"] for pod in await _waiting(client, wanted)}
    if not wanted:
        return ""
    give_up, pause = time.monotonic() + _PATIENCE, 0.05
    while missing := wanted.difference(await objects.names(client, LEASES)):
        if time.monotonic() > give_up or (stop is not None and stop.is_set()):
            return f"KWOK does not manage {len(missing):,} of the nodes yet, {min(missing)} among them"
        await asyncio.sleep(pause)
        pause = min(0.5, pause * 2)
    await pods.resume(client, await _waiting(client, wanted))
    return ""


async def _waiting(client: Client, nodes: Collection[str]) -> list[dict[str, Any]]:
    """The pods that are bound to nodes and have not begun to run."""
    pages = client.pages(PODS, {"fieldSelector": "spec.nodeName!=,status.phase=Pending"})
    return [pod async for page in pages for pod in page if pod["spec"]["nodeName"] in nodes]


async def _reads_objects(client: Client) -> bool:
    """Whether the cluster has stages as objects."""
    try:
        return bool((await client.get(STAGES, {"limit": "1"})).get("items"))
    except ApiError as error:
        if error.status == 404:
            return False
        raise
