"""The ResourceSlices of faulted nodes: devices that a fault takes are not published while it is active, or tainted.

A pool publishes the same (model/slices.py), so that neither takes the other's slice for drift.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.kube.errors import tolerating
from kumulus.kube.media import MERGE_PATCH
from kumulus.model.pools import Pool
from kumulus.model.slices import RESOURCE_API, parts_of, published, slice_manifest, slice_name, slice_spec

if TYPE_CHECKING:
    from kumulus.kube import Client


class NoTaints(Exception):
    """The cluster has no taints of devices."""

    def __str__(self) -> str:
        return (
            "the cluster's API server drops the taints of devices: take Kubernetes 1.36 or later, switch the feature "
            "gate DRADeviceTaints on, or leave devices: taint out"
        )


_SLICES = f"/apis/{RESOURCE_API}/resourceslices"


async def change(client: Client, before: Pool, after: Pool, ordinal: int) -> None:
    """Publish the devices of a node as its faults leave them; if it has no slice yet, its pool will create it.

    Args:
        before: the node's pool with its faults until now.
        after: with those from now on.

    Raises:
        NoTaints: the API server drops the taints of devices.
    """
    devices = after.devices
    if devices is None or published(before, devices, ordinal) == published(after, devices, ordinal):
        return
    for part in parts_of((ordinal,), devices):
        spec = slice_spec(after, devices, part)
        if spec == slice_spec(before, devices, part):
            continue
        path = f"{_SLICES}/{slice_name(after, devices, part)}"
        # A merge patch removes what is null.
        patch = {"spec": {"devices": None, **spec}}
        with tolerating(404):
            if not published(after, devices, ordinal).taint:
                await client.write("PATCH", path, patch, content_type=MERGE_PATCH)
            elif (await client.merge_patch(path, patch))["spec"].get("devices") != spec.get("devices"):
                raise NoTaints


async def publish(client: Client, pool: Pool, ordinal: int, node_uid: str) -> None:
    """Publish the slices of a node that was created again; those of the former node may not be deleted yet."""
    if pool.devices is None:
        return
    for part in parts_of((ordinal,), pool.devices):
        await _publish(client, slice_manifest(pool, pool.devices, part, node_uid), node_uid)


async def _publish(client: Client, manifest: dict[str, Any], node_uid: str) -> None:
    path = f"{_SLICES}/{manifest['metadata']['name']}"

    async def attempt() -> bool:
        with tolerating(409):
            await client.write("POST", _SLICES, manifest)
            return True
        there = await objects.find(client, path)
        if there is None:
            return False
        owners = [owner.get("uid") for owner in there["metadata"].get("ownerReferences") or ()]
        if owners == [node_uid]:
            return True
        await objects.remove(client, path, {"preconditions": {"uid": there["metadata"]["uid"]}})
        return False

    await objects.persist(attempt, path, f"resource slice {manifest['metadata']['name']}")
