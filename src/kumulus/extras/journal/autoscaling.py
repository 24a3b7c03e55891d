"""Give an autoscaler the pools and delays of a run, and restore those of the stack."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import Exchanged
from kumulus.extras.scaling.karpenter.objects import DELAYS
from kumulus.kube import ApiError, objects
from kumulus.kube.codecs import MERGE_PATCH

if TYPE_CHECKING:
    from kumulus.kube import Client

POOLS = "/apis/karpenter.sh/v1/nodepools"
_CLASS = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default"
_DELAY = "nodeRegistrationDelay"
_KEPT = ("name", "labels", "annotations")
Manifest = dict[str, Any]


async def pools(client: Client) -> list[Manifest] | None:
    """The existing NodePools, in the form in which to create them again; None if the cluster has no autoscaler."""
    try:
        there = [pool async for page in client.pages(POOLS) for pool in page]
    except ApiError as error:
        if error.status != 404:
            raise
        return None
    return [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {key: pool["metadata"][key] for key in _KEPT if key in pool["metadata"]},
            "spec": pool["spec"],
        }
        for pool in there
    ]


async def exchange(
    client: Client, journal: Journal, wanted: Sequence[Manifest] | None, node_class: Manifest | None
) -> None:
    """Give an autoscaler other pools, other delays or both, after recording in the journal what it has.

    Args:
        wanted: NodePools that replace all existing ones; None to keep those.
        node_class: its delay applies from now on; None to keep the present one.
    """
    there = await pools(client) or []
    names = {pool["metadata"]["name"] for pool in there}
    made = [each["metadata"]["name"] for each in wanted or () if each["metadata"]["name"] not in names]
    delay = _delay_of(await client.get(_CLASS)) if node_class is not None else None
    journal.add(
        autoscaler=Exchanged(
            tuple(json.dumps(pool, sort_keys=True) for pool in there) if wanted is not None else (),
            tuple(f"{POOLS}/{name}" for name in made),
            json.dumps(delay) if delay is not None else "",
        )
    )
    for pool in wanted or ():
        await _put(client, pool)
    if wanted is not None:
        for name in names - {each["metadata"]["name"] for each in wanted}:
            await objects.remove(client, f"{POOLS}/{name}")
    if node_class is not None:
        await _set_delay(client, _delay_of(node_class))


async def put_back(client: Client, exchanged: Exchanged) -> bool:
    """Restore the stack's pools and delay; returns whether the cluster has an autoscaler."""
    if await pools(client) is None:
        # The stack has no autoscaler any more, and the pools went with it.
        return False
    for text in exchanged.pools:
        await _put(client, json.loads(text))
    for path in exchanged.made:
        await objects.remove(client, path)
    if exchanged.delay:
        await _set_delay(client, json.loads(exchanged.delay))
    return True


async def _put(client: Client, pool: Manifest) -> None:
    path = f"{POOLS}/{pool['metadata']['name']}"

    async def put() -> bool:
        await objects.replace(client, POOLS, pool)
        return True

    # Karpenter writes the status of its pools at the same time.
    await objects.persist(put, path, f"NodePool {pool['metadata']['name']}")


def _delay_of(node_class: Manifest) -> Manifest:
    """The merge patch that gives a node class the delay of another."""
    annotations, spec = node_class["metadata"].get("annotations") or {}, node_class.get("spec") or {}
    return {"metadata": {"annotations": {DELAYS: annotations.get(DELAYS)}}, "spec": {_DELAY: spec.get(_DELAY)}}


async def _set_delay(client: Client, patch: Manifest) -> None:
    await client.write("PATCH", _CLASS, patch, content_type=MERGE_PATCH)
