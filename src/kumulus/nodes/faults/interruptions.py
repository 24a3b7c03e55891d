"""Reclaim an autoscaler's spot machines: its claims are deleted at the notice, and KWOK ends the machines.

Source for the notice: karpenter-provider-aws, pkg/controllers/interruption/controller.go: on a spot interruption it
deletes the NodeClaim, so that Karpenter drains the node and makes another. When the notice ends, the machine goes,
drained or not, and whether Karpenter runs or not: KWOK removes it
(:func:`kumulus.extras.scaling.karpenter.objects.stages`), because no Kumulus process need be running then.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.kube.bulk import for_all
from kumulus.kube.errors import tolerating
from kumulus.kube.media import MERGE_PATCH, METADATA_ONLY
from kumulus.model.offer_effects import RECLAIM_ANNOTATION, OfferEffects
from kumulus.model.pools import INSTANCE_TYPE_LABEL, ZONE_LABEL
from kumulus.nodes.catalog.prices import is_spot
from kumulus.nodes.faults.records import Record

if TYPE_CHECKING:
    from kumulus.kube import Client

_NODES = "/api/v1/nodes"
_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
_MADE = "karpenter.sh/nodepool"


async def reclaimable(client: Client, effects: OfferEffects) -> list[str]:
    """The node names of the machines that a fault can reclaim now, oldest first.

    Args:
        effects: the fault's, with an interruption.
    """
    how = effects.interruption
    assert how is not None
    query = {"labelSelector": ",".join([_MADE, *(f"{key}={value}" for key, value in sorted(how.labels.items()))])}
    found = [
        node["metadata"]
        async for page in client.pages(_NODES, query, accept=METADATA_ONLY)
        for node in page
        if _is_selected(node["metadata"], effects)
    ]
    return [metadata["name"] for metadata in sorted(found, key=_order)]


def _order(metadata: dict[str, Any]) -> tuple[str, str, str, str]:
    """A sort key that differs as little as possible between runs: the autoscaler chooses the names at random."""
    labels = metadata["labels"]
    place = labels.get(INSTANCE_TYPE_LABEL, ""), labels.get(ZONE_LABEL, "")
    return metadata["creationTimestamp"], *place, metadata["name"]


def _is_selected(metadata: dict[str, Any], effects: OfferEffects) -> bool:
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    # A node that is already going, by itself or because of another fault, is not reclaimed a second time.
    if not is_spot(labels) or metadata.get("deletionTimestamp") or RECLAIM_ANNOTATION in annotations:
        return False
    return effects.selects(labels.get(INSTANCE_TYPE_LABEL, ""), labels.get(ZONE_LABEL, ""), "spot")


async def drawn(client: Client, record: Record, before: Record | None) -> Record:
    """The fault with the machines that it reclaims; a fault that has not changed keeps those it already has.

    Args:
        before: the fault recorded under its name until now.
    """
    how = record.offers.interruption if record.offers else None
    if how is None or record.offers is None:
        return record
    if before is not None and before.offers == record.offers and not before.ending:
        return replace(record, machines=before.machines)
    return replace(record, machines=how.drawn(await reclaimable(client, record.offers)))


async def reclaim(client: Client, record: Record) -> None:
    """Give notice to a fault's machines: annotate their nodes with the time of their end, and delete their claims."""
    how = record.offers.interruption if record.offers else None
    if how is None:
        return
    ends = datetime.fromisoformat(record.since) + timedelta(seconds=how.notice)
    until = ends.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    claims = {
        name: claim["metadata"]["name"]
        async for page in client.pages(_CLAIMS)
        for claim in page
        if (name := (claim.get("status") or {}).get("nodeName"))
    }

    async def give_notice(node: str) -> None:
        # Annotate first: a node whose claim is deleted goes as soon as it is drained.
        await _note(client, node, until)
        if node in claims:
            await objects.remove(client, f"{_CLAIMS}/{claims[node]}")

    await for_all(record.machines, give_notice, workers=client.connections)


async def call_off(client: Client, record: Record) -> None:
    """Keep the machines that an ending fault has not reclaimed yet, unless Karpenter has drained them."""
    await for_all(record.machines, lambda node: _note(client, node, None), workers=client.connections)


async def _note(client: Client, node: str, until: str | None) -> None:
    body = {"metadata": {"annotations": {RECLAIM_ANNOTATION: until}}}
    # The node may be gone already.
    with tolerating(404):
        await client.write("PATCH", f"{_NODES}/{node}", body, content_type=MERGE_PATCH)
