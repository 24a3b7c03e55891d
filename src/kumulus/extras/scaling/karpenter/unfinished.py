"""Machines that Karpenter was launching when it ended, and that nothing will complete.

Its provider for KWOK makes a node in a goroutine, after the claim is launched (Create in v1.15.0's
kwok/cloudprovider/cloudprovider.go). Two things can be lost with the process. One is the node of a claim that is marked
as launched; Karpenter creates no other node for its pods until the claim's 15 minutes are over (registrationTimeout in
pkg/controllers/nodeclaim/lifecycle/liveness.go). The other is the record of a node that was created before its claim
was marked: that claim is launched a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kumulus.extras.scaling.karpenter.objects import CLAIMS, NODEPOOL_LABEL
from kumulus.kube import objects
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES

if TYPE_CHECKING:
    from kumulus.kube import Client

Object = Mapping[str, Any]
_UNREGISTERED = "karpenter.sh/unregistered"


def lost(claims: Iterable[Object], nodes: Iterable[Object]) -> list[str]:
    """The paths of claims whose node will never come, and of nodes that no claim refers to.

    Of all NodeClaims and all nodes that it has created, read while Karpenter does not run.
    """
    known, machines = list(claims), list(nodes)
    there = {node["spec"].get("providerID") for node in machines}
    claimed = {(claim.get("status") or {}).get("providerID") for claim in known}
    found = [
        f"{CLAIMS}/{claim['metadata']['name']}"
        for claim in known
        if objects.holds(claim, "Launched")
        and not objects.holds(claim, "Registered")
        and not claim["metadata"].get("deletionTimestamp")
        and claim["status"].get("providerID") not in there
    ]
    # Karpenter removes registered nodes itself, whatever happened to their claims.
    return found + [
        f"{NODES}/{node['metadata']['name']}"
        for node in machines
        if node["spec"].get("providerID") not in claimed
        and any(taint["key"] == _UNREGISTERED for taint in node["spec"].get("taints") or ())
    ]


async def find(client: Client) -> list[str]:
    """The paths of what :func:`lost` selects in a cluster; none if Karpenter's kinds do not exist."""
    with tolerating(404):
        claims = [claim async for page in client.pages(CLAIMS) for claim in page]
        made = {"labelSelector": NODEPOOL_LABEL}
        return lost(claims, [node async for page in client.pages(NODES, made) for node in page])
    return []


async def forget(client: Client) -> int:
    """Delete them, so that Karpenter launches such machines again; returns how many. Karpenter must not be running.

    A claim is gone once Karpenter has removed its finalizer, for which it needs no node.
    """
    found = await find(client)
    for path in found:
        await objects.remove(client, path)
    return len(found)
