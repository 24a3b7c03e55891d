"""How Karpenter is started: its variables, and the file of instance types that its provider for KWOK reads.

Sources: sigs.k8s.io/karpenter v1.15.0, pkg/operator/options/options.go, kwok/options/options.go and
kwok/cloudprovider/helpers.go.
"""

import json
from collections.abc import Mapping
from typing import Any

from kumulus.extras.scaling.descriptor import Asked, AutoscalerPlace
from kumulus.model.pools import ARCH_LABEL, INSTANCE_TYPE_LABEL, OS_LABEL, REGION_LABEL, ZONE_LABEL

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


def files(asked: Asked, place: AutoscalerPlace) -> dict[str, str]:
    """The only file that the provider reads, at its start."""
    # Sorted: a mapping from Pulumi has another order each time, which would count as a change each time.
    return {TYPES: json.dumps(instance_types(asked), indent=1, sort_keys=True)}


def instance_types(asked: Asked) -> list[dict[str, Any]]:
    """The stack's machines in the provider's format: every label of their nodes is a requirement of an offering.

    A requirement of one value becomes a label of the node, and a pod may select nodes by it before there is one.
    """
    return [_instance_type(machine) for machine in asked["machines"]]


def environment(asked: Asked, place: AutoscalerPlace) -> dict[str, str]:
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
