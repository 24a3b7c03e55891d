"""Select what a snapshot of objects contains: what a cluster's users have put into namespaces.

It omits nodes, classes, volumes, their claims, their snapshots and CustomResourceDefinitions, which stay as they are;
and what the stack has made, what a Helm release has installed, what controllers create by themselves, and what is
transient.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.extras.snapshots.families import WORKLOADS
from kumulus.kube import ApiError, objects
from kumulus.kube.discovery import IN_EVERY_NAMESPACE, KINDS_OF_CONTROLLERS, ApiResource, namespaced
from kumulus.kube.namespaces import NAMESPACES
from kumulus.model.identity import STACK_ID

if TYPE_CHECKING:
    from kumulus.kube import Client

CLAIMS = frozenset({"PersistentVolumeClaim", "VolumeSnapshot"})
"""The kinds that hold data: a storage class may delete the volume together with its claim."""
_SECRETS = "/api/v1/secrets"
_SYSTEM = frozenset({"kube-system", "kube-public", "kube-node-lease", "local-path-storage"})
_NEEDED = (*WORKLOADS, "PersistentVolumeClaim")
# Kinds that controllers create for other objects, and transient ones.
_OTHERS = KINDS_OF_CONTROLLERS | {"Binding", "ResourceClaim"}
_MADE_BY_CONTROLLERS = IN_EVERY_NAMESPACE | {("Service", "kubernetes")}
_TOKENS, _RELEASE = "kubernetes.io/service-account-token", "helm.sh/release.v1"
_DROPPED = ("managedFields", "resourceVersion", "generation", "selfLink")


@dataclass(frozen=True)
class UserObjects:
    """What users have in a cluster's namespaces."""

    objects: Mapping[str, dict[str, Any]]
    """By path; namespaces are among them."""
    left: tuple[str, ...]
    """Namespaces that are left as they are, because they contain a Helm release."""
    forbidden: tuple[str, ...]
    """Kinds that may not be listed; they are left as they are, too."""
    claimants: frozenset[str]
    """UIDs of the namespaces that contain claims or volumes' snapshots, and of the owners of such: whoever deletes one
    of these deletes the claim with it."""


async def contents(client: Client, chosen: Collection[str] = ()) -> UserObjects:
    """What users have in the chosen namespaces, or in all that are theirs; one that does not exist counts as empty."""
    found: dict[str, dict[str, Any]] = {}
    forbidden: set[str] = set()
    claimants: set[str] = set()
    spaces = await _spaces(client, chosen)
    wanted = spaces.keys() if chosen else spaces.keys() - _SYSTEM
    released = await _released(client, wanted if chosen else None)
    within = wanted - released
    for name in sorted(within):
        space = spaces[name]
        if name != "default" and not _of_a_stack(space):
            found[f"{NAMESPACES}/{name}"] = kept("v1", "Namespace", space)
    for resource in await namespaced(client):
        if resource.kind in _OTHERS:
            continue
        try:
            listed = [each async for each in _listed(client, resource, within if chosen else None)]
        except ApiError as error:
            if error.status != 403 or resource.kind in _NEEDED:
                raise
            forbidden.add(resource.plural)
            continue
        for each in listed:
            metadata = each["metadata"]
            if metadata["namespace"] in within and resource.kind in CLAIMS:
                claimants.add(spaces[metadata["namespace"]]["metadata"]["uid"])
                claimants |= {owner["uid"] for owner in metadata.get("ownerReferences") or ()}
            elif metadata["namespace"] in within and _is_users(resource.kind, each):
                path = f"{resource.collection(metadata['namespace'])}/{metadata['name']}"
                found[path] = kept(resource.api_version, resource.kind, each)
    return UserObjects(found, tuple(sorted(released & wanted)), tuple(sorted(forbidden)), frozenset(claimants))


async def _spaces(client: Client, chosen: Collection[str]) -> dict[str, dict[str, Any]]:
    """The chosen namespaces, which takes no right to list all of them; or all."""
    if chosen:
        found = [(name, await objects.find(client, f"{NAMESPACES}/{name}")) for name in chosen]
        return {name: each for name, each in found if each is not None}
    return {each["metadata"]["name"]: each async for page in client.pages(NAMESPACES) for each in page}


def kept(api_version: str, kind: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """An object as a snapshot has it: without what the API server writes for itself."""
    metadata = {key: value for key, value in raw["metadata"].items() if key not in _DROPPED}
    return {**raw, "apiVersion": api_version, "kind": kind, "metadata": metadata}


async def _listed(
    client: Client, resource: ApiResource, within: Collection[str] | None
) -> AsyncIterator[dict[str, Any]]:
    """The objects of a kind in some namespaces; None for all."""
    for namespace in [""] if within is None else sorted(within):
        async for page in client.pages(resource.collection(namespace)):
            for each in page:
                yield each


async def _released(client: Client, within: Collection[str] | None) -> set[str]:
    """The namespaces with a Helm release, of some; None for all."""
    of_helm = {"fieldSelector": f"type={_RELEASE}"}
    found = set()
    paths = [_SECRETS] if within is None else [f"{NAMESPACES}/{name}/secrets" for name in sorted(within)]
    for path in paths:
        async for page in client.pages(path, of_helm):
            found |= {each["metadata"]["namespace"] for each in page}
    return found


def _is_users(kind: str, found: Mapping[str, Any]) -> bool:
    if (kind, found["metadata"]["name"]) in _MADE_BY_CONTROLLERS or _of_a_stack(found):
        return False
    return not (kind == "Secret" and found.get("type") in (_TOKENS, _RELEASE))


def _of_a_stack(found: Mapping[str, Any]) -> bool:
    return STACK_ID in (found["metadata"].get("labels") or {})
