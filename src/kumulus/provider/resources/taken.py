"""Refuses a stack if its objects of another provider have names that others already use in its cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kumulus.kube import ApiError, KubeconfigError, Unreachable, objects
from kumulus.model.contents import objects_of
from kumulus.model.identity import Owner
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.ownership import NotOurs, owner_text
from kumulus.provider.connections import Connections, WrongCluster
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.in_cluster import LOOK_PATIENCE, STACK_ID
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    from kumulus.kube import Client


async def refuse(
    connections: Connections, old: tuple[Properties, Properties], inputs: Properties, where: Properties
) -> None:
    """Look up who owns the names, in a cluster that outlives its stacks.

    A cluster that does not answer is not refused here: the resources to be created in it report that.

    Args:
        old: the cluster's recorded inputs and outputs; empty for one that is to be created.
        where: has the path of its kubeconfig, and its identity.
    """
    paths = objects_of(inputs.get("contents"))
    kubeconfig, identity = where.get("kubeconfig"), where.get("identity")
    if not paths or not kubeconfig or not identity or contains_unknown([kubeconfig, identity]):
        return
    # Without recorded paths, an object without an identity may be one that the stack created.
    recorded = objects_of(old[0].get("contents")) if old[1] else frozenset()
    mine = {str(each[STACK_ID.name]) for each in (inputs, old[1]) if each.get(STACK_ID.name)}
    try:
        client = await connections.client(str(kubeconfig), str(identity), LOOK_PATIENCE)
        await refuse_names(client, paths, mine, paths if recorded is None else recorded)
    except NotOurs as error:
        raise ProviderError(f"{error}; nothing was changed: give yours another name in the stack file") from None
    except (KubeconfigError, WrongCluster, ApiError, Unreachable):
        return


# Refuse names that others use in a cluster that outlives its stacks, for objects that another provider creates.
#
# Pulumi's Kubernetes provider creates a stack's stages, usages and DeviceClasses, and does not check whose identity an
# object carries. The API server refuses the label of another owner, but only when the object is created. This checks
# beforehand, in previews too.


async def refuse_names(
    client: Client, paths: Iterable[str], mine: Collection[str], recorded: Collection[str] = ()
) -> None:
    """Refuse names that another stack, or somebody unknown, already uses.

    Args:
        client: of the cluster; nothing is changed in it.
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
