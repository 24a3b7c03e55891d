"""Removes a namespace as soon as it is empty; the controller manager begins to empty it only after five seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.kube.bodies import nothing
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.discovery import namespaced
from kumulus.kube.errors import ApiError, tolerating

if TYPE_CHECKING:
    from kumulus.kube.client import Client

NAMESPACES = "/api/v1/namespaces"
# A lease for each API server of a cluster.
_API_SERVERS = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_OF_API_SERVERS = {"labelSelector": "apiserver.kubernetes.io/identity=kube-apiserver"}
# The controller manager begins to empty a namespace so long after its deletion.
_HEAD_START_S = 5.0
_LOOK_EVERY_S = 0.1


async def remove(client: Client, path: str, options: Mapping[str, Any] | None = None) -> bool:
    """Delete a namespace with everything in it; returns whether it existed.

    Kubernetes' namespace controller begins to empty a namespace 5 s after its deletion, because another API server may
    not have seen the deletion yet and create an object in it (`namespaceDeletionGracePeriod`,
    pkg/controller/namespace/namespace_controller.go). The only API server of a cluster has seen it: it refuses new
    objects from then on (the admission plugin NamespaceLifecycle). In such a cluster, this does at once what the
    controller would do after those seconds. If there are several API servers, if the user lacks a right for that, or if
    objects have finalizers that stay, the namespace is left to the controller, and may still exist when this returns.
    """
    begun = asyncio.get_running_loop().time()
    there = await objects.find(client, path)
    if there is None or not await objects.remove(client, path, options):
        return False
    if "deletionTimestamp" in there["metadata"]:
        # It was being deleted before: the controller may remove it at any time, and somebody create another of that
        # name, which is not to be emptied.
        return True
    with suppress(ApiError, TimeoutError):
        async with asyncio.timeout_at(begun + _HEAD_START_S):
            if len(await objects.names(client, _API_SERVERS, _OF_API_SERVERS)) == 1:
                kinds = await namespaced(client)
                await _empty(client, [each.collection(path.rpartition("/")[2]) for each in kinds])
                await _finalize(client, path)
    return True


async def _empty(client: Client, collections: list[str]) -> None:
    """Delete objects until a look at all collections finds none.

    The look comes last, as it also finds what the API server was creating when it took the namespace's deletion.
    """
    while left := await _delete_in(client, collections):
        while left:
            await asyncio.sleep(_LOOK_EVERY_S)
            left = await _delete_in(client, left)


async def _delete_in(client: Client, collections: list[str]) -> list[str]:
    """Delete what is in collections; returns those in which there was something."""

    async def delete(collection: str) -> bool:
        # It is not found if its kind has been removed.
        with tolerating(404):
            found = await client.get(collection, {"limit": "1"}, accept=METADATA_ONLY)
            if found["items"]:
                await client.request("DELETE", collection, accept=METADATA_ONLY, decode=nothing)
                return True
        return False

    had_any = await asyncio.gather(*map(delete, collections))
    return [each for each, any_there in zip(collections, had_any, strict=True) if any_there]


async def _finalize(client: Client, path: str) -> None:
    """Declare a namespace empty, as the controller does: the API server then removes it."""
    found = await client.get(path)
    remaining = [each for each in found["spec"].get("finalizers", ()) if each != "kubernetes"]
    await client.write("PUT", f"{path}/finalize", {**found, "spec": {**found["spec"], "finalizers": remaining}})
