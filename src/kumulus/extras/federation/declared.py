"""A set of objects that a stack declares in a cluster: compared with the cluster's, created, and deleted.

Our objects carry the stack's identity; an object of another owner under one of our names is left alone, and refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.kube.objects import address, collection
from kumulus.model.identity import Owner
from kumulus.model.quantity import parse
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.ownership import is_ours, owner_text

if TYPE_CHECKING:
    from kumulus.kube import Client

Manifest = Mapping[str, Any]


@dataclass
class DeclaredState:
    """Objects as they are."""

    missing: list[str] = field(default_factory=list)
    """The objects that do not exist, as ``Kind name``."""
    altered: dict[str, str] = field(default_factory=dict)
    """What differs, by object."""
    foreign: dict[str, str] = field(default_factory=dict)
    """The objects that somebody else has made, with their owners."""
    extra: list[str] = field(default_factory=list)
    """Addresses of our objects that are no longer wanted."""

    def drift(self) -> dict[str, str]:
        """What is not as wanted, for the outputs of a resource."""
        found = {
            "missing": ", ".join(self.missing),
            "altered": ", ".join(f"{name} ({what})" for name, what in self.altered.items()),
            "extra": ", ".join(self.extra),
        }
        return {key: text for key, text in found.items() if text}


def label(manifest: Manifest) -> str:
    """What messages call an object: `ClusterQueue default`, `Role default/a`."""
    metadata = manifest["metadata"]
    inside = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{manifest['kind']} {inside}{metadata['name']}"


async def look(
    client: Client,
    wanted: Sequence[Manifest],
    owner: Owner,
    *,
    recorded: Iterable[str] = (),
    patience: float | None = None,
) -> DeclaredState:
    """Compare the cluster's objects with what is wanted; ``recorded`` ones no longer wanted are extra."""
    seen, addresses = DeclaredState(), {address(each) for each in wanted}
    for manifest in wanted:
        there = await objects.find(client, address(manifest), patience)
        if there is None:
            seen.missing.append(label(manifest))
        elif not is_ours(there["metadata"], owner, proven=address(manifest) in recorded):
            seen.foreign[label(manifest)] = await owner_text(client, there["metadata"])
        elif different := _differences(there, marked(manifest, owner)):
            seen.altered[label(manifest)] = ", ".join(different)
    for path in recorded:
        if path not in addresses:
            there = await objects.find(client, path, patience)
            if there is not None and is_ours(there["metadata"], owner, proven=True):
                seen.extra.append(path)
    return seen


async def converge(client: Client, wanted: Sequence[Manifest], owner: Owner, seen: DeclaredState) -> None:
    """Create, change and delete objects until they are as wanted, in this order; the others are not touched."""
    refuse(seen)
    for manifest in wanted:
        name = label(manifest)
        if name in seen.missing:
            await client.create(collection(manifest), marked(manifest, owner))
        elif name in seen.altered:
            await _put_right(client, marked(manifest, owner), seen.altered[name])
    await remove(client, seen.extra, owner)


def refuse(seen: DeclaredState) -> None:
    """Raise where an object of another owner has a name that is wanted."""
    for name, words in seen.foreign.items():
        raise ProviderError(
            f"{name} is there already, and {words}; it is left alone: write another `queue:` in kumulus:federation, "
            "or remove it where it was made"
        )


async def remove(client: Client, addresses: Iterable[str], owner: Owner) -> None:
    """Remove our objects, the last created first; one that does not exist is no error."""
    for path in reversed([*addresses]):
        there = await objects.find(client, path)
        if there is not None and is_ours(there["metadata"], owner, proven=True):
            await objects.remove(client, path)


def marked(manifest: Manifest, owner: Owner) -> dict[str, Any]:
    """An object with the stack's identity."""
    metadata = manifest["metadata"]
    labels = {**(metadata.get("labels") or {}), **owner.labels}
    annotations = {**(metadata.get("annotations") or {}), **owner.annotations}
    return {**manifest, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


async def _put_right(client: Client, body: dict[str, Any], different: str) -> None:
    path = address(body)
    if "roleRef" in different:
        # What a binding refers to cannot be changed.
        await objects.remove(client, path)
        await client.create(collection(body), body)
        return
    await client.write("PATCH", path, body, content_type=MERGE_PATCH)


def _differences(there: Manifest, wanted: Manifest) -> list[str]:
    """The fields of a wanted object that differ; what the server has filled in besides is no difference."""
    return [
        path
        for key, value in wanted.items()
        if key not in ("apiVersion", "kind")
        for path in _otherwise(there.get(key), value, key)
    ]


def _otherwise(there: Any, wanted: Any, path: str) -> list[str]:
    if isinstance(wanted, Mapping):
        # The server omits an empty mapping.
        found = there if isinstance(there, Mapping) else {}
        return [each for key, value in wanted.items() for each in _otherwise(found.get(key), value, f"{path}.{key}")]
    if isinstance(wanted, list):
        # The server omits an empty list.
        if not wanted and there is None:
            return []
        if not isinstance(there, list) or len(there) != len(wanted):
            return [path]
        return [
            each
            for index, (is_there, is_wanted) in enumerate(zip(there, wanted, strict=True))
            for each in _otherwise(is_there, is_wanted, f"{path}[{index}]")
        ]
    if path.endswith(".nominalQuota") and isinstance(there, str | int):
        # The server may write it in another unit.
        return [] if parse(there).nanos == parse(wanted).nanos else [path]
    return [] if there == wanted else [path]
