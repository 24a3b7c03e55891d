"""Whether a cluster can allocate the claims of an experiment's pods, and what its nodes publish for them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.plan.gpu_claims import KIND
from kumulus.extras.watch.live.devices import published_from
from kumulus.extras.watch.live.fleet import SLICES
from kumulus.kube import ApiError
from kumulus.kube.errors import tolerating
from kumulus.kube.messages import MessageCodec
from kumulus.kube.objects import find
from kumulus.model.devices import GATES, MIG_CLASS, Parts
from kumulus.model.slices import DEVICE_CLASSES

if TYPE_CHECKING:
    from kumulus.extras.lab.plan.plan import RepetitionPlan
    from kumulus.kube import Client

_SAID = {"milli": "allowMultipleAllocations", "mig": "consumesCounters"}
_SECTION = {
    "milli": "resourceSlices: {extendedResource: false, allowMultipleAllocations: true}",
    "mig": "resourceSlices: {extendedResource: false, partitionable: true}",
}
_PAGE = "100"
_ABSENT = (403, 404)


def gates_for(experiment: ExperimentSpec) -> dict[str, bool]:
    """The feature gates that a scheduler needs to allocate an experiment's claims."""
    return {GATES[each.resourceClaims]: True for each in experiment.workloads if each.resourceClaims}


async def published(client: Client) -> Counter[str]:
    """How many GPUs each node publishes for claims; none if it has no such objects or this user no access."""
    found: Counter[str] = Counter()
    with tolerating(*_ABSENT):
        async for page in client.listed(SLICES, MessageCodec("ResourceSlice")):
            for each in map(published_from, page):
                found[each.node] += each.gpus
    return found


async def check_claims(client: Client, experiment: ExperimentSpec, plan: RepetitionPlan) -> None:
    """Refuse pods that claim what the cluster's nodes do not publish; says what to write in the stack file."""
    templates = [each for each in plan.setup if each["kind"] == KIND]
    for workload in experiment.workloads:
        parts = workload.resourceClaims
        own = [each for each in templates if each["metadata"]["name"].startswith(f"{workload.name}-")]
        if not parts or not own:
            continue
        asked = [each["spec"]["spec"]["devices"]["requests"][0]["exactly"] for each in own]
        divided = any("capacity" in each or each["deviceClassName"] == MIG_CLASS for each in asked)
        where = f"workload {workload.name}: resourceClaims: {parts}"
        await _devices(client, where, parts, divided)
        for name in sorted({each["deviceClassName"] for each in asked}):
            if await find(client, f"{DEVICE_CLASSES}/{name}") is None:
                remedy = f"Leave deviceClass out of the groups' resourceSlices, or create a DeviceClass {name}"
                raise LabError(f"{where}: the cluster has no DeviceClass {name}\n  {remedy}")


async def _devices(client: Client, where: str, parts: Parts, divided: bool) -> None:
    """Search the slices, a page at a time, for a device that can be divided, or for any if none has to be divided."""
    some, going_on = False, ""
    while True:
        try:
            page = await client.get(SLICES, {"limit": _PAGE, **({"continue": going_on} if going_on else {})})
        except ApiError as error:
            if error.status not in _ABSENT:
                raise
            version = (await client.get("/version")).get("gitVersion", "of an unknown version")
            raise LabError(
                f"{where}: the cluster, Kubernetes {version}, does not serve resource.k8s.io/v1\n"
                '  Write kubernetesVersion: "1.35.4" or later in the stack file, or leave it out'
            ) from None
        devices = [device for each in page["items"] for device in each["spec"].get("devices") or ()]
        if any(device.get(_SAID[parts]) for device in devices) or (devices and not divided):
            return
        some = some or bool(devices)
        if not (going_on := page["metadata"].get("continue", "")):
            break
    how = "claims can share" if parts == "milli" else "can be divided into MIG devices"
    what = f"a GPU that {how} ({_SAID[parts]})" if some else "devices by ResourceSlice"
    gate = f"before Kubernetes 1.36 with kwok: {{featureGates: {{{GATES[parts]}: true}}}}"
    raise LabError(
        f"{where}: no node publishes {what}\n"
        f"  Write {_SECTION[parts]} for the node groups with GPUs in the stack file, {gate}"
    )
