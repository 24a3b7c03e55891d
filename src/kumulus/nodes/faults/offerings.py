"""What active faults do to an autoscaler's offerings: an annotation on its node classes, which it reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kumulus.kube import objects
from kumulus.kube.errors import tolerating
from kumulus.kube.media import MERGE_PATCH
from kumulus.model.offer_effects import ANNOTATION
from kumulus.nodes.faults import records
from kumulus.nodes.faults.records import Record

if TYPE_CHECKING:
    from kumulus.kube import Client

CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"


async def there(client: Client) -> bool:
    """Whether the cluster has an autoscaler whose offerings faults can change."""
    return bool(await _classes(client))


async def put(client: Client, record: Record) -> None:
    """Let the autoscaler know what all active faults do to its offerings, after one of them has begun or ended.

    Args:
        record: the fault that began or ended; nothing is done if it does not affect offerings.
    """
    if record.offers is None or record.offers.interruption is not None:
        return
    now = records.now()
    known = sorted((await records.read(client)).faults.values(), key=lambda each: each.name)
    offers = [each.offers for each in known if each.offers and not each.ending and not each.over(now)]
    # Interruptions reclaim machines; they do not change what is offered.
    active = [each.to_plain() for each in offers if each.interruption is None]
    text = json.dumps(active, sort_keys=True) if active else None
    for name in await _classes(client):
        body = {"metadata": {"annotations": {ANNOTATION: text}}}
        await client.write("PATCH", f"{CLASSES}/{name}", body, content_type=MERGE_PATCH)


async def _classes(client: Client) -> list[str]:
    with tolerating(404):
        return sorted(await objects.names(client, CLASSES))
    return []
