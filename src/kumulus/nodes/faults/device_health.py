"""What pods say of the health of their devices while a fault taints these, as a kubelet does by its driver's reports.

Source: UpdateAllocatedResourcesStatus in pkg/kubelet/cm/dra/manager.go of k8s.io/kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kumulus.kube.bulk import for_all
from kumulus.kube.errors import tolerating
from kumulus.kube.media import STRATEGIC_MERGE_PATCH
from kumulus.kube.pods import path_of
from kumulus.model.mig import gpu_of
from kumulus.model.slices import RESOURCE_API, published
from kumulus.nodes.faults import pods

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.nodes.faults.changes import NodeStep

_CLAIMS = f"/apis/{RESOURCE_API}/resourceclaims"
Health = Mapping[tuple[str, str, str], str]
"""Healthy or Unhealthy, by driver, node and GPU."""


async def report(client: Client, steps: Sequence[NodeStep]) -> None:
    """Write into pods the health of the devices that their claims have, of nodes whose devices get or lose a taint."""
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
    having = await pods.on(client, {node for _, node, _ in health}) if claims else []
    await for_all(having, write, workers=client.connections)


def _changed(step: NodeStep) -> Iterator[tuple[tuple[str, str, str], str]]:
    devices = step.pools.after.devices
    if devices is None:
        return
    now, *befores = (published(pool, devices, step.ordinal) for pool in (step.pools.after, *step.pools.befores))
    if any(was.taint != now.taint for was in befores):
        for index in range(now.left):
            yield (devices.driver, step.name, f"gpu-{index}"), "Healthy" if index < now.well else "Unhealthy"


def _of_claim(claim: Mapping[str, Any], health: Health) -> list[dict[str, str]]:
    """The devices of a claim whose health has changed, as a pod's status has them; with the request of each."""
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


def _statuses(pod: Mapping[str, Any], claims: Mapping[tuple[str, str], list[dict[str, str]]]) -> list[dict[str, Any]]:
    """The change of a pod's container statuses: by container, what it has of each claim that it names.

    Args:
        claims: devices whose health has changed, by the namespace and name of the claim.
    """
    namespace = pod["metadata"]["namespace"]
    made = {each["name"]: each.get("resourceClaimName") for each in pod["status"].get("resourceClaimStatuses") or ()}
    named = {each["name"]: each.get("resourceClaimName") for each in pod["spec"].get("resourceClaims") or ()} | made
    there = {each["name"] for each in pod["status"].get("containerStatuses") or ()}
    found = []
    for container in pod["spec"]["containers"]:
        resources = []
        for used in (container.get("resources") or {}).get("claims") or ():
            request = used.get("request", "")
            devices = [
                {"resourceID": each["resourceID"], "health": each["health"]}
                for each in claims.get((namespace, named.get(used["name"]) or ""), ())
                if request in ("", each["request"].partition("/")[0])
            ]
            if devices:
                name = f"claim:{used['name']}" + (f"/{request}" if request else "")
                resources.append({"name": name, "resources": devices})
        if resources and container["name"] in there:
            found.append({"name": container["name"], "allocatedResourcesStatus": resources})
    return found
