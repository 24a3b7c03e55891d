"""Find, make, correct and delete an object of a stack's own, but never another owner's.

It is written by server-side apply, under a field manager of the stack's: what the manifest has is the stack's, all else
of the object is left to others. The server says what has drifted, by a dry run: only it knows its defaults, and how it
writes a quantity.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.kube import discovery, objects
from kumulus.kube.codecs import APPLY_PATCH
from kumulus.kube.objects import inside, root
from kumulus.model.identity import Owner
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.ownership import NotOurs, is_ours, owner_text

if TYPE_CHECKING:
    from kumulus.kube import Client

Object = dict[str, Any]
FIXED = ("roleRef", "type")
"""What the server refuses to change: a binding's role, a Secret's type."""
# Metadata that the server changes by itself.
_NOT_CONTENT = ("resourceVersion", "generation", "managedFields")


@dataclass(frozen=True)
class Address:
    """Which object it is, whatever the version of its API."""

    group: str
    kind: str
    namespace: str
    """Empty for an object in none."""
    name: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Address:
        """The address of the object that a manifest describes; parts of the manifest may be unknown."""
        metadata = manifest.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        group = str(manifest.get("apiVersion")).rpartition("/")[0]
        namespace, name = metadata.get("namespace") or "", metadata.get("name")
        return cls(group, str(manifest.get("kind")), str(namespace), str(name))

    def __str__(self) -> str:
        """Its name in a sentence: ``Role a in research``."""
        return f"{self.kind} {self.name}" + (f" in {self.namespace}" if self.namespace else "")


@dataclass(frozen=True)
class Owned:
    """An object as a stack wants it."""

    manifest: Mapping[str, Any]
    """What it should have."""
    owner: Owner
    recorded: bool
    """Whether the stack's state has it: then it is the stack's own, too, if nobody has marked it."""

    @property
    def address(self) -> Address:
        """Which object it is."""
        return Address.of(self.manifest)

    def body(self) -> Object:
        """The manifest with the marks of its owner."""
        metadata = {**self.manifest["metadata"]}
        for key, marks in (("labels", self.owner.labels), ("annotations", self.owner.annotations)):
            metadata[key] = {**(metadata.get(key) or {}), **marks}
        return {**self.manifest, "metadata": metadata}


async def path_of(client: Client, wanted: Owned) -> str | None:
    """The object's path in the API; None if the cluster does not have its kind."""
    api_version, address = str(wanted.manifest["apiVersion"]), wanted.address
    found = await discovery.served(client, api_version, address.kind)
    if found is None:
        return None
    plural, namespaced = found
    if namespaced and not address.namespace:
        raise ProviderError(f"{address} has to be in a namespace; write manifest.metadata.namespace")
    return f"{root(api_version)}{inside(address.namespace if namespaced else None)}/{plural}/{address.name}"


async def look(client: Client, wanted: Owned, path: str | None) -> Object | None:
    """The object; None if there is none. Raises NotOurs if it is not the stack's."""
    there = await objects.find(client, path) if path else None
    if there is not None and not is_ours(there["metadata"], wanted.owner, proven=wanted.recorded):
        raise NotOurs(f"{wanted.address} is there already and {await owner_text(client, there['metadata'])}")
    return there


async def make(client: Client, wanted: Owned, stop: asyncio.Event, seconds: float) -> str:
    """Create an object, or change the stack's own one to what is wanted; returns its path.

    An object with a fixed part that is not as wanted is deleted and made again.

    Args:
        stop: when set, the wait for such a deletion ends.
        seconds: the longest wait for it.

    Raises:
        NotOurs: another owner's object has the name.
    """
    path = await path_of(client, wanted)
    if path is None:
        address = wanted.address
        raise ProviderError(f"{address}: the cluster has no kind {address.kind} of {wanted.manifest['apiVersion']}")

    async def attempt() -> bool:
        there = await look(client, wanted, path)
        if there is not None and (there["metadata"].get("deletionTimestamp") or _fixed_differences(there, wanted)):
            await _removed(client, path, there, stop, seconds)
            there = None
        await _applied(client, path, wanted, there)
        return True

    await objects.persist(attempt, path, str(wanted.address))
    return path


async def remove(client: Client, wanted: Owned, stop: asyncio.Event, seconds: float) -> None:
    """Delete an object and wait until it is gone; arguments and errors as for :func:`make`."""
    path = await path_of(client, wanted)
    there = await look(client, wanted, path)
    if path is not None and there is not None:
        await _removed(client, path, there, stop, seconds)


async def differences(client: Client, wanted: Owned, path: str, there: Object) -> dict[str, str]:
    """How an object is not as wanted: the path of each part that differs, and what is there."""
    if fixed := _fixed_differences(there, wanted):
        return fixed
    applied = await _applied(client, path, wanted, there, dry_run=True)
    return _differences("", _content(there), _content(applied))


async def _applied(client: Client, path: str, wanted: Owned, there: Object | None, *, dry_run: bool = False) -> Object:
    """The object with what is wanted, applied to the one that is there; no later one of its name is changed."""
    body = wanted.body()
    params = {"fieldManager": f"kumulus-{wanted.owner.identity}", **({"dryRun": "All"} if dry_run else {})}
    # A new one is not forced: if another stack has made one of that name just now, its marks are a conflict.
    if there is not None:
        body["metadata"]["uid"] = there["metadata"]["uid"]
        params["force"] = "true"
    found: Object = await client.request("PATCH", path, params=params, body=body, content_type=APPLY_PATCH)
    return found


async def _removed(client: Client, path: str, there: Object, stop: asyncio.Event, seconds: float) -> None:
    uid = there["metadata"]["uid"]

    async def left() -> Object | None:
        found = await objects.find(client, path)
        return found if found and found["metadata"]["uid"] == uid else None

    # Only this one, not a later one of its name.
    await objects.remove(client, path, {"preconditions": {"uid": uid}})
    await objects.wait_until(left, lambda found: found is None or stop.is_set(), seconds)
    if found := await left():
        waits = ", ".join(found["metadata"].get("finalizers") or ()) or "none"
        raise ProviderError(f"{Address.of(there)} is being deleted (finalizers: {waits}); the next run goes on")


def _fixed_differences(there: Object, wanted: Owned) -> dict[str, str]:
    """How the parts that cannot be changed are not as wanted."""
    found: dict[str, str] = {}
    for key in FIXED:
        want, has = wanted.manifest.get(key), there.get(key)
        if isinstance(want, Mapping) and isinstance(has, Mapping):
            # The server adds what was left out.
            has = {each: has.get(each) for each in want}
        found |= _differences(key, has, want) if want is not None else {}
    return found


def _content(found: Object) -> Object:
    metadata = {key: value for key, value in found["metadata"].items() if key not in _NOT_CONTENT}
    return {**{key: value for key, value in found.items() if key != "status"}, "metadata": metadata}


def _differences(path: str, there: Any, wanted: Any) -> dict[str, str]:
    if isinstance(there, Mapping) and isinstance(wanted, Mapping):
        found: dict[str, str] = {}
        for key in sorted({*there, *wanted}):
            # As Pulumi writes paths: provider.resources.diffing.
            step = f".{key}" if key.isidentifier() else f'["{key}"]'
            found |= _differences(f"{path}{step}".removeprefix("."), there.get(key), wanted.get(key))
        return found
    if there == wanted:
        return {}
    has, wants = ("missing" if each is None else json.dumps(each) for each in (there, wanted))
    return {path: f"{has} instead of {wants}"}
