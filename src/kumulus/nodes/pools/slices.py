"""Compare a pool's ResourceSlices with what is wanted, and converge them. A node has one or more, and owns them.

A slice is published as a whole by one driver, which is emulated here: everything in its `spec` is ours, and so are its
owner and our two labels. Other labels and annotations on it are left alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError, objects
from kumulus.kube.bulk import BulkOutcome, for_each
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.model.devices import NODE_ALLOCATABLE
from kumulus.model.node_changes import FieldChange
from kumulus.model.pools import POOL_LABEL, Pool
from kumulus.model.slices import RESOURCE_API, SlicePart, devices_of, parts_of, slice_labels, slice_manifest, slice_name
from kumulus.nodes.pools.compare import LiveSlice, slice_differences

if TYPE_CHECKING:
    from kumulus.kube import Client

SLICES = f"/apis/{RESOURCE_API}/resourceslices"
_PAGE = 250
# Up to this many slices that were not listed with the pool's label are looked up by name, as altered or missing.
_ASK_SINGLY = 50
# The pauses between attempts to publish devices whose node the API server's cache may not have yet
# (plugin/pkg/admission/nodedeclaredfeatures of k8s.io/kubernetes).
_PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)

# What an API server keeps of a slice only while a feature gate is on: by attribute of Devices, the field of a device
# in the slice, and the gate.
_GATED = {
    "mig_profiles": ("consumesCounters", "DRAPartitionableDevices"),
    "allow_multiple_allocations": ("allowMultipleAllocations", "DRAConsumableCapacity"),
    "binding_conditions": ("bindingConditions", "DRADeviceBindingConditions"),
    "binds_to_node": ("bindsToNode", "DRADeviceBindingConditions"),
    "node_allocatable_resources": ("nodeAllocatableResources", f"{NODE_ALLOCATABLE} of Kubernetes 1.37"),
}
# What the stack file calls a field, if that is another name.
_WRITTEN = {"consumesCounters": "partitionable"}


class NotServed(Exception):
    """The cluster's API server has no place for what a pool publishes or declares."""


@dataclass
class SliceObservation:
    """A pool's slices compared with what is wanted."""

    missing: list[SlicePart] = field(default_factory=list)
    """Slices that existing nodes lack."""
    altered: dict[SlicePart, tuple[LiveSlice, list[FieldChange]]] = field(default_factory=dict)
    """Slices that differ, each with what exists and the differences."""
    extra: list[str] = field(default_factory=list)
    """Names of slices that carry the pool's label and belong to none of its nodes."""

    def __bool__(self) -> bool:
        """Whether anything is left to do."""
        return self.count > 0

    @property
    def count(self) -> int:
        """How many slices are not as wanted."""
        return len(self.missing) + len(self.altered) + len(self.extra)


async def observe_slices(
    client: Client, pool: Pool, nodes: Mapping[int, str], patience: float | None = None
) -> SliceObservation:
    """List the pool's slices, page by page, and compare each with what is wanted; `nodes` are UIDs by ordinal.

    A wanted slice that lost the pool's label (altered by hand) is found by its name.
    """
    found = SliceObservation()
    if pool.devices is None:
        return found
    unseen = {slice_name(pool, part): part for part in parts_of(pool, range(pool.replicas))}

    def look(item: Mapping[str, Any]) -> None:
        part = unseen.pop(item["metadata"]["name"], None)
        if part is None:
            found.extra.append(item["metadata"]["name"])
            return
        # The slice of a removed node is deleted with it; that the node is missing is recorded already.
        uid = nodes.get(part.ordinal)
        if uid is not None:
            live, different = slice_differences(pool, part, uid, item)
            if different:
                found.altered[part] = live, different

    try:
        async for page in client.pages(SLICES, _selector(pool.name), limit=_PAGE, patience=patience):
            for item in page:
                look(item)
    except ApiError as error:
        raise _explained(error) from None
    strays = [name for name, part in unseen.items() if part.ordinal in nodes]
    if len(strays) <= _ASK_SINGLY:
        for name in strays:
            if (stray := await objects.find(client, f"{SLICES}/{name}")) is not None:
                look(stray)
    found.missing = sorted(part for part in unseen.values() if part.ordinal in nodes)
    return found


async def require_served(client: Client) -> None:
    """Check that the cluster has ResourceSlices, before a pool that publishes some is recorded; raises NotServed."""
    try:
        await client.get(SLICES, {"limit": "1"})
    except ApiError as error:
        raise _explained(error) from None


