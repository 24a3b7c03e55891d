"""Put a fault of pods into a cluster as KWOK's Stage objects, and take it out again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kumulus.kube import ApiError, objects
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.kwok.fault_stages import pod_stages
from kumulus.kwok.stages import STAGES
from kumulus.model.active_faults import FAULT_LABEL
from kumulus.model.durations import micro_timestamp
from kumulus.model.pools import Pool
from kumulus.nodes.faults import pods
from kumulus.nodes.faults.records import Record

if TYPE_CHECKING:
    from kumulus.kube import Client

# Until KWOK has the objects that its watch has seen, on a machine with much to do.
_MOMENT_S = 0.25


class NoStages(Exception):
    """The cluster's kwok-controller takes no stages from the cluster; the message says what to do."""

    def __init__(self) -> None:
        super().__init__(
            "this cluster takes no faults of pods, as its kwok-controller reads no stages from it: write kwok: "
            "{stageObjects: true} in the stack file (in a program, stage_objects=True for its KwokCluster), and run "
            "`up`; in a cluster that the stack did not make, have KWOK read stages, or write kwokCharts.install: true"
        )


async def require(client: Client) -> None:
    """Check that the cluster takes stages, before a fault that needs them is recorded."""
    try:
        await client.get(STAGES, {"limit": "1"})
    except ApiError as error:
        if error.status == 404:
            raise NoStages from None
        raise


async def put(client: Client, record: Record, pools: Mapping[str, Pool]) -> None:
    """Make a fault's stages match it; a fault of nodes alone has none."""
    if record.pods is None:
        return
    nodes = [pools[pool].node_name(n) for pool, members in record.nodes.items() for n in members if pool in pools]
    wanted = {each["metadata"]["name"]: each for each in pod_stages(record.name, record.pods, nodes, record.since)}
    for stage in wanted.values():
        stage["metadata"]["labels"] |= record.owner.labels
    for name in await _names(client, record.name) - set(wanted):
        await objects.remove(client, f"{STAGES}/{name}")
    for stage in wanted.values():
        await objects.replace(client, STAGES, stage)
    await _wake(client, record)


async def remove(client: Client, record: Record) -> None:
    """Take the stages of a fault out of the cluster."""
    if record.pods is None:
        return
    try:
        for name in await _names(client, record.name):
            await objects.remove(client, f"{STAGES}/{name}")
    except ApiError as error:
        if error.status != 404:
            raise
        return
    await _wake(client, record)


async def _names(client: Client, fault: str) -> set[str]:
    return set(await objects.names(client, STAGES, {"labelSelector": f"{FAULT_LABEL}={fault}"}))


async def reread(client: Client) -> None:
    """Have KWOK read its stages once more, a moment after they were changed.

    KWOK (v0.8.0, pkg/config/resources/cache.go) keeps the stages that it has read under the resource version that its
    watch has seen, which is there a moment before the objects themselves are. If it reads in between, for any pod, it
    goes by the former stages until another stage changes. So one is touched when that moment is over.
    """
    await asyncio.sleep(_MOMENT_S)
    change = {"metadata": {"annotations": {pods.RESUMED: micro_timestamp()}}}
    with tolerating(404):
        for stage in (await client.get(STAGES, {"limit": "1"}))["items"]:
            await client.write("PATCH", f"{STAGES}/{stage['metadata']['name']}", change, content_type=MERGE_PATCH)


async def _wake(client: Client, record: Record) -> None:
    """Have KWOK apply new stages to existing pods: these do not change by themselves, and it looks only at changes."""
    assert record.pods is not None
    await reread(client)
    # A pod may be shown to KWOK sooner than the stage.
    await asyncio.sleep(_MOMENT_S)
    await pods.resume(client, await pods.selected(client, record.pods))
