"""Silence a node's kubelet, which KWOK plays: take the node's lease from it, and give it back.

KWOK (v0.8.0, node_lease_controller.go) renews a lease only while it holds it, and plays no stage on a node whose lease
it does not hold: neither the node's heartbeat nor its pods' lives. A lease held by somebody else for many years is
therefore a kubelet that is silent, and the node lifecycle controller, which looks for renewals and not at durations,
marks the node Unknown after its grace period, taints it and evicts its pods, as it does when a machine dies.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kube import ApiError, objects
from kube.media import MERGE_PATCH

if TYPE_CHECKING:
    from kube import Client

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
HOLDER = "kumulus-fault"
# The API server's longest; in seconds, 68 years.
_FOR_EVER = 2**31 - 1
_KEPT_BY = "kumulus.io/kept-by"


async def take(client: Client, node: str, holder: dict[str, Any] | None) -> None:
    """Silence a node, whether KWOK has its lease already or not.

    Args:
        client: of the cluster.
        node: the node's name.
        holder: what `keeper` found; noted on the lease for the time when no node is left to ask about.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    spec = {"holderIdentity": HOLDER, "leaseDurationSeconds": _FOR_EVER}
    metadata = {"annotations": {_KEPT_BY: json.dumps(holder)}} if holder else {}
    body = {"metadata": metadata, "spec": spec}
    renewed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    fresh = {"metadata": {**metadata, "name": node}, "spec": {**spec, "renewTime": renewed}}
    await objects.merge_or_create(client, f"{LEASES}/{node}", body, fresh)


async def keeper(client: Client) -> dict[str, Any] | None:
    """Who keeps the leases of the other nodes, and for how long: the kwok-controller that runs; None without any.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    found: dict[str, Any] = {}
    async for page in client.pages(LEASES):
        for lease in page:
            spec = lease["spec"]
            newest = str(spec.get("renewTime")) > str(found.get("renewTime") or "")
            if spec.get("holderIdentity") and spec["holderIdentity"] != HOLDER and newest:
                found = spec
    if not found:
        return None
    return {key: found[key] for key in ("holderIdentity", "leaseDurationSeconds") if key in found}


async def give_back(client: Client, node: str, holder: dict[str, Any] | None) -> None:
    """End a node's silence.

    Args:
        client: of the cluster.
        node: the node's name.
        holder: what `keeper` found. KWOK goes on at once with a lease that it finds in its own name, and comes to a
            free one only after a quarter of its duration.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    path = f"{LEASES}/{node}"
    try:
        if holder is None:
            lease = await client.get(path)
            holder = json.loads((lease["metadata"].get("annotations") or {}).get(_KEPT_BY) or "null")
        renewed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {**(holder or {"holderIdentity": None, "leaseDurationSeconds": 40}), "renewTime": renewed}
        body = {"metadata": {"annotations": {_KEPT_BY: None}}, "spec": spec}
        await client.write("PATCH", path, body, content_type=MERGE_PATCH)
    except ApiError as error:
        if error.status != 404:
            raise


async def holders(client: Client) -> dict[str, str]:
    """Who has each node's lease: KWOK, which then plays the node, or :data:`HOLDER`; empty where nobody has it.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    return {
        lease["metadata"]["name"]: lease["spec"].get("holderIdentity") or ""
        async for page in client.pages(LEASES)
        for lease in page
    }


async def taken(client: Client) -> set[str]:
    """Names of the nodes that are silenced.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    return {node for node, holder in (await holders(client)).items() if holder == HOLDER}
