"""Make sure that KWOK runs the pods on new nodes, and those on nodes that an earlier kwok-controller managed.

KWOK v0.8.0 skips a pod that is bound to a node whose lease it does not hold yet. Once it has taken the lease, it looks
at the node's pods again, but may skip them again, because its own view of the lease is some milliseconds behind
(controller.go, podsOnNodeSyncWorker; pod_controller.go, readOnly). Such a pod does not run until it changes.

The holder of KWOK's node leases is ``<host>_<uuid of the process>``: the controller that takes the place of one that
ended would wait for the old one's leases to expire, up to 200 s in which neither nodes nor pods are advanced.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError, Unreachable, objects
from kumulus.kube.bulk import for_each
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES
from kumulus.kube.pods import BOUND, PODS
from kumulus.kwok.stages import STAGES
from kumulus.nodes.faults import leases, pods
from kumulus.nodes.faults.leases import LEASES

if TYPE_CHECKING:
    from kumulus.kube import Client

BEHIND_S = 0.3
"""How far KWOK's view of a lease may be behind."""
# The longest wait for KWOK to take one more of the created nodes. If a node has the name of one that was just deleted,
# KWOK may still know the old lease, and tries again only after a quarter of the 200 s that a lease lasts.
_STANDSTILL_S = 60.0
# Likewise, where there may be no KWOK, or none for some of the nodes.
_STANDSTILL_WITHOUT_KWOK_S = 5.0
# The pauses between looks at the pods, as multiples of BEHIND_S. The longer ones are for a KWOK that has not acted on
# any pod yet, because it is behind, as on a busy machine.
_PAUSES, _LONGER_PAUSES = (1, 1, 1), (3, 7)
# Up to this many leases are read one by one, as a cluster may have tens of thousands.
_ASK_SINGLY = 40


async def wait_until_managed(client: Client, nodes: Collection[str], stop: asyncio.Event | None = None) -> str:
    """Wait until KWOK has the leases of new nodes, and have it look at the pods that are bound to them by then.

    Pending pods are bound to new nodes before KWOK has taken these: of 1,200 pods that waited for 300 nodes, 513 would
    never have run. Where no pod is pending and there are no stages as objects, the cluster may be without a KWOK: the
    wait ends soon, and more than a few nodes, which are mostly written with their leases, are not waited for.

    Returns:
        Which nodes KWOK does not manage yet, in a sentence; empty when all are.
    """
    wanted, stop = set(nodes), stop or asyncio.Event()
    if not wanted:
        return ""
    kwok_expected = await _pods_are_pending(client) or await _has_stages(client)
    if not kwok_expected and len(wanted) > _ASK_SINGLY:
        return ""
    standstill = _STANDSTILL_S if kwok_expected else _STANDSTILL_WITHOUT_KWOK_S
    missing = await _untaken(client, wanted, stop, standstill)
    await _start_pods(client, wanted - missing, stop)
    if missing and kwok_expected:
        return f"KWOK does not manage {len(missing):,} of the nodes yet, {min(missing)} among them"
    return ""


async def wait_until_all_are_managed(client: Client, stop: asyncio.Event) -> int:
    """Wait until KWOK has the leases of all nodes, before pods are created; returns how many it took during the wait.

    If nothing takes the leases, as for nodes without a KWOK, the wait ends soon.
    """
    free = set(await objects.names(client, NODES)).difference(await objects.names(client, LEASES))
    return len(free) - len(await _untaken(client, free, stop, _STANDSTILL_WITHOUT_KWOK_S))


async def _pods_are_pending(client: Client) -> bool:
    found = await client.get(PODS, {"fieldSelector": "status.phase=Pending", "limit": "1"})
    return bool(found.get("items"))


async def _untaken(client: Client, nodes: Collection[str], stop: asyncio.Event, standstill: float) -> set[str]:
    """The nodes that KWOK has not taken when it has taken none for `standstill` seconds, or at a stop."""
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
    return {node for node in nodes if await objects.find(client, f"{LEASES}/{node}")}


