"""Creates the objects that a scheduler needs in the cluster, with a label; removes only objects with that label."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.kube import ApiError, namespaces, objects
from kumulus.kube.errors import tolerating
from kumulus.kube.namespaces import NAMESPACES
from kumulus.model.identity import NOBODY, RUN_LABEL, Owner

if TYPE_CHECKING:
    from kumulus.kube import Client

LABEL = "kumulus.io/scheduler"
CAPTURED_LABEL = "kumulus.io/captured"
"""On a clone's definitions, with the name of their scheduler: captured objects stay when the scheduler is gone."""
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ESTABLISHED_WITHIN = 30.0
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"


@dataclass(frozen=True)
class Mark:
    """For whom a scheduler is started; its objects in the cluster are marked with that."""

    run: str = ""
    """The experiment's run; empty for none."""
    owner: Owner = NOBODY

    @property
    def labels(self) -> dict[str, str]:
        """As labels."""
        return {**({RUN_LABEL: self.run} if self.run else {}), **self.owner.labels}


async def create(
    client: Client, scheduler: str, manifests: Sequence[Mapping[str, Any]], mark: Mark | None = None
) -> None:
    """Create a scheduler's objects, and wait until the new kinds can be used.

    Objects that an interrupted run left are taken over.
    """
    labels = {LABEL: scheduler, **(mark.labels if mark else {})}
    for is_definition in (True, False):
        chosen = [each for each in manifests if (each["kind"] == "CustomResourceDefinition") == is_definition]
        for manifest in chosen:
            await _create(client, scheduler, manifest, labels)
        for manifest in chosen if is_definition else ():
            await established(client, f"{_DEFINITIONS}/{manifest['metadata']['name']}")


async def remove(client: Client, scheduler: str, timeout: float = 60.0, run: str = "") -> None:
    """Delete everything that :func:`create` made, with all objects of its kinds, and wait until it is gone.

    The scheduler must be ended before: it might create some of the objects again. With ``run``, only what that run of
    an experiment has made is deleted.
    """
    deadline, collections = time.monotonic() + timeout, _removed()
    await _convert_no_more(client, scheduler)
    for collection in collections:
        for name in await _ours(client, collection, scheduler, run):
            address = f"{collection}/{name}"
            if collection == _DEFINITIONS:
                await objects.release_instances(client, await client.get(address))
            await _delete(client, address)
    for collection in collections:
        while left := await _ours(client, collection, scheduler, run):
            if time.monotonic() > deadline:
                raise SchedulerError(
                    f"{scheduler}: {left[0]} is still there {timeout:.0f} s after it was deleted\n"
                    f"  See why with: kubectl get --raw {collection}/{left[0]}"
                )
            await asyncio.sleep(0.1)


def _removed() -> tuple[str, ...]:
    """The collections of what is removed, in this order: a webhook without its server would refuse later requests.

    Objects in a namespace, or of a kind, are deleted with it.
    """
    return (
        *(_WEBHOOKS.format(each) for each in ("validating", "mutating")),
        *(kind.read_at for kind in registry.object_kinds() if kind.started_with),
        _DEFINITIONS,
        NAMESPACES,
    )


def _kept_by_others() -> set[str]:
    """Kinds of objects that may have existed before, and are then used as they are."""
    return {"CustomResourceDefinition", *(kind.name for kind in registry.object_kinds() if kind.started_with)}


async def _create(client: Client, scheduler: str, manifest: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    metadata = manifest["metadata"]
    body = {**manifest, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}
    collection = objects.collection(manifest)
    try:
        await client.create(collection, body)
        return
    except ApiError as error:
        if error.status != 409 or error.reason != "AlreadyExists":
            raise
    address = f"{collection}/{metadata['name']}"
    found = await client.get(address)
    if (found["metadata"].get("labels") or {}).get(LABEL) == scheduler:
        await client.merge_patch(address, body)
    elif (found["metadata"].get("labels") or {}).get(CAPTURED_LABEL) == scheduler:
        # Without the label by which it would be removed at the end, together with the clone's queues.
        await client.merge_patch(address, {"spec": manifest["spec"]})
    elif manifest["kind"] not in _kept_by_others() or "conversion" in manifest.get("spec", {}):
        raise SchedulerError(
            f"the cluster has a {scheduler} already: {manifest['kind']} {metadata['name']} is not ours\n"
            "  Remove that one first, or use it as the cluster's own"
        )


async def _convert_no_more(client: Client, scheduler: str) -> None:
    """Stop converting captured kinds by a webhook that is gone, as their objects could not be read otherwise."""
    named = await objects.names(client, _DEFINITIONS, {"labelSelector": f"{CAPTURED_LABEL}={scheduler}"})
    for name in named:
        await client.merge_patch(
            f"{_DEFINITIONS}/{name}", {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
        )


async def established(client: Client, address: str) -> None:
    """Wait until the API server serves a definition."""
    if not await objects.wait_until_established(client, address, _ESTABLISHED_WITHIN):
        name, found = address.rpartition("/")[2], await client.get(address)
        conditions = (found.get("status") or {}).get("conditions") or []
        raise SchedulerError(f"the API server does not take the definition {name}: {conditions}")


async def _ours(client: Client, collection: str, scheduler: str, run: str) -> list[str]:
    selector = f"{LABEL}={scheduler}" + (f",{RUN_LABEL}={run}" if run else "")
    # Its kind may be gone.
    with tolerating(404):
        return await objects.names(client, collection, {"labelSelector": selector})
    return []


async def _delete(client: Client, address: str) -> None:
    remove = namespaces.remove if address.startswith(NAMESPACES) else objects.remove
    # It may be a namespace that is being deleted already.
    with tolerating(409):
        await remove(client, address)
