"""What faults do to an autoscaler: to what it is offered, and to its spot machines, which a fault may reclaim.

Its node classes have an annotation of what active faults do to its offerings. A reclaimed machine's claim is deleted at
the notice, so that Karpenter drains the node and makes another (karpenter-provider-aws,
pkg/controllers/interruption/controller.go). When the notice ends, KWOK removes the machine, drained or not, and whether
Karpenter runs or not (:func:`kumulus.extras.scaling.karpenter.objects.stages`), because no Kumulus process need be
running then.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.kube.bulk import for_all
from kumulus.kube.codecs import MERGE_PATCH, METADATA_ONLY
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES
from kumulus.model.durations import timestamp
from kumulus.model.fault_effects import OFFERINGS_ANNOTATION, RECLAIM_ANNOTATION, OfferEffects
from kumulus.model.pools import INSTANCE_TYPE_LABEL, ZONE_LABEL
from kumulus.nodes.catalog.prices import is_spot
from kumulus.nodes.faults import records
from kumulus.nodes.faults.records import Record

if TYPE_CHECKING:
    from kumulus.kube import Client

CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
# The label of the nodes that Karpenter has made.
_MADE = "karpenter.sh/nodepool"


async def has_autoscaler(client: Client) -> bool:
    """Whether the cluster has an autoscaler whose offerings faults can change."""
    return bool(await _classes(client))


async def put(client: Client, record: Record) -> None:
    """Let the autoscaler know what all active faults do to its offerings, after one of those has begun or ended."""
    if record.offers is None or record.offers.interruption is not None:
        return
    now = timestamp()
    known = sorted((await records.read(client)).faults.values(), key=lambda each: each.name)
    offers = [each.offers for each in known if each.offers and not each.over(now)]
    # Interruptions reclaim machines; they do not change what is offered.
    active = [each.to_plain() for each in offers if each.interruption is None]
    text = json.dumps(active, sort_keys=True) if active else None
    for name in await _classes(client):
        body = {"metadata": {"annotations": {OFFERINGS_ANNOTATION: text}}}
        await client.write("PATCH", f"{CLASSES}/{name}", body, content_type=MERGE_PATCH)


async def _classes(client: Client) -> list[str]:
    with tolerating(404):
        return sorted(await objects.names(client, CLASSES))
    return []


async def reclaimable(client: Client, effects: OfferEffects) -> list[str]:
    """The node names of the machines that a fault with an interruption can reclaim now, oldest first."""
    how = effects.interruption
    assert how is not None
    labels = [f"{key}={value}" for key, value in sorted(how.labels.items())]
    query = {"labelSelector": ",".join([_MADE, *labels])}
    found = [
        node["metadata"]
        async for page in client.pages(NODES, query, accept=METADATA_ONLY)
        for node in page
        if _is_selected(node["metadata"], effects)
    ]

    def order(metadata: dict[str, Any]) -> tuple[str, ...]:
        # As little as possible differs between runs: the autoscaler chooses the names at random.
        place = (metadata["labels"].get(key, "") for key in (INSTANCE_TYPE_LABEL, ZONE_LABEL))
        return metadata["creationTimestamp"], *place, metadata["name"]

    return [metadata["name"] for metadata in sorted(found, key=order)]


def _is_selected(metadata: dict[str, Any], effects: OfferEffects) -> bool:
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    # A node that is already going, by itself or because of another fault, is not reclaimed a second time.
    if not is_spot(labels) or metadata.get("deletionTimestamp") or RECLAIM_ANNOTATION in annotations:
        return False
    return effects.selects(labels.get(INSTANCE_TYPE_LABEL, ""), labels.get(ZONE_LABEL, ""), "spot")


async def drawn(client: Client, record: Record, before: Record | None) -> Record:
    """The fault with the machines that it reclaims: those of `before`, if that is the same fault, or else new ones."""
    if record.offers is None or (how := record.offers.interruption) is None:
        return record
    if before is not None and before.offers == record.offers and not before.ending:
        return replace(record, machines=before.machines)
    return replace(record, machines=how.drawn(await reclaimable(client, record.offers)))


async def reclaim(client: Client, record: Record) -> None:
    """Give notice to a fault's machines: annotate their nodes with the time of their end, and delete their claims."""
    how = record.offers.interruption if record.offers else None
    if how is None:
        return
    until = timestamp(datetime.fromisoformat(record.since) + timedelta(seconds=how.notice))
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
        await client.write("PATCH", f"{NODES}/{node}", body, content_type=MERGE_PATCH)