async def _start_pods(client: Client, nodes: Collection[str], stop: asyncio.Event) -> None:
    """Have KWOK look at the pods that are bound to nodes and have not begun to run, until they have."""
    if not nodes:
        return
    touched: set[str] = set()
    pauses, behind = [*_PAUSES, *_LONGER_PAUSES], True
    while pauses:
        await asyncio.sleep(pauses.pop(0) * BEHIND_S)
        waiting = await _waiting(client, nodes)
        still_waiting = [pod for pod in waiting if pod["metadata"]["uid"] in touched]
        if behind and len(still_waiting) < len(touched):
            # KWOK has acted on some of them: it has caught up.
            pauses, behind = [*_PAUSES], False
        if not behind:
            # Pods that were bound since then find their node taken.
            waiting = still_waiting
        if not waiting or stop.is_set():
            return
        await pods.resume(client, waiting)
        touched = {pod["metadata"]["uid"] for pod in waiting}


async def _waiting(client: Client, nodes: Collection[str]) -> list[dict[str, Any]]:
    """The pods bound to the nodes that KWOK has not acted on yet."""
    pages = client.pages(PODS, {"fieldSelector": "spec.nodeName!=,status.phase=Pending"})
    return [
        pod
        async for page in pages
        for pod in page
        if pod["spec"]["nodeName"] in nodes and not pod["status"].get("startTime")
    ]


async def _has_stages(client: Client) -> bool:
    """Whether the cluster has Stage objects."""
    with tolerating(404):
        return bool((await client.get(STAGES, {"limit": "1"})).get("items"))
    return False


# The longest wait for a new controller to hold all leases.
_PATIENCE_S = 20.0
# A field selector.
_FINISHED = "status.phase!=Pending,status.phase!=Running"


async def release_leases(client: Client) -> bool:
    """Delete every node lease, before the new controller starts; False when the API server does not answer.

    Clearing the holder is not enough: a new controller that does not see a lease yet retries only after 50 s.
    """

    async def delete(name: str) -> None:
        with suppress(ApiError):
            await client.delete(f"{LEASES}/{name}")

    try:
        # A node that a fault has silenced stays silent.
        names = [node for node, holder in (await leases.holders(client)).items() if holder != leases.HOLDER]
        outcome = await for_each(names, delete, workers=client.connections)
    except (ApiError, Unreachable):
        return False
    return outcome.complete


async def resume_pods(client: Client, *, everything: bool = False) -> None:
    """Make the new controller look at the pods that wait for one of its stages, once it holds the leases.

    Args:
        everything: any pod may wait, as the stack declares stages of its own.
    """
    give_up = time.monotonic() + _PATIENCE_S
    pause = 0.05
    # Each look lists every lease and node: a large fleet is not asked as often as a small one.
    while not await _all_leases_held(client) and time.monotonic() < give_up:
        await asyncio.sleep(pause)
        pause = min(1.0, pause * 2)
    await asyncio.sleep(BEHIND_S)
    waiting = [
        pod
        async for page in client.pages(PODS, {"fieldSelector": BOUND})
        for pod in page
        if everything or _may_wait(pod)
    ]
    # A deleted pod may have ended, and not be removed yet.
    waiting += [
        pod
        async for page in client.pages(PODS, {"fieldSelector": f"spec.nodeName!=,{_FINISHED}"}, accept=METADATA_ONLY)
        for pod in page
        if pod["metadata"].get("deletionGracePeriodSeconds")
    ]
    await pods.resume(client, waiting)


async def _all_leases_held(client: Client) -> bool:
    """Whether every node's lease is held."""
    held = {node for node, holder in (await leases.holders(client)).items() if holder}
    return held.issuperset(await objects.names(client, NODES))


def _may_wait(pod: Mapping[str, Any]) -> bool:
    """Whether one of Kumulus' own stages may apply to a pod that is bound and has not ended."""
    meta = pod["metadata"]
    of_a_job = any(owner.get("kind") == "Job" for owner in meta.get("ownerReferences") or ())
    return of_a_job or "deletionTimestamp" in meta or pod["status"].get("phase") == "Pending"
