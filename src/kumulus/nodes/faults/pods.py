"""The pods on faulted nodes: how many run, what happens to those whose node is gone, and a nudge for KWOK."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from kumulus.kube.bulk import Interrupted, for_all, for_each
from kumulus.kube.codecs import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import remove
from kumulus.kube.pods import BOUND, PODS, each_bound, path_of
from kumulus.model.durations import micro_timestamp, timestamp
from kumulus.model.fault_effects import PodEffects
from kumulus.model.node_sets import NodeSet
from kumulus.model.owner_kinds import is_of
from kumulus.model.pools import Pool, names_of

if TYPE_CHECKING:
    import asyncio

    from kumulus.kube import Client

RESUMED = "kumulus.io/resumed"


async def on(client: Client, nodes: Collection[str]) -> list[dict[str, Any]]:
    """The unfinished pods bound to any of the nodes."""
    found: list[dict[str, Any]] = []
    await each_bound(client, nodes, found.append, unfinished=True)
    return found


async def selected(client: Client, effects: PodEffects) -> list[dict[str, Any]]:
    """The unfinished pods, bound to any node, that a fault of pods selects."""
    query = {"fieldSelector": BOUND}
    if effects.labels:
        query["labelSelector"] = ",".join(f"{key}={value}" for key, value in sorted(effects.labels.items()))
    return [
        pod
        async for page in client.pages(PODS, query)
        for pod in page
        if (not effects.namespaces or pod["metadata"]["namespace"] in effects.namespaces)
        and (not effects.owner_kinds or any(is_of(pod, kind) for kind in effects.owner_kinds))
        and (not effects.images or any(re.search(effects.image_pattern, image) for image in _images(pod, effects)))
    ]


def _images(pod: Mapping[str, Any], effects: PodEffects) -> list[str]:
    return [each["image"] for each in pod["spec"].get(effects.containers_key, ())]


async def count_affected(client: Client, nodes: NodeSet, effects: PodEffects | None, pools: Mapping[str, Pool]) -> int:
    """How many unfinished pods a fault affects: those on its nodes, or those that a fault of pods selects."""
    names = names_of(nodes, pools)
    if effects is None:
        return len(await on(client, names))
    found = await selected(client, effects)
    # A fault of pods that names no nodes is on all of them.
    return sum(not names or pod["spec"].get("nodeName") in names for pod in found)


async def remove_orphans(client: Client, nodes: Collection[str], stop: asyncio.Event | None = None) -> tuple[int, int]:
    """Fail and remove the pods of nodes that are gone, as Kubernetes' pod garbage collector does a minute later.

    Source: k8s.io/kubernetes pkg/controller/podgc, markFailedAndDeletePodWithCondition. A Job's controller sees the
    disruption and makes another pod.

    Returns:
        How many pods were removed, and how many are left because it was stopped.
    """
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
        "lastTransitionTime": timestamp(),
    }
    failed = {"status": {"phase": "Failed", "conditions": [condition]}}

    async def fail(pod: dict[str, Any]) -> None:
        with tolerating(404):
            await client.write("PATCH", f"{path_of(pod)}/status", failed, content_type=STRATEGIC_MERGE_PATCH)
            await remove(client, path_of(pod), {"gracePeriodSeconds": 0})

    outcome = await for_each(await on(client, nodes), fail, workers=client.connections, stop=stop)
    if failures := [failure for _, failure in outcome.failed if not isinstance(failure, Interrupted)]:
        raise failures[0]
    return len(outcome.done), len(outcome.failed) + outcome.skipped


async def resume(client: Client, pods: Collection[dict[str, Any]]) -> None:
    """Touch pods, as KWOK looks only at what changes: they have not changed, but what it is to do to them has."""
    change = {"metadata": {"annotations": {RESUMED: micro_timestamp()}}}

    async def touch(pod: dict[str, Any]) -> None:
        with tolerating(404):
            await client.write("PATCH", path_of(pod), change, content_type=MERGE_PATCH)

    await for_all(pods, touch, workers=client.connections)
