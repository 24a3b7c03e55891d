"""Karpenter inside a cluster whose nodes run containers: a Deployment, and what it reads.

The nodes that it creates run no containers, so it and every other pod that has to run avoid them by node affinity.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from kumulus.extras.scaling.descriptor import Asked, AutoscalerPlace, Manifest
from kumulus.extras.scaling.karpenter import launch, objects
from kumulus.extras.scaling.karpenter.objects import stages
from kumulus.model import nodes

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
    text = json.dumps(launch.instance_types(asked), sort_keys=True, separators=(",", ":"))
    if len(text) > _MOST_BYTES:
        raise ValueError(
            f"its instance types take {len(text):,} bytes in a ConfigMap, which holds {_MOST_BYTES:,}; name those that "
            "Karpenter is to choose from (autoscaler.instanceTypes), or fewer zones"
        )
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(), "data": {launch.TYPES: text}}


def _deployment(asked: Asked) -> Manifest:
    environment = launch.environment(asked, AutoscalerPlace(_FOLDER, Path(), _PORTS))
    # In a pod it uses the service account, and the kubelet's health probes come from outside.
    del environment["KUBECONFIG"]
    environment["LISTEN_ADDRESS"] = ""
    # Both are read only at its start, so a change of either needs a new pod.
    read = json.dumps([_config_map(asked)["data"], environment], sort_keys=True)
    annotations = {"kumulus.io/configuration": hashlib.sha256(read.encode()).hexdigest()[:16]}
    pod = {"metadata": {"labels": dict(_LABELS), "annotations": annotations}, "spec": _pod(asked, environment)}
    spec = {
        "replicas": 1,
        # Two pods would create nodes twice, as there is no leader election.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": dict(_LABELS)},
        "template": pod,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(), "spec": spec}


def _pod(asked: Asked, environment: dict[str, str]) -> dict[str, Any]:
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
                "env": [{"name": name, "value": value} for name, value in sorted(environment.items())],
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