async def publish(client: Client, pool: Pool, part: SlicePart, node_uid: str) -> None:
    """Post a slice of a node; one that exists (a repeated post, a former node's) is changed to what is wanted."""
    manifest, name = slice_manifest(pool, part, node_uid), slice_name(pool, part)
    body, path = json.dumps(manifest, separators=(",", ":")).encode(), f"{SLICES}/{name}"

    async def attempt() -> bool:
        try:
            await _admitted(pool, lambda: client.write("POST", SLICES, body))
            if part == (0, 0):
                await _require_kept(client, path, pool)
            return True
        except ApiError as error:
            if error.status != 409:
                raise _explained(error) from None
        there = await objects.find(client, path)
        if there is None:
            return False
        live, different = slice_differences(pool, part, node_uid, there)
        return not different or await _mend(client, pool, manifest, live)

    await objects.persist(attempt, path, f"resource slice {name}")


async def _mend(client: Client, pool: Pool, manifest: Mapping[str, Any], live: LiveSlice) -> bool:
    """Patch a slice, or delete it when that cannot help; returns whether it is as wanted now."""
    path = f"{SLICES}/{manifest['metadata']['name']}"
    with tolerating(404, 409):
        if live.replace:
            await client.delete(path, {"preconditions": {"uid": live.uid}})
            return False
        metadata = {"uid": live.uid, "labels": slice_labels(pool)}
        patch = {"metadata": metadata, "spec": {**manifest["spec"], **dict.fromkeys(live.surplus)}}
        await _admitted(pool, lambda: client.write("PATCH", path, patch, content_type=MERGE_PATCH))
        return True
    return False


async def _admitted(pool: Pool, write: Callable[[], Awaitable[None]]) -> None:
    """Write a slice; what its devices take of a node is refused until the API server's cache has the node as it is."""
    if devices_of(pool).node_allocatable_resources:
        for pause in _PAUSES_S:
            with tolerating(403):
                await write()
                return
            await asyncio.sleep(pause)
    await write()


async def converge_slices(
    client: Client,
    pool: Pool,
    seen: SliceObservation,
    nodes: Mapping[int, str],
    stop: asyncio.Event,
    progress: Callable[[int], None],
) -> list[BulkOutcome[Any]]:
    """Publish missing slices, correct those that differ, withdraw surplus ones; `nodes` are UIDs by ordinal."""

    async def put(part: SlicePart) -> None:
        known, uid = seen.altered.get(part), nodes[part.ordinal]
        if known is None or not await _mend(client, pool, slice_manifest(pool, part, uid), known[0]):
            await publish(client, pool, part, uid)

    todo = sorted([*seen.missing, *seen.altered])
    made = await for_each(todo, put, workers=client.connections, stop=stop, progress=progress)
    return [made, await _withdraw(client, seen.extra, stop)]


async def withdraw_all(client: Client, pool_name: str, stop: asyncio.Event) -> BulkOutcome[str]:
    """Delete every slice that carries a pool's label; there are none if the API is not served."""
    names: list[str] = []
    with tolerating(404):
        names = await objects.names(client, SLICES, _selector(pool_name))
    return await _withdraw(client, names, stop)


async def _withdraw(client: Client, names: Iterable[str], stop: asyncio.Event) -> BulkOutcome[str]:
    """Delete slices; the garbage collector may be deleting them too, after their nodes."""

    async def remove(name: str) -> None:
        await objects.remove(client, f"{SLICES}/{name}")

    return await for_each(names, remove, workers=client.connections, stop=stop)


def _selector(pool_name: str) -> dict[str, str]:
    return {"labelSelector": f"{POOL_LABEL}={pool_name}"}


async def _require_kept(client: Client, path: str, pool: Pool) -> None:
    """Check that the API server kept what was posted: without a feature, it silently drops the fields."""
    asked = [gated for attribute, gated in _GATED.items() if getattr(pool.devices, attribute)]
    there = await objects.find(client, path) if asked else None
    published = there["spec"].get("devices") if there else None
    for field_name, gate in asked:
        if published and not published[0].get(field_name):
            raise NotServed(
                f"the cluster's API server drops {field_name} of resourceSlices: switch the feature gate {gate} on, in "
                f"the scheduler, too, or leave {_WRITTEN.get(field_name, field_name)} out"
            )


def _explained(error: ApiError) -> Exception:
    if error.status != 404:
        return error
    return NotServed(
        f"the cluster does not serve {RESOURCE_API}, which resourceSlices need: take Kubernetes 1.34 or later with "
        "DynamicResourceAllocation on, or leave resourceSlices out"
    )
