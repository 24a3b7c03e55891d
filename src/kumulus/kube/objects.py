"""Objects' paths in the API; verbs on single ones that succeed as well when the object exists, or is gone, already."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kumulus.kube.bulk import for_each
from kumulus.kube.codecs import MERGE_PATCH, METADATA_ONLY
from kumulus.kube.errors import ApiError, no_answer, tolerating

if TYPE_CHECKING:
    from kumulus.kube.client import Client

T = TypeVar("T")
NODES = "/api/v1/nodes"
_KUBE_SYSTEM = "/api/v1/namespaces/kube-system"
_PAGE = 2000
_TRIES = 8
_LOOK_EVERY_S = 0.05


def root(api_version: str) -> str:
    """The path of a version of an API group: `/apis/batch/v1`, `/api/v1`."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def inside(namespace: str | None) -> str:
    """The part of a path that says in which namespace an object is; empty for one in none."""
    return f"/namespaces/{namespace}" if namespace else ""


def collection(manifest: Mapping[str, Any]) -> str:
    """The collection of an object, `/apis/batch/v1/namespaces/default/jobs`, if the plural of its kind is regular."""
    kind = manifest["kind"].lower()
    return f"{root(manifest['apiVersion'])}{inside(manifest['metadata'].get('namespace'))}/{_plural(kind)}"


def _plural(kind: str) -> str:
    if kind.endswith("y") and kind[-2] not in "aeiou":
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def address(manifest: Mapping[str, Any]) -> str:
    """The path of an object, if the plural of its kind is regular."""
    return f"{collection(manifest)}/{manifest['metadata']['name']}"


def labelled(labels: Mapping[str, str]) -> dict[str, str]:
    """The query for objects that have all of these labels."""
    return {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}


def holds(item: Mapping[str, Any], condition: str) -> bool:
    """Whether one of an object's conditions is true, such as `Available`."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(each.get("type") == condition and each.get("status") == "True" for each in conditions)


def is_established(definition: Mapping[str, Any]) -> bool:
    """Whether the API server has accepted a CustomResourceDefinition."""
    return holds(definition, "Established")


async def wait_until_established(client: Client, path: str, within: float) -> bool:
    """Wait until the API server has accepted a CustomResourceDefinition; False if it has not within some seconds."""
    return await wait_until(lambda: client.get(path), is_established, within)


async def wait_for_account(client: Client, namespace: str, within: float) -> bool:
    """Wait until a namespace has its default ServiceAccount; False if it has not within some seconds.

    Before, pods in it are refused.
    """
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    return await wait_until(lambda: find(client, path), lambda found: found is not None, within)


async def wait_until(
    look: Callable[[], Awaitable[T]], wanted: Callable[[T], bool], within: float, every: float = _LOOK_EVERY_S
) -> bool:
    """Look until what is found is wanted; False if it is not within some seconds.

    Args:
        every: seconds between two looks.
    """
    ends = time.monotonic() + within
    while not wanted(await look()):
        if time.monotonic() > ends:
            return False
        await asyncio.sleep(every)
    return True


async def find(client: Client, path: str, patience: float | None = None) -> dict[str, Any] | None:
    """An object; None if it does not exist."""
    with tolerating(404):
        found: dict[str, Any] = await client.get(path, patience=patience)
        return found
    return None


async def identity(client: Client, patience: float | None = None) -> str:
    """The identity of a cluster: the UID of its namespace kube-system."""
    found = await client.get(_KUBE_SYSTEM, patience=patience)
    try:
        return str(found["metadata"]["uid"])
    except (TypeError, KeyError):
        raise no_answer(_KUBE_SYSTEM) from None


async def names(client: Client, collection: str, params: Mapping[str, str] | None = None) -> list[str]:
    """The names of a collection's objects; only their metadata are transferred."""
    pages = client.pages(collection, params, limit=_PAGE, accept=METADATA_ONLY)
    return [item["metadata"]["name"] async for page in pages for item in page]


async def remove(client: Client, path: str, options: Mapping[str, Any] | None = None) -> bool:
    """Delete an object; returns whether it existed."""
    with tolerating(404):
        await client.delete(path, options)
        return True
    return False


async def replace(client: Client, collection: str, body: dict[str, Any]) -> None:
    """Create an object, or replace one of that name entirely: a merge would keep what the new one no longer has.

    If others change it at the same time, as controllers do with new objects, it is read again.
    """
    if await _created(client, collection, body):
        return
    path = f"{collection}/{body['metadata']['name']}"

    async def attempt() -> bool:
        version = (await client.get(path))["metadata"]["resourceVersion"]
        await client.write("PUT", path, {**body, "metadata": {**body["metadata"], "resourceVersion": version}})
        return True

    await persist(attempt, path, f"{body.get('kind', 'the object')} {body['metadata']['name']}")


async def create_or_merge(client: Client, collection: str, body: dict[str, Any]) -> None:
    """Create an object, or merge it into the one of that name; for one that probably does not exist."""
    if not await _created(client, collection, body):
        path = f"{collection}/{body['metadata']['name']}"
        await client.write("PATCH", path, body, content_type=MERGE_PATCH)


async def merge_or_create(client: Client, path: str, change: Mapping[str, Any], fresh: dict[str, Any]) -> None:
    """Merge a change into an object, or create the object; for one that probably exists.

    Args:
        change: a JSON merge patch (RFC 7386).
        fresh: the object to create if there is none.
    """
    try:
        await client.write("PATCH", path, change, content_type=MERGE_PATCH)
    except ApiError as error:
        if error.status != 404:
            raise
        await create_or_merge(client, path.rpartition("/")[0], fresh)


async def release_instances(client: Client, definition: Mapping[str, Any]) -> None:
    """Remove the finalizers from all objects of a kind: the controller that would act on them has ended.

    Args:
        definition: the kind's CustomResourceDefinition.
    """
    spec = definition["spec"]
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    version, plural = root(f"{spec['group']}/{stored}"), spec["names"]["plural"]
    unfinished = [
        f"{version}{inside(item['metadata'].get('namespace'))}/{plural}/{item['metadata']['name']}"
        async for page in client.pages(f"{version}/{plural}")
        for item in page
        if item["metadata"].get("finalizers")
    ]
    await for_each(unfinished, lambda address: _release(client, address), workers=client.connections)


async def _release(client: Client, address: str) -> None:
    with tolerating(404):
        await client.merge_patch(address, {"metadata": {"finalizers": None}})


async def persist(attempt: Callable[[], Awaitable[bool]], path: str, what: str) -> None:
    """Retry a change that others interfere with: each attempt reads the object again and changes what it finds.

    Args:
        attempt: returns whether it is done; a conflict (409) means that it is not.
        what: its kind and name, for the error.

    Raises:
        ApiError: others keep changing the object, or the server refused.
    """
    for _ in range(_TRIES):
        with tolerating(409):
            if await attempt():
                return
    raise ApiError(409, "Conflict", f"{what} is changed by others all the time", "PATCH", path)


async def _created(client: Client, collection: str, body: Mapping[str, Any]) -> bool:
    """Post an object; False when there is one of that name."""
    with tolerating(409):
        await client.write("POST", collection, body)
        return True
    return False
