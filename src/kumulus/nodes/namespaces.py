"""Find, create, correct and delete a stack's own namespace, but never another owner's.

Its label kumulus.io/stack-id names the owner. Server-side apply, with which pulumi-kubernetes creates objects, would
take over an existing namespace, and delete it with everything in it when the stack is destroyed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.kube import namespaces, objects
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.errors import tolerating
from kumulus.kube.namespaces import NAMESPACES
from kumulus.model.identity import STACK_ANNOTATION, TENANT_LABEL, Owner
from kumulus.nodes.ownership import NotOurs, is_ours, owner_text

if TYPE_CHECKING:
    from kumulus.kube import Client

_LOOK_EVERY_S = 0.25


@dataclass(frozen=True)
class WantedNamespace:
    """A namespace as a stack wants it."""

    name: str
    owner: Owner
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def path(self) -> str:
        """Its path in the API."""
        return f"{NAMESPACES}/{self.name}"

    def manifest(self) -> dict[str, Any]:
        """The object to create."""
        annotations = {**self.annotations, STACK_ANNOTATION: self.owner.stack}
        metadata = {"name": self.name, "labels": {**self.labels, **self.owner.labels}, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


async def look(client: Client, wanted: WantedNamespace, recorded: str = "") -> dict[str, Any] | None:
    """The metadata of a namespace; None if there is none. Raises NotOurs if it is not the stack's.

    Args:
        recorded: the name of the stack that has it in its state; empty if none has.
    """
    found = await objects.find(client, wanted.path)
    if found is None:
        return None
    metadata: dict[str, Any] = found["metadata"]
    by_name = (metadata.get("annotations") or {}).get(STACK_ANNOTATION)
    # Where no identity can tell, a namespace is the stack's own if it names the stack: as the state has it, or, for a
    # stack without an identity, as it is called now.
    our_name = recorded or ("" if wanted.owner.identity else wanted.owner.stack)
    if not is_ours(metadata, wanted.owner, proven=bool(our_name) and by_name == our_name):
        raise NotOurs(f"the namespace {metadata['name']} is there already and {await owner_text(client, metadata)}")
    return metadata


async def make(client: Client, wanted: WantedNamespace, before: Mapping[str, Mapping[str, str]], recorded: str) -> None:
    """Create a namespace, or change the stack's own one to what is wanted.

    Args:
        before: the ``labels`` and ``annotations`` that were wanted before; those no longer wanted are removed.
        recorded: as for :func:`look`.

    Raises:
        NotOurs: another owner's namespace has the name, or the stack's last one is still being deleted.
    """
    body = wanted.manifest()

    async def attempt() -> bool:
        there = await look(client, wanted, recorded)
        if there is None:
            await client.create(NAMESPACES, body)
            return True
        if there.get("deletionTimestamp"):
            raise NotOurs(f"the namespace {wanted.name} is being deleted; run it again in a moment")
        metadata = {
            key: {**dict.fromkeys(before.get(key) or {}), **body["metadata"][key]} for key in ("labels", "annotations")
        }
        # With the version that was read, so that a concurrent change is not overwritten.
        metadata["resourceVersion"] = there["resourceVersion"]
        await client.merge_patch(wanted.path, {"metadata": metadata})
        return True

    await objects.persist(attempt, wanted.path, f"namespace {wanted.name}")


async def remove(client: Client, wanted: WantedNamespace, recorded: str, stop: asyncio.Event, seconds: float) -> str:
    """Delete a stack's namespace and wait until it is gone with everything in it.

    Args:
        recorded: as for :func:`look`.
        stop: when set, the wait ends.
        seconds: the longest wait.

    Returns:
        What is left of it, in the cluster's own words, when it was not gone in time; else "".
    """
    there = await look(client, wanted, recorded)
    if there is None:
        return ""
    give_up = asyncio.get_running_loop().time() + seconds
    # Delete only this one, not a later one of the same name.
    mine = {"preconditions": {"uid": there["uid"]}}
    removing = asyncio.ensure_future(namespaces.remove(client, wanted.path, mine))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        done, _ = await asyncio.wait({removing, stopping}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if removing in done:
            removing.result()
    finally:
        for each in (removing, stopping):
            each.cancel()
        await asyncio.gather(removing, stopping, return_exceptions=True)
    while (left := await objects.find(client, wanted.path)) and left["metadata"]["uid"] == there["uid"]:
        if stop.is_set() or asyncio.get_running_loop().time() > give_up:
            return _remaining(left) or "it is not gone yet"
        await asyncio.sleep(_LOOK_EVERY_S)
    return ""


def differences(metadata: Mapping[str, Any], wanted: WantedNamespace) -> dict[str, str]:
    """How a namespace is not as wanted: the path of each label and annotation that differs, and what is there."""
    found = {}
    labels = {**wanted.labels, **wanted.owner.labels}
    for key, want in (("labels", labels), ("annotations", wanted.annotations)):
        have = metadata.get(key) or {}
        for name, value in want.items():
            if have.get(name) != value:
                has = f'"{have[name]}"' if name in have else "missing"
                found[f'{key}["{name}"]'] = f'{has} instead of "{value}"'
    return found


def _remaining(namespace: Mapping[str, Any]) -> str:
    """Why a namespace is not gone: the messages of its conditions that are True."""
    conditions = (namespace.get("status") or {}).get("conditions") or []
    return "; ".join(each.get("message", "") for each in conditions if each.get("status") == "True")


# What a team deploys; the rest comes and goes with these.
_KINDS = {
    "Job": ("/apis/batch/v1", "jobs"),
    "CronJob": ("/apis/batch/v1", "cronjobs"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "DaemonSet": ("/apis/apps/v1", "daemonsets"),
    "Service": ("/api/v1", "services"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
    "Pod": ("/api/v1", "pods"),
}
# The field manager of objects that pulumi-kubernetes applies, before a suffix of eight letters.
_PULUMI = "pulumi-kubernetes"


async def guests(client: Client) -> dict[str, list[str]]:
    """What stacks made in tenants' namespaces, apart from the tenant itself, such as ``Job training``; by namespace."""
    found: dict[str, list[str]] = {}
    for namespace in await objects.names(client, NAMESPACES, {"labelSelector": TENANT_LABEL}):
        made: list[str] = []
        for kind, (group, plural) in _KINDS.items():
            collection = f"{group}/namespaces/{namespace}/{plural}"
            pages = client.pages(collection, {"labelSelector": f"!{TENANT_LABEL}"}, accept=METADATA_ONLY)
            # A cluster need not serve all of these.
            with tolerating(404):
                made += [
                    f"{kind} {item['metadata']['name']}" async for page in pages for item in page if _of_stack(item)
                ]
        if made:
            found[namespace] = sorted(made)
    return found


def _of_stack(item: dict[str, Any]) -> bool:
    metadata = item["metadata"]
    managers = [str(entry.get("manager", "")) for entry in metadata.get("managedFields") or ()]
    return not metadata.get("ownerReferences") and any(each.startswith(_PULUMI) for each in managers)
