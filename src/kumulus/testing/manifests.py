"""Manifests, from a file, a text or mappings, put into a cluster by server-side apply, as `kubectl apply` does."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from kumulus.kube import ApiError, Client, discovery, objects
from kumulus.kube.codecs import APPLY_PATCH
from kumulus.kube.objects import inside, root
from kumulus.kube.safe_yaml import FAST_LOADER
from kumulus.testing.errors import ClusterError

Manifest = Mapping[str, Any]
Manifests = Manifest | Iterable[Manifest] | str | Path
"""A mapping, several, the text of a YAML file, or the path of one or of a folder of them."""

_MANAGER = "kumulus-testing"
"""The name under which API servers note what is applied, in an object's `managedFields`."""


async def apply(client: Client, manifests: Manifests, namespace: str) -> list[dict[str, Any]]:
    """Apply manifests, in their order; returns the objects as they are stored.

    Args:
        namespace: of namespaced objects that name none.
    """
    made: list[dict[str, Any]] = []
    kinds: dict[tuple[str, str], tuple[str, bool]] = {}
    for each in read(manifests):
        api_version, kind, name = str(each["apiVersion"]), str(each["kind"]), _name(each)
        if (api_version, kind) not in kinds:
            found = await discovery.served(client, api_version, kind)
            if found is None:
                raise ClusterError(
                    f"the cluster has no kind {kind} of {api_version}; apply its CustomResourceDefinition first"
                )
            kinds[api_version, kind] = found
        plural, namespaced = kinds[api_version, kind]
        within = str(each["metadata"].get("namespace") or namespace) if namespaced else None
        collection = f"{root(api_version)}{inside(within)}/{plural}"
        try:
            if "name" in each["metadata"]:
                made.append(await _apply_one(client, f"{collection}/{name}", each))
            else:
                made.append(await client.create(collection, each))
        except ApiError as error:
            where = f" in namespace {within}" if within else ""
            raise ClusterError(f"{kind} {name}{where} is refused: {error.message}") from None
        if kind == "CustomResourceDefinition":
            await objects.wait_until_established(client, f"{collection}/{name}", discovery.SERVED_S)
    return made


def read(manifests: Manifests) -> Iterator[dict[str, Any]]:
    """The objects of manifests; those of a List one by one."""
    for source, document in _documents(manifests):
        if document is None:
            continue
        if isinstance(document, Mapping) and isinstance(document.get("items"), list) and "kind" in document:
            yield from read(document["items"])
            continue
        metadata = document.get("metadata") if isinstance(document, Mapping) else None
        named = isinstance(metadata, Mapping) and ("name" in metadata or "generateName" in metadata)
        if not named or not (document.get("apiVersion") and document.get("kind")):
            raise ClusterError(f"{source} has a document without apiVersion, kind or metadata.name; write all three")
        yield dict(document)


def _documents(manifests: Manifests) -> Iterator[tuple[str, Any]]:
    if isinstance(manifests, Mapping):
        yield "a mapping", manifests
    elif isinstance(manifests, str) and ("\n" in manifests or manifests.lstrip().startswith("{")):
        yield from _parsed(manifests, "the text")
    elif isinstance(manifests, str | Path):
        for file in _files(Path(manifests)):
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                why = f"{file} cannot be read: {error}"
                raise ClusterError(f"{why}; name a file, a folder, or write the text") from None
            yield from _parsed(text, str(file))
    else:
        for each in manifests:
            yield "a mapping", each


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    return sorted(each for each in place.iterdir() if each.suffix in (".yaml", ".yml", ".json"))


def _parsed(text: str, source: str) -> Iterator[tuple[str, Any]]:
    try:
        for document in yaml.load_all(text, Loader=FAST_LOADER):
            yield source, document
    except (ValueError, yaml.YAMLError) as error:
        raise ClusterError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


def _name(manifest: Mapping[str, Any]) -> str:
    """The name of an object; of one whose name the server generates, how it will begin."""
    metadata = manifest["metadata"]
    return str(metadata.get("name") or f"{metadata['generateName']}…")


async def _apply_one(client: Client, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    params = {"fieldManager": _MANAGER, "force": "true"}
    # JSON is YAML, too.
    text = json.dumps(body, default=str).encode()
    found: dict[str, Any] = await client.request("PATCH", path, params=params, body=text, content_type=APPLY_PATCH)
    return found
