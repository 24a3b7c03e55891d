"""A release's namespace: created if missing, and removed with the last add-on in it, which Helm does not do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.discovery import IN_EVERY_NAMESPACE, KINDS_OF_CONTROLLERS, ApiResource, namespaced
from kumulus.kube.errors import tolerating
from kumulus.kube.namespaces import NAMESPACES
from kumulus.kube.objects import find, remove
from kumulus.model.identity import STACK_ID, Owner
from kumulus.nodes.ownership import is_ours

if TYPE_CHECKING:
    from kumulus.kube import Client

# Within how many seconds a namespace that is being deleted has to be gone.
_GOING_S = 60.0
MADE_FOR = "kumulus.io/made-for"
# Every namespace has these; the last one on GKE.
_EVERYWHERE = IN_EVERY_NAMESPACE | {("ResourceQuota", "gke-resource-quotas")}


async def ensure(client: Client, name: str, cluster: str, owner: Owner, *, recorded: bool = False) -> None:
    """Create a namespace if it is missing, annotated with the stack's cluster; waits for one that is being deleted.

    Args:
        cluster: what the stack calls the cluster.
        recorded: whether the stack's state has an add-on in it; a namespace without an identity is then labelled.

    Raises:
        TimeoutError: it is still being deleted.
    """
    async with asyncio.timeout(_GOING_S):
        while _is_going(namespace := await find(client, f"{NAMESPACES}/{name}")):  # noqa: ASYNC110 - only asking helps
            await asyncio.sleep(0.2)
    if namespace is not None:
        if recorded:
            await _label(client, name, namespace, cluster, owner)
        return
    metadata = {"name": name, "labels": owner.labels, "annotations": {MADE_FOR: cluster, **owner.annotations}}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    # Another add-on of the stack may have created it in the meantime.
    with tolerating(409):
        await client.create(NAMESPACES, body)


async def _label(client: Client, name: str, namespace: Mapping[str, Any], cluster: str, owner: Owner) -> None:
    """Put the stack's identity on a namespace that was made for its cluster; a refusal is left to the next update."""
    metadata = namespace["metadata"]
    is_labelled = (metadata.get("labels") or {}).get(STACK_ID) == owner.identity
    if not owner.identity or is_labelled or _made_for(namespace) != cluster:
        return
    if is_ours(metadata, owner, proven=True):
        # With the resourceVersion that was read, so that a concurrent change is not overwritten.
        marks = {"labels": owner.labels, "resourceVersion": metadata["resourceVersion"]}
        with suppress(ApiError):
            await client.merge_patch(f"{NAMESPACES}/{name}", {"metadata": marks})


async def take_away(client: Client, name: str, cluster: str, owner: Owner) -> str:
    """Remove a namespace that was made for this cluster if it is empty; returns why it was kept.

    Args:
        owner: the stack; a namespace that another stack has labelled is left to that one.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer. If it does not list some kind of object, the
            namespace stays, as there may be some.
    """
    namespace = await find(client, f"{NAMESPACES}/{name}")
    if namespace is None or _made_for(namespace) != cluster:
        return ""
    # An empty namespace without an identity was made for a stack that had none.
    if not is_ours(namespace["metadata"], owner, proven=True):
        return ""
    left = await _left(client, name)
    if left:
        return f"the namespace {name} is kept: {left} is in it"
    # Delete only this one, not a later one of the same name.
    await remove(client, f"{NAMESPACES}/{name}", {"preconditions": {"uid": namespace["metadata"]["uid"]}})
    return ""


def _made_for(namespace: Mapping[str, Any]) -> Any:
    return (namespace["metadata"].get("annotations") or {}).get(MADE_FOR)


async def _left(client: Client, name: str) -> str:
    """The kind and name of an object in a namespace that neither every namespace has nor another object owns."""
    # Kinds such as events only accompany objects of other kinds, which are listed themselves.
    kinds = [each for each in await namespaced(client) if each.kind not in KINDS_OF_CONTROLLERS]
    answers = await asyncio.gather(*(_first(client, kind, name) for kind in kinds), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, str) and answer:
            return answer
    # Of a kind that could not be listed, there may be some.
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return ""


async def _first(client: Client, kind: ApiResource, namespace: str) -> str:
    """The kind and name, as kubectl takes them, of the first object of a kind that counts."""
    # The kind may be gone by now, perhaps with the release.
    with tolerating(404):
        async for page in client.pages(kind.collection(namespace), accept=METADATA_ONLY):
            for item in page:
                if _counts(kind.kind, item["metadata"]):
                    # In a group with a dot, a kind may have the name of a built-in one: jobs.batch.volcano.sh.
                    plural = f"{kind.plural}.{kind.group}" if "." in kind.group else kind.plural
                    return f"{plural} {item['metadata']['name']}"
    return ""


def _is_going(namespace: Mapping[str, Any] | None) -> bool:
    return namespace is not None and "deletionTimestamp" in namespace["metadata"]


def _counts(kind: str, metadata: Mapping[str, Any]) -> bool:
    """Whether an object keeps its namespace. One with an owner does not: its owner is asked about itself."""
    if (kind, metadata["name"]) in _EVERYWHERE or metadata.get("ownerReferences") or metadata.get("deletionTimestamp"):
        return False
    # Objects that Helm's hooks create outlive their release.
    return "helm.sh/hook" not in (metadata.get("annotations") or {})
