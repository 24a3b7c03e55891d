"""Gives a clone's claims the devices that they have at the source, once the pods that have them by these claims exist.

The cluster's own controller makes the claims of templates, and names them in the pods' statuses. kube-scheduler
allocates claims only for pods without a node, so nobody else gives devices to a clone's pods, which have theirs.
Source: k8s.io/kubernetes, pkg/controller/resourceclaim. Checked against Kubernetes 1.35 to 1.37.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kumulus.extras.capture.devices import DEVICE_API
from kumulus.kube import ApiError, objects
from kumulus.kube.bulk import for_each

if TYPE_CHECKING:
    from kumulus.kube import Client

# Seconds between two looks for claims that are made of templates, and how long to wait for one more.
_EVERY, _PATIENCE = 0.5, 30.0
_FINALIZER = "resource.kubernetes.io/delete-protection"
Key = tuple[str, str]
"""Namespace, name."""


def is_made(claim: Mapping[str, Any]) -> bool:
    """Whether the cluster's own controller makes a captured object, of a template."""
    return claim["kind"] == "ResourceClaim" and bool(_made_for(claim))


async def allocate(client: Client, captured: Iterable[Mapping[str, Any]]) -> list[str]:
    """Give claims their devices, and reserve these for the pods that have them; those that have devices keep theirs.

    The clone has the pods that are on nodes. Of the objects captured, of any kind, returns the claims that have not the
    devices of the source now, each with the reason.
    """
    wanted = [each for each in captured if each["kind"] == "ResourceClaim" and _allocated(each)]
    if not wanted:
        return []
    pods = await _pods(client, wanted)
    other: list[str] = []

    async def one(claim: Mapping[str, Any]) -> None:
        metadata = claim["metadata"]
        namespace, name = metadata["namespace"], _name(claim, pods)
        if is_made(claim) and not _on_node(claim, pods):
            # It has ended, or the clone refused it, which is said of the pod; or the scheduler will give it devices.
            return
        path = f"/apis/{DEVICE_API}/namespaces/{namespace}/resourceclaims/{name}"
        why = await _give(client, path, claim, pods) if name else "it is not made"
        if why:
            other.append(f"{namespace}/{metadata['name']}: {why}")

    outcome = await for_each(wanted, one, workers=client.connections, most_failures=1)
    if outcome.failed:
        raise outcome.failed[0][1]
    return sorted(other)


async def _give(client: Client, path: str, claim: Mapping[str, Any], pods: Mapping[Key, Mapping[str, Any]]) -> str:
    """Give one claim its devices; returns why it has not got them, or an empty text."""
    allocation = claim["status"]["allocation"]
    if (found := await objects.find(client, path)) is None:
        return "there is no such claim"
    if has := (found.get("status") or {}).get("allocation"):
        return "" if _devices(has) == _devices(allocation) else "it has other devices"
    name = found["metadata"]["name"]
    users = (
        _group(found)
        if "podGroup" in claim
        else [
            {"resource": "pods", **_named(pod["metadata"])}
            for (namespace, _), pod in pods.items()
            if namespace == found["metadata"]["namespace"] and pod["spec"].get("nodeName") and name in _used(pod)
        ]
    )
    results = [
        {**each, "shareID": str(uuid.uuid4())} if "consumedCapacity" in each else each
        for each in allocation["devices"]["results"]
    ]
    status = {"allocation": {**allocation, "devices": {"results": results}}, "reservedFor": users}
    try:
        # As kube-scheduler does: until its pods are gone, it must not be deleted.
        await client.merge_patch(path, {"metadata": {"finalizers": [_FINALIZER]}})
        await client.merge_patch(f"{path}/status", {"status": status})
    except ApiError as error:
        if error.status not in (403, 404, 409, 422):
            raise
        return error.message
    return ""


async def _pods(client: Client, wanted: list[Mapping[str, Any]]) -> dict[Key, Mapping[str, Any]]:
    """The pods of the claims' namespaces, once claims are made of templates for those on nodes."""
    made = [each for each in wanted if is_made(each)]
    namespaces = sorted({str(each["metadata"]["namespace"]) for each in wanted})
    deadline, fewest = 0.0, len(made) + 1
    while True:
        found: dict[Key, Mapping[str, Any]] = {}
        for namespace in namespaces:
            async for page in client.pages(f"/api/v1/namespaces/{namespace}/pods"):
                found |= {(namespace, str(pod["metadata"]["name"])): pod for pod in page}
        waiting = sum(_on_node(each, found) and not _name(each, found) for each in made)
        if waiting < fewest:
            deadline, fewest = time.monotonic() + _PATIENCE, waiting
        if not waiting or time.monotonic() > deadline:
            return found
        await asyncio.sleep(_EVERY)


def _made_for(claim: Mapping[str, Any]) -> Mapping[str, str]:
    """The name of the pod or group that a claim was made for, and under which name this knows it; empty if for none."""
    return claim.get("pod") or claim.get("podGroup") or {}


def _group(claim: Mapping[str, Any]) -> list[dict[str, str]]:
    """The group that owns a claim of the clone, as whom its devices are reserved for."""
    return [
        {"apiGroup": each["apiVersion"].partition("/")[0], "resource": "podgroups", **_named(each)}
        for each in claim["metadata"]["ownerReferences"]
    ]


def _named(each: Mapping[str, Any]) -> dict[str, str]:
    return {"name": each["name"], "uid": each["uid"]}


def _having(claim: Mapping[str, Any], pods: Mapping[Key, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The clone's pods for which a claim is made of a template."""
    namespace, name = claim["metadata"]["namespace"], _made_for(claim)["name"]
    if "pod" in claim:
        return [pods[namespace, name]] if (namespace, name) in pods else []
    members = (pod for (there, _), pod in pods.items() if there == namespace)
    return [pod for pod in members if (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") == name]


def _on_node(claim: Mapping[str, Any], pods: Mapping[Key, Mapping[str, Any]]) -> bool:
    return any(pod["spec"].get("nodeName") for pod in _having(claim, pods))


def _name(claim: Mapping[str, Any], pods: Mapping[Key, Mapping[str, Any]]) -> str:
    """The name that a claim has in the clone; empty if it has none."""
    metadata = claim["metadata"]
    if not is_made(claim):
        return str(metadata["name"])
    names = (_of_templates(pod).get(_made_for(claim)["claim"], "") for pod in _having(claim, pods))
    return next((name for name in names if name), "")


def _used(pod: Mapping[str, Any]) -> set[str]:
    """The names of the claims that a pod has devices by."""
    named = {each.get("resourceClaimName") for each in pod["spec"].get("resourceClaims") or ()}
    return {*named, *_of_templates(pod).values()} - {None}


def _of_templates(pod: Mapping[str, Any]) -> dict[str, str]:
    listed = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return {str(each["name"]): str(each.get("resourceClaimName") or "") for each in listed}


def _allocated(claim: Mapping[str, Any]) -> bool:
    return bool(claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results"))


def _devices(allocation: Mapping[str, Any]) -> set[tuple[str, ...]]:
    results = (allocation.get("devices") or {}).get("results") or ()
    return {tuple(str(each.get(key)) for key in ("request", "driver", "pool", "device")) for each in results}
