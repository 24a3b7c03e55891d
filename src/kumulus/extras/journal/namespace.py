"""The namespaces of runs: whose they are, and their removal with everything in them, thousands of pods in seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kumulus.extras.journal.errors import Busy, NotPutBack
from kumulus.extras.schedulers import registry
from kumulus.host import lifetime
from kumulus.kube import namespaces
from kumulus.kube.bulk import for_all
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.kube.namespaces import NAMESPACES
from kumulus.kube.objects import find, names

if TYPE_CHECKING:
    from kumulus.kube import Client

EXPERIMENT_LABEL = "kumulus.io/experiment"
"""On the namespace of an experiment's repetition: the experiment's name."""
PROCESS = "kumulus.io/experiment-process"
"""On the same, an annotation: the process that runs it, in the form of :mod:`kumulus.host.lifetime`."""
_PATIENCE = 120.0
# Seconds that a scheduler, such as Kueue, has to clean up.
_TIDY = 8.0
_FREE = {"metadata": {"finalizers": None}}


async def clear_leftovers(client: Client) -> list[str]:
    """Remove the namespaces of experiments' runs that are gone and have no journal here; returns their names.

    Raises:
        Busy: an experiment runs on the cluster, or may run, without a journal here.
        NotPutBack: a namespace is still being deleted.
    """
    found: dict[str, Any] = {"items": []}
    # A user of some namespaces may not list all of them.
    with tolerating(403):
        found = await client.get(NAMESPACES, {"labelSelector": EXPERIMENT_LABEL})
    left = []
    for each in found["items"]:
        owner = each["metadata"].get("annotations", {}).get(PROCESS, "")
        name = each["metadata"]["name"]
        runs = lifetime.runs(owner)
        if each["status"].get("phase") != "Terminating" and runs is not False:
            who = f"process {owner.split(' ')[3]}" if runs else "on another machine, or in another container"
            raise Busy(
                f"an experiment {'runs' if runs else 'may run'} on this cluster (namespace {name}, {who}); "
                "wait for it, or delete the namespace if it is gone"
            )
        left.append(name)
    for name in left:
        await remove(client, name)
    return left


async def remove(client: Client, name: str, collections: Iterable[str] = ()) -> None:
    """Delete a namespace and wait until it is gone.

    Args:
        collections: paths of what to delete in it before its pods, so that no controller makes new ones.

    Raises:
        NotPutBack: it is still there after two minutes.
    """
    if await find(client, f"{NAMESPACES}/{name}") is None:
        return
    pods = f"{NAMESPACES}/{name}/pods"
    # A Deployment's ReplicaSet and a JobSet's Jobs would make new pods as long as they outlive it.
    owners = (f"/apis/apps/v1/namespaces/{name}/replicasets", f"/apis/batch/v1/namespaces/{name}/jobs")
    for path in dict.fromkeys((*collections, *owners)):
        if path != pods:
            await _remove_all(client, path, {"propagationPolicy": "Background"})
    # The Job controller removes its finalizer from the pods of deleted Jobs one by one, some dozens a second.
    await _remove_all(client, pods, {"gracePeriodSeconds": 0}, free=True)
    began = time.monotonic()
    await namespaces.remove(client, f"{NAMESPACES}/{name}")
    give_up, freed = began + _PATIENCE, False
    while await find(client, f"{NAMESPACES}/{name}") is not None:
        if not freed and time.monotonic() > began + _TIDY:
            freed = True
            await _free_workloads(client, name)
        if time.monotonic() > give_up:
            raise NotPutBack(f"the namespace {name} is still being deleted after {_PATIENCE:.0f} s; look at its status")
        await asyncio.sleep(0.2)


async def _free_workloads(client: Client, name: str) -> None:
    """Remove finalizers, such as those of the Workloads of a hub's Kueue that cannot reach the worker."""
    for kind in registry.object_kinds():
        if kind.finalized:
            with tolerating(403, 404):
                root = f"/apis/{kind.api_version(kind.versions[0])}/namespaces/{name}"
                await _remove_all(client, f"{root}/{kind.plural}", {}, free=True)


async def _remove_all(client: Client, path: str, options: Mapping[str, Any], free: bool = False) -> None:
    """Delete a collection's objects, many at a time: the API server itself deletes them one after the other.

    Args:
        options: DeleteOptions.
        free: whether to remove their finalizers first.
    """

    async def remove_one(each: str) -> None:
        with tolerating(404):
            if free:
                await client.write("PATCH", f"{path}/{each}", _FREE, content_type=MERGE_PATCH)
            await client.delete(f"{path}/{each}", options)

    await for_all(await names(client, path), remove_one, workers=client.connections)
