"""Hand nodes and pods over from a kwok-controller that ended to the one that takes its place.

The holder of KWOK's node leases is ``<host>_<uuid of the process>``: a new controller would wait for the old one's
leases to expire, up to 200 s in which neither nodes nor pods are advanced.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError, Unreachable, objects
from kumulus.kube.bulk import for_each
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.objects import NODES
from kumulus.kube.pods import BOUND, PODS
from kumulus.nodes.faults import leases, pods
from kumulus.nodes.faults.new_pods import BEHIND_S

if TYPE_CHECKING:
    from kumulus.kube import Client

_PATIENCE = 20.0
_FINISHED = "status.phase!=Pending,status.phase!=Running"


async def release(client: Client) -> bool:
    """Delete every node lease, before the new controller starts; False when the API server does not answer.

    Clearing the holder is not enough: a new controller that does not see a lease yet tries to create it, and if it
    exists, retries only after a quarter of its 200 s.
    """

    async def delete(name: str) -> None:
        with suppress(ApiError):
            await client.delete(f"{leases.LEASES}/{name}")

    try:
        # A node that a fault has silenced stays silent.
        names = [node for node, holder in (await leases.holders(client)).items() if holder != leases.HOLDER]
        outcome = await for_each(names, delete, workers=client.connections)
    except (ApiError, Unreachable):
        return False
    return outcome.complete


async def resume(client: Client, *, everything: bool = False) -> None:
    """Make the new controller look at every pod that waits for one of its stages.

    KWOK v0.8.0 looks at a node's pods when it has taken the node's lease, but passes over them while its own view of
    that lease is some milliseconds behind (controller.go, podsOnNodeSyncWorker; pod_controller.go, readOnly). Until
    such a pod changes, it neither runs, nor completes, nor is deleted. So each is changed, once the leases are held.

    Args:
        everything: any pod may wait, as the stack declares stages of its own.
    """
    give_up = time.monotonic() + _PATIENCE
    pause = 0.05
    while not await _held(client) and time.monotonic() < give_up:
        await asyncio.sleep(pause)
        pause = min(1.0, pause * 2)
    await asyncio.sleep(BEHIND_S)
    waiting = [
        pod async for page in client.pages(PODS, {"fieldSelector": BOUND}) for pod in page if everything or _waits(pod)
    ]
    # A deleted pod may have ended, and not be removed yet.
    waiting += [
        pod
        async for page in client.pages(PODS, {"fieldSelector": f"spec.nodeName!=,{_FINISHED}"}, accept=METADATA_ONLY)
        for pod in page
        if pod["metadata"].get("deletionGracePeriodSeconds")
    ]
    await pods.resume(client, waiting)


async def _held(client: Client) -> bool:
    """Whether every node's lease is held."""
    held = {node for node, holder in (await leases.holders(client)).items() if holder}
    return held.issuperset(await objects.names(client, NODES))


def _waits(pod: Mapping[str, Any]) -> bool:
    """Whether one of the stages applies to a pod that is bound and has not ended."""
    meta = pod["metadata"]
    of_a_job = any(owner.get("kind") == "Job" for owner in meta.get("ownerReferences") or ())
    return of_a_job or "deletionTimestamp" in meta or pod["status"].get("phase") == "Pending"
