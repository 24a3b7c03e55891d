"""Put a fault of pods into a cluster as KWOK's Stage objects, and take it out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from faults import pods
from faults.pod_stages import pod_stages
from faults.records import FAULT_LABEL, Record
from kube import ApiError
from spec.kwok_stages import STAGES
from spec.names import node_name
from spec.pools import Pool

if TYPE_CHECKING:
    from kube import Client


class NoStages(Exception):
    """The cluster's kwok-controller reads its stages from a file and takes none from the cluster."""


async def put(client: Client, record: Record, pools: Mapping[str, Pool]) -> None:
    """Make the stages of a fault what it says; a fault of nodes alone has none.

    Raises:
        NoStages: the cluster does not take stages.
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    if record.pods is None:
        return
    nodes = [node_name(pool, n) for pool, members in record.nodes.items() for n in members if pool in pools]
    wanted = {each["metadata"]["name"]: each for each in pod_stages(record.name, record.pods, nodes, record.since)}
    try:
        for name in await _names(client, record.name) - set(wanted):
            await _delete(client, name)
        for name, stage in wanted.items():
            await _put(client, name, stage)
    except ApiError as error:
        if error.status == 404:
            raise NoStages from None
        raise
    await _wake(client, record)


async def remove(client: Client, record: Record) -> None:
    """Take the stages of a fault out of the cluster.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    if record.pods is None:
        return
    try:
        for name in await _names(client, record.name):
            await _delete(client, name)
    except ApiError as error:
        if error.status != 404:
            raise
        return
    await _wake(client, record)


async def _put(client: Client, name: str, stage: dict[str, Any]) -> None:
    try:
        await client.write("POST", STAGES, stage)
    except ApiError as error:
        if error.status != 409:
            raise
        # Replaced whole: a merge would keep what the stage no longer has.
        there = await client.get(f"{STAGES}/{name}")
        stage["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"]
        await client.request("PUT", f"{STAGES}/{name}", body=stage)


async def _names(client: Client, fault: str) -> set[str]:
    found = client.pages(STAGES, {"labelSelector": f"{FAULT_LABEL}={fault}"})
    return {stage["metadata"]["name"] async for page in found for stage in page}


async def _delete(client: Client, name: str) -> None:
    try:
        await client.delete(f"{STAGES}/{name}")
    except ApiError as error:
        if error.status != 404:
            raise


async def _wake(client: Client, record: Record) -> None:
    """Pods that are there already do not change by themselves, and KWOK looks only at what changes."""
    assert record.pods is not None
    await pods.resume(client, await pods.selected(client, record.pods.labels, record.pods.namespaces))
