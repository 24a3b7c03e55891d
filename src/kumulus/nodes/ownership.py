"""Decide who owns an object in a cluster: all code asks here before it changes, takes over or removes anything.

What a stack makes carries its identity (:class:`kumulus.model.identity.Owner`). What carries another identity is
another stack's, whatever its name. What carries none was made by hand, by another tool, or by a program that passes no
identity: it is a stack's own only if that stack's state has an object of its name.

See docs/decisions/identity.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError, Unreachable, objects
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.model.identity import STACK_ANNOTATION, STACK_ID, Owner
from kumulus.nodes.errors import ProviderError

if TYPE_CHECKING:
    from kumulus.kube import Client

# Objects on which a stack leaves its name in addition to its identity.
_NAMED = ("/api/v1/namespaces/kube-system/configmaps", "/api/v1/namespaces")


class NotOurs(Exception):
    """An object exists and belongs to another stack, or to an unknown owner."""


def already_there(what: str, named: str, instead: str) -> ProviderError:
    """The error where somebody else has made what a component makes.

    Args:
        what: what the component is or serves, such as a metrics API.
        named: the object in the way.
        instead: what to do if that object stays.
    """
    return ProviderError(
        f"the cluster has a {what} already: {named} was made by somebody else; remove that one, or {instead}"
    )


def is_ours(metadata: Mapping[str, Any], mine: Owner, *, proven: bool = False) -> bool:
    """Whether an object is a stack's own.

    Args:
        proven: the answer for an object without an identity: usually whether the stack's state has it.
    """
    owner = Owner.of(metadata)
    return proven if owner is None else mine.is_known_by(owner.identity)


async def make(client: Client, manifest: Mapping[str, Any], mark: Mapping[str, str], what: str, instead: str) -> None:
    """Create an object of a component of the stack's cluster, or replace the component's own.

    A Secret or Namespace that is there stays as it is.

    Args:
        mark: the labels by which the component's objects are known.
        what, instead: as for :func:`already_there`.

    Raises:
        ProviderError: somebody else has made it.
    """
    metadata, kind, name = manifest["metadata"], manifest["kind"], manifest["metadata"]["name"]
    body = {**manifest, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **mark}}}
    there = await objects.find(client, objects.address(manifest))
    if there is None:
        await objects.create_or_merge(client, objects.collection(manifest), body)
        return
    if not mark.items() <= (there["metadata"].get("labels") or {}).items():
        raise already_there(what, f"{kind} {name}", instead)
    if kind not in ("Secret", "Namespace"):
        await objects.replace(client, objects.collection(manifest), body)


async def owner_text(client: Client, metadata: Mapping[str, Any]) -> str:
    """The owner of an object that is not ours, after its name: ``belongs to the stack kumulus/dev (identity …)``."""
    owner = Owner.of(metadata)
    if owner is not None:
        return f"belongs to {await named(client, owner)}"
    if stack := (metadata.get("annotations") or {}).get(STACK_ANNOTATION):
        return f"is the stack {stack}'s, which has no identity"
    return "was made by somebody else"


async def named(client: Client, owner: Owner) -> Owner:
    """The owner with its stack's name, if one of its objects in the cluster carries that; else unchanged."""
    if owner.stack:
        return owner
    query = {"labelSelector": f"{STACK_ID}={owner.identity}", "limit": "20"}
    for path in _NAMED:
        try:
            found = await client.get(path, query, accept=METADATA_ONLY)
        except (ApiError, Unreachable):
            # The name only serves readers; the refusal stands without it.
            continue
        for item in found.get("items") or []:
            if (there := Owner.of(item["metadata"])) and there.stack:
                return there
    return owner
