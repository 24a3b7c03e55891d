"""What a fault of devices changes: the ResourceSlices of its nodes, and what pods say of their devices' health.

Source: UpdateAllocatedResourcesStatus in manager.go, and healthinfo.go, of pkg/kubelet/cm/dra of k8s.io/kubernetes.

While the fault is active, a device that it takes is not published, or tainted. A pool publishes the same slices
(model/slices.py), so that none of them is drift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kumulus.kube.bulk import for_all
from kumulus.kube.codecs import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.kube.pods import path_of
from kumulus.model.devices import gpu_of
from kumulus.model.pools import Pool
from kumulus.model.slices import RESOURCE_API, parts_of, published, slice_name, slice_spec
from kumulus.nodes.faults import pods
from kumulus.nodes.pools import slices
from kumulus.nodes.pools.slices import SLICES, NotServed

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.nodes.faults.changes import NodeStep

_CLAIMS = f"/apis/{RESOURCE_API}/resourceclaims"
Health = Mapping[tuple[str, str, str], str]
"""Healthy, Unhealthy or Unknown, by driver, node and GPU."""
_Claims = Mapping[tuple[str, str], list[dict[str, str]]]
"""The devices of claims, as :func:`_of_claim` returns them, by namespace and name."""


async def report(client: Client, steps: Sequence[NodeStep]) -> None:
    """Write into pods the health of the devices that their claims have, where a fault changes it."""
    health = {device: each for step in steps for device, each in _changed(step)}
    if not health:
        return
    claims: dict[tuple[str, str], list[dict[str, str]]] = {}
    async for page in client.pages(_CLAIMS):
        for claim in page:
            if resources := _of_claim(claim, health):
                claims[claim["metadata"]["namespace"], claim["metadata"]["name"]] = resources

    async def write(pod: dict[str, Any]) -> None:
        if statuses := _statuses(pod, claims):
            patch = {"status": {"containerStatuses": statuses}}
            with tolerating(404):
                await client.write("PATCH", f"{path_of(pod)}/status", patch, content_type=STRATEGIC_MERGE_PATCH)

    # By their own spec: a claim of a PodGroup is not reserved for its pods, but for the group.
    affected = await pods.on(client, {node for _, node, _ in health}) if claims else []
    await for_all(affected, write, workers=client.connections)


def _changed(step: NodeStep) -> Iterator[tuple[tuple[str, str, str], str]]:
    """The health of a node's devices, as in :data:`Health`; nothing if a step does not change them."""
    devices = step.after.devices
    if devices is None:
        return
    now = published(step.after, step.ordinal)
    if all(published(pool, step.ordinal) == now for pool in step.befores):
        return
    for index in range(devices.count):
        # A kubelet hears nothing of a device that its driver does not see any more.
        health = "Unknown"
        if index < now.well:
            health = "Healthy"
        elif index < now.left:
            health = "Unhealthy"
        yield (devices.driver, step.name, f"gpu-{index}"), health


def _of_claim(claim: Mapping[str, Any], health: Health) -> list[dict[str, str]]:
    """The devices of a claim whose health has changed: the request, the ID in a pod's status and the health of each."""
    results = ((claim.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results") or ()
    return [
        {
            "request": str(each["request"]),
            "resourceID": f"{each['driver']}/{each['pool']}/{each['device']}",
            "health": health[place],
        }
        for each in results
        if (place := (each["driver"], each["pool"], gpu_of(each["device"]))) in health
    ]


def _statuses(pod: Mapping[str, Any], claims: _Claims) -> list[dict[str, Any]]:
    """The change of a pod's container statuses: by container, what it has of each claim that it names."""
    namespace = pod["metadata"]["namespace"]
    # The status has the claims that were made of a template.
    entries = [*(pod["spec"].get("resourceClaims") or ()), *(pod["status"].get("resourceClaimStatuses") or ())]
    claim_names = {each["name"]: each.get("resourceClaimName") for each in entries}
    with_status = {each["name"] for each in pod["status"].get("containerStatuses") or ()}
    found = []
    for container in pod["spec"]["containers"]:
        resources = []
        for used in (container.get("resources") or {}).get("claims") or ():
            request = used.get("request", "")
            devices = [
                {"resourceID": each["resourceID"], "health": each["health"]}
                for each in claims.get((namespace, claim_names.get(used["name"]) or ""), ())
                if request in ("", each["request"].partition("/")[0])
            ]
            if devices:
                name = f"claim:{used['name']}" + (f"/{request}" if request else "")
                resources.append({"name": name, "resources": devices})
        if resources and container["name"] in with_status:
            found.append({"name": container["name"], "allocatedResourcesStatus": resources})
    return found


_NO_TAINTS = (
    "the cluster's API server drops the taints of devices: take Kubernetes 1.36 or later, switch the feature gate "
    "DRADeviceTaints on, or leave devices: taint out"
)


async def change(client: Client, before: Pool, after: Pool, ordinal: int) -> None:
    """Publish the devices of a node as its faults leave them; if it has no slice yet, its pool will create it.

    Args:
        before, after: its pool with the faults before and after the change.

    Raises:
        NotServed: the API server drops the taints of devices.
    """
    if after.devices is None or published(before, ordinal) == published(after, ordinal):
        return
    for part in parts_of(after, (ordinal,)):
        spec = slice_spec(after, part)
        if spec == slice_spec(before, part):
            continue
        path = f"{SLICES}/{slice_name(after, part)}"
        # A merge patch removes what is null.
        patch = {"spec": {"devices": None, **spec}}
        with tolerating(404):
            if not published(after, ordinal).taint:
                await client.write("PATCH", path, patch, content_type=MERGE_PATCH)
            elif (await client.merge_patch(path, patch))["spec"].get("devices") != spec.get("devices"):
                raise NotServed(_NO_TAINTS)


async def publish(client: Client, pool: Pool, ordinal: int, node_uid: str) -> None:
    """Publish the slices of a node that was created again; those of the former node may not be deleted yet."""
    for part in parts_of(pool, (ordinal,)):
        await slices.publish(client, pool, part, node_uid)
