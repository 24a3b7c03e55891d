"""Whose something in a cluster is: asked here by all, before anything is changed, taken over or removed.

What a stack makes carries its identity (:class:`kumulus.model.identity.Owner`). What carries another's is another's,
whatever it is called. What carries none was made by hand, by another tool, or by a version that marked nothing: it is a
stack's own only where that stack's state has it on record, and what marks there were then speaks for it.

See docs/decisions/identity.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError, Unreachable
from kumulus.kube.media import METADATA_ONLY
from kumulus.model.identity import STACK_ID, Owner
from kumulus.model.tenancy import STACK_ANNOTATION

if TYPE_CHECKING:
    from kumulus.kube import Client

# Where a stack leaves its name in a cluster, beside its identity.
_NAMED = ("/api/v1/namespaces/kube-system/configmaps", "/api/v1/namespaces")


class NotOurs(Exception):
    """An object exists and belongs to another stack, or to an unknown owner."""


def is_ours(metadata: Mapping[str, Any], mine: Owner, *, proven: bool = False) -> bool:
    """Whether an object is a stack's own.

    Args:
        metadata: the object's.
        mine: the stack.
        proven: whether it would be the stack's own if it carries nobody's identity: the stack has it on record, or has
            no identity itself.
    """
    owner = Owner.of(metadata)
    return proven if owner is None else owner.identity == mine.identity


async def whose(client: Client, metadata: Mapping[str, Any]) -> str:
    """Whose an object is that is not ours, in words that follow its name: ``is the stack kumulus/dev's (identity …)``.

    Args:
        client: of the cluster; the owner's name may have to be looked for.
        metadata: the object's.
    """
    owner = Owner.of(metadata)
    if owner is not None:
        return f"belongs to {await named(client, owner)}"
    if stack := (metadata.get("annotations") or {}).get(STACK_ANNOTATION):
        return f"is the stack {stack}'s, of an earlier version of Kumulus"
    return "was made by somebody else"


async def named(client: Client, owner: Owner) -> Owner:
    """A stack with its name, where that stands on anything it has in the cluster; else as it is."""
    if owner.stack:
        return owner
    query = {"labelSelector": f"{STACK_ID}={owner.identity}", "limit": "20"}
    for path in _NAMED:
        try:
            found = await client.get(path, query, accept=METADATA_ONLY)
        except (ApiError, Unreachable):
            # It is only for people; the refusal stands without.
            continue
        for item in found.get("items") or []:
            if (there := Owner.of(item["metadata"])) and there.stack:
                return there
    return owner
