"""The pods that faults affect: how many run, what happens to those whose node is gone, and how KWOK looks at them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.kube.bulk import Interrupted, for_all, for_each
from kumulus.kube.codecs import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from kumulus.kube.errors import tolerating
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
"""The annotation by which a pod or a stage is touched, so that KWOK looks at it."""


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
    return [pod async for page in client.pages(PODS, query) for pod in page if _is_selected(pod, effects)]


def _is_selected(pod: Mapping[str, Any], effects: PodEffects) -> bool:
    """Whether a fault selects a pod that has the labels of those that it selects."""
    if effects.namespaces and pod["metadata"]["namespace"] not in effects.namespaces:
        return False
    if effects.owner_kinds and not any(is_of(pod, kind) for kind in effects.owner_kinds):
        return False
    if not effects.images:
        return True
    images = [each["image"] for each in pod["spec"].get(effects.containers_key, ())]
    return any(re.search(effects.image_pattern, image) for image in images)


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
            await objects.remove(client, path_of(pod), {"gracePeriodSeconds": 0})

    outcome = await for_each(await on(client, nodes), fail, workers=client.connections, stop=stop)
    if failures := [failure for _, failure in outcome.failed if not isinstance(failure, Interrupted)]:
        raise failures[0]
    return len(outcome.done), len(outcome.failed) + outcome.skipped


async def resume(client: Client, pods: Collection[dict[str, Any]]) -> None:
    """Touch pods, so that KWOK looks at them: it looks only at what changes, and only its own task has changed."""
    change = {"metadata": {"annotations": {RESUMED: micro_timestamp()}}}

    async def touch(pod: dict[str, Any]) -> None:
        with tolerating(404):
            await client.write("PATCH", path_of(pod), change, content_type=MERGE_PATCH)

    await for_all(pods, touch, workers=client.connections)
