"""A release's namespace: made when it is missing, and removed with the last add-on in it, which Helm does not do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kumulus.cluster.ownership import is_ours
from kumulus.kube import ApiError
from kumulus.kube.media import METADATA_ONLY
from kumulus.kube.objects import find, remove
from kumulus.model.identity import Owner

if TYPE_CHECKING:
    from kumulus.kube import Client

_GOING_PATIENCE = 60.0
MADE_FOR = "kumulus.io/made-for"
_NAMESPACES = "/api/v1/namespaces"
# Whatever somebody may have put there; the rest belongs to one of these or weighs nothing.
_CORE = ("configmaps", "secrets", "services", "pods", "persistentvolumeclaims")
_GROUPS = {"apps/v1": ("deployments", "statefulsets", "daemonsets"), "batch/v1": ("jobs", "cronjobs")}
_EVERYWHERE = ("kube-root-ca.crt",)


async def ensure(client: Client, name: str, cluster: str, owner: Owner, *, recorded: bool = False) -> None:
    """Make a namespace unless it is there, noting for which cluster of a stack; one that is going is waited for.

    Args:
        client: of the cluster.
        name: the namespace's.
        cluster: what the stack calls the cluster.
        owner: the stack.
        recorded: whether the stack has an add-on in it on record: one that an earlier version made for it is marked.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
        TimeoutError: it is still going.
    """
    async with asyncio.timeout(_GOING_PATIENCE):
        while _going(there := await find(client, f"{_NAMESPACES}/{name}")):  # noqa: ASYNC110 - it tells who asks
            await asyncio.sleep(0.2)
    if there:
        if recorded and owner.identity and Owner.of(there["metadata"]) is None and _made_for(there) == cluster:
            # With the version that was read, so that a concurrent change is not overwritten.
            marks = {"labels": owner.labels, "resourceVersion": there["metadata"]["resourceVersion"]}
            with suppress(ApiError):
                await client.merge_patch(f"{_NAMESPACES}/{name}", {"metadata": marks})
        return
    metadata = {"name": name, "labels": owner.labels, "annotations": {MADE_FOR: cluster, **owner.annotations}}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    try:
        await client.create(_NAMESPACES, body)
    except ApiError as error:
        # Another add-on of the stack was quicker.
        if error.status != 409:
            raise


async def take_away(client: Client, name: str, cluster: str, owner: Owner) -> str:
    """Remove a namespace that was made for this cluster when nothing is left in it; returns why it was kept.

    Args:
        client: of the cluster.
        name: the namespace's.
        cluster: what the stack calls the cluster.
        owner: the stack: one that another has marked is left to that one.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    namespace = await find(client, f"{_NAMESPACES}/{name}")
    if namespace is None or _made_for(namespace) != cluster:
        return ""
    # An empty one that nobody has marked was made for such a cluster by an earlier version.
    if not is_ours(namespace["metadata"], owner, proven=True):
        return ""
    left = await _left(client, name)
    if left:
        return f"the namespace {name} is kept: {left} is in it"
    await remove(client, f"{_NAMESPACES}/{name}")
    return ""


def _made_for(namespace: Mapping[str, Any]) -> Any:
    return (namespace["metadata"].get("annotations") or {}).get(MADE_FOR)


async def _left(client: Client, name: str) -> str:
    """Something in a namespace that is neither everywhere nor part of something else, by kind and name."""
    collections = [f"/api/v1/namespaces/{name}/{kind}" for kind in _CORE]
    collections += [f"/apis/{group}/namespaces/{name}/{kind}" for group, kinds in _GROUPS.items() for kind in kinds]
    for collection in collections:
        async for page in client.pages(collection, accept=METADATA_ONLY):
            for item in page:
                if _counts(item["metadata"]):
                    return f"{collection.rpartition('/')[2]} {item['metadata']['name']}"
    return ""


def _going(namespace: Mapping[str, Any] | None) -> bool:
    return namespace is not None and "deletionTimestamp" in namespace["metadata"]


def _counts(metadata: Mapping[str, Any]) -> bool:
    if metadata["name"] in _EVERYWHERE or metadata.get("ownerReferences") or metadata.get("deletionTimestamp"):
        return False
    # What Helm's hooks make outlives their release.
    return "helm.sh/hook" not in (metadata.get("annotations") or {})
