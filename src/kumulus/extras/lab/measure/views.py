"""The few facts about a pod and a node that an experiment needs, extracted from what a watch receives.

So the memory of a run grows by some hundred bytes for each pod. What a pod requests and what a node has is determined
by :mod:`kumulus.extras.watch.live`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kumulus.extras.lab.plan.gpu_claims import GpuDemand, taken
from kumulus.extras.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.extras.watch.live.node import NOWHERE, node_from
from kumulus.extras.watch.live.pod import amounts_asked, requests_of
from kumulus.model.devices import MILLI, gpu_of
from kumulus.model.gfd import GPU_RESOURCE, SHARE_RESOURCE
from kumulus.model.lifecycles import EMULATED_CONDITION, EXIT_CODE_ASSUMED
from kumulus.model.pools import INSTANCE_TYPE_LABEL
from kumulus.nodes.catalog.prices import Prices, is_spot

FINAL = ("Succeeded", "Failed", "Deleted")
_JOB_NAME, _JOB_UID = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"


class PodView(NamedTuple):
    """A pod.

    Attributes:
        uid: distinguishes it from another pod of the same name.
        workload, job: what it belongs to; empty for other pods than an experiment's.
        node: where it is bound; empty when it is not.
        phase: Pending, Running, Succeeded, Failed, or Deleted: it failed because it is being deleted.
        waits: why it has no node: the reason and message of its condition PodScheduled; empty before it was tried.
        disrupted: the reason of its condition DisruptionTarget; empty without one.
        share: milli-GPU that it also requests of one GPU.
        owner: name and UID of the Job of batch/v1 that created it; empty for any other pod.
        assumed: whether nobody has declared how it ends.
        group: `namespace/name` of the PodGroup of Kubernetes' own that it names; empty if none.
        bare: whether no controller makes another one when it is gone.
    """

    uid: str
    workload: str
    job: str
    node: str
    phase: str
    waits: str
    disrupted: str
    wants: Amounts
    share: int = 0
    owner: tuple[str, str] = ("", "")
    cluster: str = ""
    assumed: bool = False
    group: str = ""
    bare: bool = False


class NodeView(NamedTuple):
    """A node."""

    name: str
    product: str
    zone: str
    has: Amounts
    hourly: float | None = None
    """What it costs, in US dollars per hour; None where no price is known."""
    kind: str = ""
    """Its instance type, followed by ` spot` if the machine is a spot instance; empty if it has none."""
    cluster: str = ""
    """Its cluster's name among several that are measured together; empty if there is only one."""


def in_cluster(cluster: str, name: str) -> str:
    """The name of a node, or a pod, among several clusters, whose nodes may have the same names.

    Args:
        cluster: empty if there is only one.
    """
    return f"{cluster}/{name}" if cluster and name else name


def labelled(labels: Mapping[str, str]) -> tuple[str, str]:
    """The workload and the job that a pod is of, by its labels; both empty if either label is missing.

    A placeholder of YuniKorn's has the one by which a gang's pods stay together, and is no pod of the job.
    """
    workload, job = labels.get(WORKLOAD_LABEL, ""), labels.get(JOB_LABEL, "")
    return (workload, job) if workload and job else ("", "")


def pod_view(message: Any, known: Mapping[str, GpuDemand] = MappingProxyType({})) -> PodView:
    """Look at a pod.

    Args:
        message: ``Pod`` of :mod:`kumulus.kube.messages`.
        known: what each claim template asks for, by name.
    """
    metadata, spec, status = message.metadata, message.spec, message.status
    wants, share = requests_of(spec), _share(spec)
    if spec.resourceClaims and known:
        found = [known.get(each.resourceClaimTemplateName, GpuDemand()) for each in spec.resourceClaims]
        wants = wants._replace(gpus=wants.gpus + sum(each.gpus for each in found))
        # A pod may request the same thousandths as a resource, too.
        share = sum(each.milli for each in found)
    waits, disrupted, assumed = "", "", False
    group = spec.schedulingGroup.podGroupName
    for condition in status.conditions:
        if condition.type == "PodScheduled" and condition.status != "True":
            waits = f"{condition.reason}: {condition.message}"
        elif condition.type == "DisruptionTarget" and condition.status == "True":
            disrupted = condition.reason
        elif condition.type == EMULATED_CONDITION:
            assumed = condition.reason == EXIT_CODE_ASSUMED
    # A kubelet ends a pod that is deleted before it removes it: it has not failed by itself.
    deleted = status.phase == "Failed" and metadata.HasField("deletionTimestamp")
    return PodView(
        metadata.uid,
        *labelled(metadata.labels),
        spec.nodeName,
        "Deleted" if deleted else status.phase or "Pending",
        waits,
        disrupted,
        wants,
        share,
        (metadata.labels.get(_JOB_NAME, ""), metadata.labels.get(_JOB_UID, "")),
        assumed=assumed,
        group=f"{metadata.namespace}/{group}" if group else "",
        bare=not metadata.ownerReferences,
    )


class ClaimView(NamedTuple):
    """What a ResourceClaim has got."""

    pods: tuple[str, ...]
    """UIDs of the pods that it is reserved for."""
    gpus: tuple[tuple[str, int, int], ...]
    """For each GPU that it has or has a part of: the pool of devices, which is named after its node, the GPU's number
    there, and thousandths."""


def claim_view(message: Any) -> ClaimView:
    """Look at a claim; it has no GPUs before it is allocated.

    Args:
        message: ``ResourceClaim`` of :mod:`kumulus.kube.messages`.
    """
    found = []
    for result in message.status.allocation.devices.results:
        number = gpu_of(result.device).removeprefix("gpu-")
        if number.isdecimal() and not result.adminAccess:
            consumed = result.consumedCapacity[MILLI].string if MILLI in result.consumedCapacity else ""
            found.append((result.pool, int(number), taken(result.device, consumed)))
    return ClaimView(tuple(each.uid for each in message.status.reservedFor), tuple(found))


def _share(spec: Any) -> int:
    """Milli-GPU of one GPU that a pod asks for; 0 where it asks for whole GPUs."""
    asked = dict(amounts_asked(spec))
    return 0 if asked.get(GPU_RESOURCE) else -(-asked.get(SHARE_RESOURCE, 0) // 1000)


def node_view(message: Any, product_label: str, prices: Prices | None = None) -> NodeView:
    """Look at a node.

    Args:
        message: ``Node`` of :mod:`kumulus.kube.messages`.
        product_label: the label that says which GPUs it has; without it, they are named as in the cluster views.
    """
    node = node_from(message, NOWHERE)  # the sums do not need racks and blocks
    product = message.metadata.labels.get(product_label) or node.product or node.group or "other"
    price = prices.of_node(message.metadata.labels) if prices else None
    kind = message.metadata.labels.get(INSTANCE_TYPE_LABEL, "")
    kind += " spot" if kind and is_spot(message.metadata.labels) else ""
    return NodeView(node.name, product, node.zone or "-", node.allocatable, price.hourly if price else None, kind)
