"""The objects that an autoscaler needs in a cluster: created, updated and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kumulus.extras.scaling import NAMES, registry
from kumulus.extras.scaling.descriptor import AutoscalerDescriptor, Manifest
from kumulus.kube import ApiError, objects
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES
from kumulus.model.fault_effects import OFFERINGS_ANNOTATION
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.faults import offerings
from kumulus.nodes.ownership import already_there

if TYPE_CHECKING:
    from kumulus.kube import Client

LABEL = "kumulus.io/autoscaler"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PATIENCE = 30.0
_ROLES = (
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
)


async def apply(client: Client, options: Mapping[str, Any]) -> None:
    """Create or update what the autoscaler needs in the cluster, and remove what it does not need any more.

    Everything of an autoscaler that is no longer asked for is removed: its nodes, all objects of its kinds, the kinds.

    Raises:
        ProviderError: one of the objects was made by somebody else; nothing is changed.
    """
    found = registry.autoscaler_of(options)
    for name in NAMES:
        if not found or found[0].name != name:
            await remove(client, registry.get(name))
    if not found:
        return
    autoscaler, asked = found
    wanted = autoscaler.objects(asked)
    for manifest in wanted:
        there = await objects.find(client, objects.address(manifest))
        if there is not None and not is_its(there, autoscaler):
            named = f"{manifest['kind']} {manifest['metadata']['name']}"
            raise already_there(autoscaler.name, named, "take autoscaler out of the stack file")
    await put(client, autoscaler, wanted)


async def put(
    client: Client,
    autoscaler: AutoscalerDescriptor,
    wanted: Iterable[Manifest],
    labels: Mapping[str, str] | None = None,
) -> None:
    """Create or update objects of an autoscaler, and remove objects of its kinds that are no longer wanted."""
    kept = set()
    for manifest in wanted:
        body = labelled(manifest, {LABEL: autoscaler.name, **(labels or {})})
        await _put(client, body)
        kept.add(objects.address(body))
    for collection in autoscaler.instances:
        for name in await objects.names(client, collection, {"labelSelector": f"{LABEL}={autoscaler.name}"}):
            if f"{collection}/{name}" not in kept:
                await objects.remove(client, f"{collection}/{name}")


def is_its(there: Mapping[str, Any], autoscaler: AutoscalerDescriptor) -> bool:
    """Whether an object in a cluster was made here for an autoscaler, whatever stack has it."""
    return (there["metadata"].get("labels") or {}).get(LABEL) == autoscaler.name


def labelled(manifest: Manifest, labels: Mapping[str, str]) -> Manifest:
    """A manifest with further labels."""
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}


async def _put(client: Client, manifest: dict[str, Any]) -> None:
    collection, name = objects.collection(manifest), manifest["metadata"]["name"]
    for last in (False, True):
        try:
            await objects.replace(client, collection, await _with_offerings(client, f"{collection}/{name}", manifest))
            break
        except ApiError as error:
            # Between our read and our write, the autoscaler may change its pools' status.
            if last or error.status != 409:
                raise
    served = partial(_established, client, f"{collection}/{name}")
    if manifest["kind"] == "CustomResourceDefinition" and not await objects.wait_until(served, bool, _PATIENCE):
        raise ProviderError(f"{name} is not served {_PATIENCE:.0f} s after it was made; run `pulumi up` again")


async def _with_offerings(client: Client, path: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """A node class with its annotation of faults in offerings, which only faults may change."""
    if not path.startswith(offerings.CLASSES):
        return manifest
    there = await objects.find(client, path)
    written = (there or {}).get("metadata", {}).get("annotations", {}).get(OFFERINGS_ANNOTATION)
    if written is None:
        return manifest
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), OFFERINGS_ANNOTATION: written}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


async def _established(client: Client, path: str) -> bool:
    found = await client.get(path)
    if not objects.is_established(found):
        return False
    spec = found["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    return await objects.find(client, f"/apis/{spec['group']}/{version}/{spec['names']['plural']}") is not None


async def remove(client: Client, autoscaler: AutoscalerDescriptor) -> None:
    """Remove the nodes, objects and kinds of an autoscaler that has ended, but nothing of anybody else's."""
    ours = {"labelSelector": f"{LABEL}={autoscaler.name}"}
    if not await objects.names(client, _ROLES[-1], ours) and not await objects.names(client, DEFINITIONS, ours):
        return
    if await objects.names(client, DEFINITIONS, ours):
        for collection in autoscaler.instances:
            await _freed(client, collection, await objects.names(client, collection))
    if autoscaler.nodes:
        made = await objects.names(client, NODES, {"labelSelector": autoscaler.nodes})
        await _freed(client, NODES, made)
    for collection in (*_ROLES, DEFINITIONS):
        for name in await objects.names(client, collection, ours):
            await objects.remove(client, f"{collection}/{name}")


async def _freed(client: Client, collection: str, names: Iterable[str]) -> None:
    """Delete objects, with their finalizers, which nobody removes any more."""
    for name in names:
        path = f"{collection}/{name}"
        await objects.remove(client, path)
        with tolerating(404):
            await client.write("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
