"""Remove nodes with the pods on them; count the pods on nodes for a preview."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kumulus.kube import ApiError, Unreachable, objects
from kumulus.kube.bulk import Interrupted, for_each
from kumulus.kube.codecs import STRATEGIC_MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES
from kumulus.kube.pods import each_bound, path_of
from kumulus.nodes.pools.observe import PoolObservation
from kumulus.nodes.pools.result import ConvergeResult, ProgressMeter
from kumulus.nodes.reporter import Reporter

if TYPE_CHECKING:
    from kumulus.kube import Client

_PATIENCE_S = 60.0
_JOB_TRACKING = "batch.kubernetes.io/job-tracking"
# By its finalizer, a Job's controller keeps a pod until it has noted how the pod ended. A pod that goes with its node
# would count as failed. In the back-off that follows (10 s, doubled with every such pod, up to 10 minutes) the API
# server refuses the Job's status, "cannot set more ready pods than active", while other pods of it run, so the pod
# would stay that long. So the finalizer is removed.
_UNTRACK = {"metadata": {"$deleteFromPrimitiveList/finalizers": [_JOB_TRACKING]}}


class BoundPod(NamedTuple):
    """A pod that is bound to a node."""

    uid: str
    path: str
    """In the API."""
    tracked: bool
    """Whether it has not ended, and a Job's controller waits for its end."""


class PodsRemain(Exception):
    """Pods of removed nodes were not gone in time."""


async def bound_to(client: Client, nodes: set[str], *, running: bool = False) -> list[BoundPod]:
    """Return the pods bound to any of the nodes; `running`: only those that have not ended."""
    found: list[BoundPod] = []

    def look(pod: dict[str, Any]) -> None:
        meta, ended = pod["metadata"], pod["status"].get("phase") in ("Succeeded", "Failed")
        tracked = _JOB_TRACKING in meta.get("finalizers", ()) and not ended
        found.append(BoundPod(meta["uid"], path_of(pod), tracked))

    await each_bound(client, nodes, look, unfinished=running)
    return found


async def remove_pods(client: Client, nodes: set[str], stop: asyncio.Event, report: Reporter) -> int:
    """Remove the pods bound to nodes that no longer exist, and wait until they are gone; returns how many went.

    The scheduler may bind another pod to a node whose removal it has not seen yet, and a finalizer may keep a pod for a
    while, so this looks again until nothing is left, or a stop. To a Job, its pods have not failed.

    Raises:
        PodsRemain: some were still there a minute after the last were removed.
    """
    removed: set[str] = set()
    deadline = time.monotonic() + _PATIENCE_S
    pause = 0.05
    while nodes and not stop.is_set():
        left = await bound_to(client, nodes)
        if not left or stop.is_set():
            break
        if time.monotonic() > deadline:
            raise PodsRemain(f"{len(left):,} pods of removed nodes are still there, {left[0].path} among them")
        fresh = [pod for pod in left if pod.uid not in removed]
        report.status(f"removing {len(left):,} pods")

        async def remove(pod: BoundPod) -> None:
            with tolerating(404):
                if pod.tracked:
                    await client.write("PATCH", pod.path, _UNTRACK, content_type=STRATEGIC_MERGE_PATCH)
                await objects.remove(client, pod.path, {"gracePeriodSeconds": 0})

        outcome = await for_each(fresh, remove, workers=client.connections, stop=stop, lanes=client.lanes)
        failures = [failure for _, failure in outcome.failed if not isinstance(failure, Interrupted)]
        if failures:
            raise failures[0]
        removed.update(pod.uid for pod in outcome.done)
        if fresh:
            # Removing many takes longer than the patience with those that stay.
            deadline = time.monotonic() + _PATIENCE_S
        else:
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 2)
    return len(removed)


async def remove_nodes(client: Client, names: Iterable[str], stop: asyncio.Event, report: Reporter) -> ConvergeResult:
    """Delete nodes, then the pods bound to them; returns when both are gone.

    The nodes go first: otherwise a Job's controller would replace the pods and the scheduler put them back.
    """
    doomed, result = list(names), ConvergeResult()
    if not doomed:
        return result
    meter = ProgressMeter(report)

    async def remove(name: str) -> None:
        await objects.remove(client, f"{NODES}/{name}")

    outcome = await for_each(
        doomed,
        remove,
        workers=client.connections,
        stop=stop,
        lanes=client.lanes,
        progress=lambda done: meter.show("nodes removed", done, len(doomed), done),
    )
    result.removed = len(outcome.done)
    result.add(outcome)
    gone = set(outcome.done)
    result.left = PoolObservation(extra=[name for name in doomed if name not in gone])
    try:
        result.pods = await remove_pods(client, gone, stop, report)
    except (ApiError, Unreachable, PodsRemain) as error:
        result.problems.append(str(error))
    return result
