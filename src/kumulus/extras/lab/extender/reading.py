"""Pods and nodes of a cluster as a policy sees them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kumulus.extras.lab.cluster.claims import published
from kumulus.extras.lab.offline.fleet import Machine, in_order
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.pod import WHOLE_GPU
from kumulus.kube.messages import MessageCodec
from kumulus.model.claims import Demand, claimed
from kumulus.model.gfd import GPU_RESOURCE, SHARE_RESOURCE
from kumulus.model.pod_requests import lenient, spec_requests
from kumulus.model.pools import GROUP_LABEL
from kumulus.model.quantity import NANO, ZERO, Quantity

if TYPE_CHECKING:
    from kumulus.kube import Client


def pod_of(
    name: str, spec: Mapping[str, Any], product_label: str, known: Mapping[str, Demand] = MappingProxyType({})
) -> Pod:
    """What a pod asks for.

    Args:
        name: the pod's.
        spec: of the pod, as in JSON.
        product_label: the node label that says which GPUs a node has.
        known: what the ResourceClaimTemplates ask for, by their names.
    """
    asked, by_claim = spec_requests(spec, lenient), claimed(spec, known)
    whole = _rounded_up(asked.get(GPU_RESOURCE, ZERO), NANO) + by_claim.gpus
    # A pod that asks for whole GPUs may ask for their thousandths as well.
    share = 0 if whole else by_claim.milli or _rounded_up(asked.get(SHARE_RESOURCE, ZERO), NANO)
    gpus = whole or int(share > 0)
    return Pod(
        name,
        cpu=_rounded_up(asked.get("cpu", ZERO), NANO // 1000),
        memory=_rounded_up(asked.get("memory", ZERO), NANO << 20),
        gpus=gpus,
        gpu_milli=share or (WHOLE_GPU if gpus else 0),
        models=_models(spec, product_label) if gpus else frozenset(),
    )


def _models(spec: Mapping[str, Any], product_label: str) -> frozenset[str]:
    """The GPU models that a pod's node selector or node affinity restricts it to."""
    if chosen := (spec.get("nodeSelector") or {}).get(product_label):
        return frozenset([chosen])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    found: set[str] = set()
    for term in required.get("nodeSelectorTerms") or ():
        values = [
            each.get("values") or ()
            for each in term.get("matchExpressions") or ()
            if each.get("key") == product_label and each.get("operator") == "In"
        ]
        if not values:
            return frozenset()
        found.update(*values)
    return frozenset(found)


async def machines_of(client: Client, product_label: str) -> list[Machine]:
    """The nodes of a cluster, in the order of their pools and numbers.

    Args:
        client: of the cluster.
        product_label: the node label that says which GPUs a node has; for a node without it, the group's name is used.
    """
    found, devices = [], await published(client)
    async for page in client.listed("/api/v1/nodes", MessageCodec("Node")):
        for node in page:
            has = lenient({name: amount.string for name, amount in node.status.allocatable.items()})
            labels = node.metadata.labels
            model = labels.get(product_label) or labels.get(GROUP_LABEL, "")
            found.append(
                Machine(
                    node.metadata.name,
                    has.get("cpu", ZERO).nanos * 1000 // NANO,
                    has.get("memory", ZERO).nanos // (NANO << 20),
                    # GPUs that a node offers both ways are counted once.
                    max(has.get(GPU_RESOURCE, ZERO).nanos // NANO, devices[node.metadata.name]),
                    model,
                )
            )
    return in_order(found)


def _rounded_up(amount: Quantity, unit: int) -> int:
    return -(-amount.nanos // unit)
