"""A chart's CRDs in a cluster: applied by the server under a name of the add-on's own, and removed with care.

Removing a CRD removes every object of its kind, so only those go that were made here, that nobody else applies, and
that have no objects left; see docs/decisions/helm-releases.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kube import ApiError
from kube.media import MERGE_PATCH
from kube.objects import find, remove

if TYPE_CHECKING:
    from kube import Client

MADE_BY = "kumulus.io/crd-made-by"
DIGEST = "kumulus.io/crd-digest"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_APPLY = "application/apply-patch+yaml"
_MANAGERS = "kumulus-crds-"
_ESTABLISHED_WITHIN = 15.0


@dataclass(frozen=True)
class Seen:
    """A CRD in the cluster.

    Args:
        digest: of the manifest that was applied last by any add-on; empty for one that none has applied.
        made_by: the add-on that made it; empty for one that was there before.
    """

    digest: str
    made_by: str


def manager(cluster: str, addon: str) -> str:
    """The name under which an add-on applies its CRDs."""
    return f"{_MANAGERS}{cluster}-{addon}"[:128]


async def look(client: Client, names: list[str]) -> dict[str, Seen]:
    """Those of some CRDs that are there.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    found = await asyncio.gather(*(find(client, f"{_CRDS}/{name}") for name in names))
    notes = {name: crd["metadata"].get("annotations") or {} for name, crd in zip(names, found, strict=True) if crd}
    return {name: Seen(note.get(DIGEST, ""), note.get(MADE_BY, "")) for name, note in notes.items()}


async def apply(client: Client, name: str, manifest: str, digest: str, owner: str) -> None:
    """Make a CRD, or bring one that is there up to date, whoever made it; returns when its kind can be used.

    Args:
        client: of the cluster.
        name: the CRD's.
        manifest: as the chart has it.
        digest: of that.
        owner: from :func:`manager`.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    path = f"{_CRDS}/{name}"
    there = await find(client, path)
    params = {"fieldManager": owner, "force": "true"}
    await client.request("PATCH", path, params=params, body=manifest.encode(), content_type=_APPLY)
    note = {DIGEST: digest, **({} if there else {MADE_BY: owner})}
    change = {"metadata": {"annotations": note}}
    await client.write("PATCH", path, change, content_type=MERGE_PATCH)
    async with asyncio.timeout(_ESTABLISHED_WITHIN):
        while not _established(await client.get(path)):  # noqa: ASYNC110 - the server tells only who asks
            await asyncio.sleep(0.1)


async def take_away(client: Client, name: str, owner: str) -> str:
    """Remove a CRD if it is the add-on's alone; returns why it was kept, or nothing.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    path = f"{_CRDS}/{name}"
    crd = await find(client, path)
    if crd is None or (crd["metadata"].get("annotations") or {}).get(MADE_BY) != owner:
        return ""
    others = [other for other in _appliers(crd) if other != owner]
    if others:
        change = {"metadata": {"annotations": {MADE_BY: others[0]}}}
        await client.write("PATCH", path, change, content_type=MERGE_PATCH)
        return f"{name} is kept: {others[0].removeprefix(_MANAGERS)} uses it too"
    if await _has_objects(client, crd):
        return f"{name} is kept: there are objects of it; kubectl delete crd {name} removes both"
    await remove(client, path)
    return ""


def _appliers(crd: Mapping[str, Any]) -> list[str]:
    fields = crd["metadata"].get("managedFields") or []
    names = {str(entry.get("manager")) for entry in fields if entry.get("operation") == "Apply"}
    return sorted(name for name in names if name.startswith(_MANAGERS))


async def _has_objects(client: Client, crd: Mapping[str, Any]) -> bool:
    spec = crd["spec"]
    version = next((each["name"] for each in spec["versions"] if each.get("served")), None)
    if version is None:
        return True
    try:
        found = await client.get(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}", {"limit": "1"})
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return bool(found.get("items"))


def _established(crd: Mapping[str, Any]) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)
