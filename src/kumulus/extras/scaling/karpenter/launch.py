"""How Karpenter is started, with its variables and its file of instance types; and which machines it left unfinished.

Sources: sigs.k8s.io/karpenter v1.14.0, pkg/operator/options/options.go, kwok/options/options.go and
kwok/cloudprovider/helpers.go.

Karpenter's provider for KWOK makes a node in a goroutine, after the claim is launched (Create in v1.14.0's
kwok/cloudprovider/cloudprovider.go). Two things can be lost with the process. One is the node of a claim that is marked
as launched; Karpenter creates no other node for its pods until the claim's 15 minutes are over (registrationTimeout in
pkg/controllers/nodeclaim/lifecycle/liveness.go). The other is the record of a node that was created before its claim
was marked: that claim is launched a second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kumulus.extras.scaling.descriptor import Asked, Place
from kumulus.extras.scaling.karpenter.objects import NODEPOOL_LABEL
from kumulus.kube import objects
from kumulus.kube.errors import tolerating
from kumulus.model.pools import ARCH_LABEL, INSTANCE_TYPE_LABEL, OS_LABEL, REGION_LABEL, ZONE_LABEL

if TYPE_CHECKING:
    from kumulus.kube import Client

PORTS = ("http", "health")
CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type"
TYPES = "instance-types.json"
# Labels that the provider sets itself for each type.
_ITS_OWN = (ARCH_LABEL, INSTANCE_TYPE_LABEL, OS_LABEL)
_SETTINGS = {
    "batchIdleDuration": "BATCH_IDLE_DURATION",
    "batchMaxDuration": "BATCH_MAX_DURATION",
    "preferencePolicy": "PREFERENCE_POLICY",
}


def files(asked: Asked, place: Place) -> dict[str, str]:
    """The only file that the provider reads, at its start."""
    # Sorted: a mapping from Pulumi has another order each time, which would count as a change each time.
    return {TYPES: json.dumps(instance_types(asked), indent=1, sort_keys=True)}


def instance_types(asked: Asked) -> list[dict[str, Any]]:
    """The stack's machines in the provider's format: every label of their nodes is a requirement of an offering.

    A requirement of one value becomes a label of the node, and a pod may select nodes by it before there is one.
    """
    return [_instance_type(machine) for machine in asked["machines"]]


def environment(asked: Asked, place: Place) -> dict[str, str]:
    """The variables of the process."""
    gates = asked.get("featureGates") or {}
    return {
        "KUBECONFIG": str(place.kubeconfig),
        "INSTANCE_TYPES_FILE_PATH": str(place.folder / TYPES),
        "METRICS_PORT": str(place.ports["http"]),
        "HEALTH_PROBE_PORT": str(place.ports["health"]),
        # There is only one, and it would exit whenever etcd or the API server is silent for some seconds.
        "DISABLE_LEADER_ELECTION": "true",
        "FEATURE_GATES": ",".join(f"{name}={str(on).lower()}" for name, on in sorted(gates.items())),
        **{variable: str(asked[key]) for key, variable in _SETTINGS.items() if asked.get(key)},
    }


def _instance_type(machine: Mapping[str, Any]) -> dict[str, Any]:
    labels = machine["labels"]
    return {
        "name": machine["type"],
        "architecture": labels[ARCH_LABEL],
        "operatingSystems": [labels[OS_LABEL]],
        "resources": dict(machine["capacity"]),
        "offerings": [
            {"Price": offering["hourly"], "Available": True, "Requirements": _requirements(labels, offering)}
            for offering in machine["offerings"]
        ],
    }


def _requirements(labels: Mapping[str, str], offering: Mapping[str, Any]) -> list[dict[str, Any]]:
    carried = {
        **{key: value for key, value in labels.items() if key not in _ITS_OWN},
        ZONE_LABEL: offering["zone"],
        **({REGION_LABEL: offering["region"]} if offering["region"] else {}),
        CAPACITY_TYPE_LABEL: "spot" if offering["spot"] else "on-demand",
    }
    return [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(carried.items())]


Object = Mapping[str, Any]
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
NODES = "/api/v1/nodes"
_UNREGISTERED = "karpenter.sh/unregistered"


def lost(claims: Iterable[Object], nodes: Iterable[Object]) -> list[str]:
    """The paths of claims whose node will never come, and of nodes that no claim refers to.

    Args:
        claims: all NodeClaims, read while Karpenter does not run.
        nodes: all nodes that it has created, likewise.
    """
    known, machines = list(claims), list(nodes)
    there = {node["spec"].get("providerID") for node in machines}
    claimed = {(claim.get("status") or {}).get("providerID") for claim in known}
    found = [
        f"{CLAIMS}/{claim['metadata']['name']}"
        for claim in known
        if _is(claim, "Launched")
        and not _is(claim, "Registered")
        and not claim["metadata"].get("deletionTimestamp")
        and claim["status"].get("providerID") not in there
    ]
    # Karpenter removes registered nodes itself, whatever happened to their claims.
    return found + [
        f"{NODES}/{node['metadata']['name']}"
        for node in machines
        if node["spec"].get("providerID") not in claimed
        and any(taint["key"] == _UNREGISTERED for taint in node["spec"].get("taints") or ())
    ]


async def find(client: Client) -> list[str]:
    """The paths of what :func:`lost` selects in a cluster; none if Karpenter's kinds do not exist."""
    with tolerating(404):
        claims = [claim async for page in client.pages(CLAIMS) for claim in page]
        made = {"labelSelector": NODEPOOL_LABEL}
        return lost(claims, [node async for page in client.pages(NODES, made) for node in page])
    return []


async def forget(client: Client) -> int:
    """Delete them, so that Karpenter launches such machines again; returns how many. Karpenter must not be running.

    A claim is gone once Karpenter has removed its finalizer, for which it needs no node.
    """
    found = await find(client)
    for path in found:
        await objects.remove(client, path)
    return len(found)


def _is(claim: Object, condition: str) -> bool:
    conditions = (claim.get("status") or {}).get("conditions") or ()
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)
