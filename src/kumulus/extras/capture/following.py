"""Keeps a clone up to date with its source: finds the changes between two captures, and applies them to the clone.

Objects that the source no longer has are removed; other objects that a user has created in the clone stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.capture.claims import allocate, is_made
from kumulus.extras.capture.fields import OBJECTS
from kumulus.extras.capture.putting import Put, Putting, accounts, checked, define, path_of, posted, read
from kumulus.extras.capture.workload import SHAPE, manifest
from kumulus.kube import ApiError, objects
from kumulus.kube.bulk import for_each
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.namespaces import NAMESPACES

if TYPE_CHECKING:
    from kumulus.kube import Client

Key = tuple[str, str, str]
"""Kind, namespace, name."""
_PODS = "/api/v1/pods"
_NOW = {"gracePeriodSeconds": 0}


@dataclass
class WorkloadFile:
    """The contents of a workload file."""

    objects: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """All but pods, in the form of a capture."""
    pods: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """As `reading.captured_pod` makes them."""


@dataclass(frozen=True)
class CaptureDifference:
    """The changes between two captures."""

    gone: list[dict[str, Any]]
    """Pods that no longer exist or have changed, and then objects, those that refer to others first."""
    objects: list[dict[str, Any]]
    """New ones, in the order in which they must be created; without namespaces and pods: `follow` creates those that
    are missing."""
    patches: list[tuple[dict[str, Any], dict[str, Any]]]
    """Changed objects, each with its changes as a JSON merge patch."""


def contents(file: Path) -> WorkloadFile:
    """Read a workload file."""
    found = WorkloadFile()
    for document in read(file):
        if document["kind"] == SHAPE:
            for pod in checked(document, file):
                found.pods["Pod", str(pod["namespace"]), str(pod["name"])] = pod
        else:
            metadata = document["metadata"]
            key = str(document["kind"]), str(metadata.get("namespace") or ""), str(metadata["name"])
            found.objects[key] = document
    return found


def difference(before: WorkloadFile, now: WorkloadFile) -> CaptureDifference:
    """The changes that turn a clone of `before` into a clone of `now`."""
    gone = [manifest(pod) for key, pod in before.pods.items() if now.pods.get(key) != pod]
    order = {kind: place for place, kind in enumerate(OBJECTS)}
    lost = [found for key, found in before.objects.items() if key not in now.objects and not is_made(found)]
    gone += [posted(each) for each in sorted(lost, key=lambda each: -order[each["kind"]])]
    made = [found for key, found in now.objects.items() if key not in before.objects and key[0] != "Namespace"]
    both = [(posted(before.objects[key]), posted(found)) for key, found in now.objects.items() if key in before.objects]
    patches = [(found, merge_patch(old, found)) for old, found in both if old != found]
    return CaptureDifference(gone, sorted(made, key=lambda each: order[each["kind"]]), patches)


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) that turns `old` into `new`."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        was = old.get(key)
        if isinstance(was, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(was, value):
                patch[key] = inner
        elif was != value:
            patch[key] = value
    return patch


async def follow(client: Client, changes: CaptureDifference, now: WorkloadFile) -> Put:
    """Apply the changes of the source to its clone, and recreate what the clone has lost otherwise.

    A clone loses a pod when its node is recreated, or when the clone's scheduler preempts it for another.
    """
    done = Put()

    async def remove(body: dict[str, Any]) -> None:
        path = f"{path_of(body['kind'], body)}/{body['metadata']['name']}"
        await objects.remove(client, path, _NOW if body["kind"] == "Pod" else None)

    async def patch(change: tuple[dict[str, Any], dict[str, Any]]) -> None:
        body, what = change
        try:
            await client.merge_patch(f"{path_of(body['kind'], body)}/{body['metadata']['name']}", what)
        except ApiError as error:
            if error.status not in (403, 404, 422):
                raise
            done.refused.setdefault(body["kind"], []).append(f"{body['metadata']['name']}: {error.message}")

    done.undefined = await define(client, changes.objects)
    removed = await for_each(changes.gone, remove, workers=client.connections, most_failures=1)
    patched = await for_each(changes.patches, patch, workers=client.connections, most_failures=1)
    if failed := [*removed.failed, *patched.failed]:
        raise failed[0][1]
    work = Putting(client, done, lambda kind, count: None)
    namespaces = await _lacking(client, NAMESPACES, now.objects, "Namespace")
    await work.objects(namespaces)
    await accounts(client, {str(each["metadata"]["name"]) for each in namespaces})
    await work.objects(changes.objects)
    lacking = await _lacking(client, _PODS, now.pods, "Pod")
    await work.pods([pod for pod in lacking if pod.get("node")])
    done.claims = await allocate(client, now.objects.values())
    await work.pods([pod for pod in lacking if not pod.get("node")])
    return done


async def _lacking(client: Client, path: str, wanted: Mapping[Key, dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The wanted objects of a kind that the clone does not have, including new ones and those just removed."""
    there: set[Key] = set()
    async for page in client.pages(path, accept=METADATA_ONLY):
        for metadata in (each["metadata"] for each in page):
            if not metadata.get("deletionTimestamp"):
                there.add((kind, str(metadata.get("namespace") or ""), str(metadata["name"])))
    return [each for key, each in wanted.items() if key[0] == kind and key not in there]
