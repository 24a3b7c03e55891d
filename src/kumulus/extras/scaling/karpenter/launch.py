"""How Karpenter is started: its variables, and the file of instance types that its provider for KWOK reads.

Inside a cluster whose nodes run containers, it is a Deployment. The nodes that it creates run no containers, so it and
every other pod that has to run avoid them by node affinity.

Sources: sigs.k8s.io/karpenter v1.15.0, pkg/operator/options/options.go, kwok/options/options.go and
kwok/cloudprovider/helpers.go.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kumulus.extras.scaling.descriptor import Asked, AutoscalerPlace, Manifest
from kumulus.extras.scaling.karpenter import objects
from kumulus.extras.scaling.karpenter.objects import stages
from kumulus.model import nodes
from kumulus.model.pools import ARCH_LABEL, INSTANCE_TYPE_LABEL, OS_LABEL, REGION_LABEL, ZONE_LABEL

PORTS = ("http", "health")
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
        objects.CAPACITY_TYPE: "spot" if offering["spot"] else "on-demand",
    }
    return [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(carried.items())]


NAME, NAMESPACE = "karpenter", "kube-system"
_FOLDER = Path("/etc/karpenter")
_PORTS = {"http": 8080, "health": 8081}
_LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "kumulus"}
# The provider's file is the only large one; the API server accepts a ConfigMap of 1 MiB.
_MOST_BYTES = 1_000_000


def manifests(asked: Asked) -> list[Manifest]:
    """All that Karpenter needs in the cluster, itself last.

    Raises:
        ValueError: it has too many instance types for a ConfigMap.
    """
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata()}
    kwok_stages = stages(asked) if asked.get("stages", True) else []
    return [*objects.manifests(asked, subject), *kwok_stages, account, _config_map(asked), _deployment(asked)]


def _config_map(asked: Asked) -> Manifest:
    text = json.dumps(instance_types(asked), sort_keys=True, separators=(",", ":"))
    if len(text) > _MOST_BYTES:
        raise ValueError(
            f"its instance types take {len(text):,} bytes in a ConfigMap, which holds {_MOST_BYTES:,}; name those that "
            "Karpenter is to choose from (autoscaler.instanceTypes), or fewer zones"
        )
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(), "data": {TYPES: text}}


def _deployment(asked: Asked) -> Manifest:
    variables = environment(asked, AutoscalerPlace(_FOLDER, Path(), _PORTS))
    # In a pod it uses the service account, and the kubelet's health probes come from outside.
    del variables["KUBECONFIG"]
    variables["LISTEN_ADDRESS"] = ""
    # Both are read only at its start, so a change of either needs a new pod.
    read = json.dumps([_config_map(asked)["data"], variables], sort_keys=True)
    annotations = {"kumulus.io/configuration": hashlib.sha256(read.encode()).hexdigest()[:16]}
    pod = {"metadata": {"labels": dict(_LABELS), "annotations": annotations}, "spec": _pod(asked, variables)}
    spec = {
        "replicas": 1,
        # Two pods would create nodes twice, as there is no leader election.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": dict(_LABELS)},
        "template": pod,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(), "spec": spec}


def _pod(asked: Asked, variables: dict[str, str]) -> dict[str, Any]:
    return {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "affinity": nodes.affinity_to_real(),
        "tolerations": [
            {"key": f"node-role.kubernetes.io/{role}", "operator": "Exists", "effect": "NoSchedule"}
            for role in ("control-plane", "master")
        ],
        "containers": [
            {
                "name": NAME,
                "image": asked["image"],
                "env": [{"name": name, "value": value} for name, value in sorted(variables.items())],
                "ports": [{"name": name, "containerPort": port} for name, port in _PORTS.items()],
                "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
                "livenessProbe": _healthy("/healthz", 30),
                "readinessProbe": _healthy("/readyz", 5),
                "volumeMounts": [{"name": NAME, "mountPath": str(_FOLDER), "readOnly": True}],
            }
        ],
        "volumes": [{"name": NAME, "configMap": {"name": NAME}}],
    }


def _metadata() -> dict[str, Any]:
    return {"name": NAME, "namespace": NAMESPACE, "labels": dict(_LABELS)}


def _healthy(path: str, every: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "health"}, "periodSeconds": every, "timeoutSeconds": 10}
