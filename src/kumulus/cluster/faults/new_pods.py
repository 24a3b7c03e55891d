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

# Seconds in which KWOK has to have taken one more of the nodes that were made.
_STANDSTILL = 20.0
# Likewise, of any nodes: some may be nobody's.
_OF_ANY = 5.0
# Seconds that KWOK's view of a lease may be behind.
_BEHIND = 0.3
_LOOKS = 3
_NODES = "/api/v1/nodes"
# Up to so many leases are asked for one by one, as a cluster may have tens of thousands.
_ASK_SINGLY = 40


async def wait_until_managed(client: Client, nodes: Collection[str], stop: asyncio.Event | None = None) -> str:
    """Wait until KWOK has the leases of new nodes, and have it look at the pods that are bound to them by then.

    Pods that wait for nodes are bound to new ones before KWOK has taken these: of 1,200 that waited for 300 nodes, 513
    would never have run. So all leases are waited for where any pod waits; and where KWOK reads its stages as objects,
    as it begins to take leases seconds after the cluster answers, and pods that are made meanwhile would be lost on it.
    Elsewhere nothing is waited for, and a pod that is made and bound in the very moment may be passed over.

    Args:
        client: of the cluster.
        nodes: names of the nodes that were made.
        stop: when set, nothing is waited for any longer.

    Returns:
        Which nodes KWOK does not manage yet, in a sentence; empty when all are.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    wanted, stop = set(nodes), stop or asyncio.Event()
    if not wanted or not (await _anybody_waits(client) or await _reads_objects(client)):
        return ""
    missing = await _untaken(client, wanted, stop, _STANDSTILL)
    await _show(client, wanted - missing, stop)
    return f"KWOK does not manage {len(missing):,} of the nodes yet, {min(missing)} among them" if missing else ""


async def wait_until_all_are_managed(client: Client, stop: asyncio.Event) -> int:
    """Wait until KWOK has the leases of all nodes, before pods are made; how many it did not have at first.

    After an update with thousands of new nodes that takes some seconds, and pods that are bound before may be passed
    over. If nothing takes the leases, as for nodes without a KWOK, it stops soon.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    free = set(await objects.names(client, _NODES)).difference(await objects.names(client, LEASES))
    return len(free) - len(await _untaken(client, free, stop, _OF_ANY))


async def _anybody_waits(client: Client) -> bool:
    found = await client.get(PODS, {"fieldSelector": "status.phase=Pending", "limit": "1"})
    return bool(found.get("items"))


async def _untaken(client: Client, nodes: Collection[str], stop: asyncio.Event, standstill: float) -> set[str]:
    """Those of the nodes that KWOK has not taken when none was taken for some seconds, or at a stop."""
    missing, pause, give_up = set(nodes), 0.05, time.monotonic() + standstill
    while missing and not stop.is_set() and time.monotonic() < give_up:
        if taken := await _leased(client, missing):
            missing -= taken
            give_up = time.monotonic() + standstill
        if missing:
            await asyncio.sleep(pause)
            pause = min(0.5, pause * 2)
    return missing


async def _leased(client: Client, nodes: Collection[str]) -> set[str]:
    """Those of the nodes that have a lease: KWOK's, or that of a fault which keeps KWOK from them."""
    if len(nodes) > _ASK_SINGLY:
        return set(await objects.names(client, LEASES)).intersection(nodes)
    found = [node for node in nodes if await objects.find(client, f"{LEASES}/{node}")]
    return set(found)


async def _show(client: Client, nodes: Collection[str], stop: asyncio.Event) -> None:
    """Have KWOK look at the pods that are bound to nodes and have not begun to run, until they have."""
    shown: set[str] = set()
    for look in range(_LOOKS):
        await asyncio.sleep(_BEHIND)
        waiting = [pod for pod in await _waiting(client, nodes) if not look or pod["metadata"]["uid"] in shown]
        if not waiting or stop.is_set():
            return
        await pods.resume(client, waiting)
        shown = {pod["metadata"]["uid"] for pod in waiting}


async def _waiting(client: Client, nodes: Collection[str]) -> list[dict[str, Any]]:
    """The pods that are bound to nodes and that nothing has been done to."""
    pages = client.pages(PODS, {"fieldSelector": "spec.nodeName!=,status.phase=Pending"})
    return [
        pod
        async for page in pages
        for pod in page
        if pod["spec"]["nodeName"] in nodes and not pod["status"].get("startTime")
    ]


async def _reads_objects(client: Client) -> bool:
    """Whether the cluster has stages as objects."""
    try:
        return bool((await client.get(STAGES, {"limit": "1"})).get("items"))
    except ApiError as error:
        if error.status == 404:
            return False
        raise
