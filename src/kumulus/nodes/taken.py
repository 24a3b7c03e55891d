"""Refuse names that others use in a cluster that outlives its stacks, for objects that another provider creates.

Pulumi's Kubernetes provider creates a stack's stages, usages and DeviceClasses, and does not check whose identity an
object carries. The API server refuses the label of another owner, but only when the object is created. This checks
beforehand, in previews too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kumulus.kube import objects
from kumulus.model.identity import Owner
from kumulus.nodes.ownership import NotOurs, owner_text

if TYPE_CHECKING:
    from kumulus.kube import Client


async def refuse(client: Client, paths: Iterable[str], mine: Collection[str], recorded: Collection[str] = ()) -> None:
    """Refuse names that another stack, or somebody unknown, already uses.

    Args:
        client: of the cluster; nothing is changed in it.
        paths: of the objects in the API.
        mine: the stack's identities: the one it has, and the one it had before.
        recorded: those of the paths that the stack's state has: an object there without an identity is the stack's own.

    Raises:
        NotOurs: the message names the first such object and its owner.
    """
    wanted = sorted(paths)
    for path, found in zip(wanted, await asyncio.gather(*(objects.find(client, path) for path in wanted)), strict=True):
        if found is None:
            continue
        owner = Owner.of(found["metadata"])
        if owner.identity not in mine if owner else path not in recorded:
            kind, name = path.split("/")[-2:]
            raise NotOurs(f"{kind}/{name} is there already and {await owner_text(client, found['metadata'])}")
