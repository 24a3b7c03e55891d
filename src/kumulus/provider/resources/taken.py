"""Refuses a stack if its objects of another provider have names that others already use in its cluster."""

from __future__ import annotations

from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.model.contents import objects_of
from kumulus.nodes import taken as names
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.ownership import NotOurs
from kumulus.provider.connections import Connections, WrongCluster
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.in_cluster import LOOK_PATIENCE, STACK_ID
from kumulus.provider.values import contains_unknown


async def refuse(
    connections: Connections, old: tuple[Properties, Properties], inputs: Properties, where: Properties
) -> None:
    """Look up who owns the names, in a cluster that outlives its stacks.

    A cluster that does not answer is not refused here: the resources to be created in it report that.

    Args:
        old: the cluster's recorded inputs and outputs; empty for one that is to be created.
        where: has the path of its kubeconfig, and its identity.

    Raises:
        ProviderError: others use one of the names; the message says who, and what to do.
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
        await names.refuse(client, paths, mine, paths if recorded is None else recorded)
    except NotOurs as error:
        raise ProviderError(f"{error}; nothing was changed: give yours another name in the stack file") from None
    except (KubeconfigError, WrongCluster, ApiError, Unreachable):
        return
