"""How cluster-autoscaler is started, and the provider next to it that it calls for node groups.

Source: cluster-autoscaler/cloudprovider/externalgrpc/README.md and externalgrpc_cloud_provider.go of
kubernetes/autoscaler: the provider's address, and the certificates by which the two authenticate each other.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from kumulus.extras.scaling.deploying import READ, Rule, granted, user
from kumulus.extras.scaling.descriptor import Asked, AutoscalerPlace, Manifest

PROVIDER = "node-groups"
_CLOUD, _SETTINGS = "cloud-config.yaml", "node-groups.json"
USER = "cluster-autoscaler"
# What its Helm chart grants: templates/clusterrole.yaml and role.yaml of the chart cluster-autoscaler.
_RULES: tuple[Rule, ...] = (
    ("", ("events", "endpoints"), ("create", "patch")),
    ("events.k8s.io", ("events",), ("create", "patch")),
    ("", ("pods/eviction",), ("create",)),
    ("", ("pods/status",), ("update",)),
    ("", ("nodes",), (*READ, "update", "patch")),
    (
        "",
        ("namespaces", "pods", "services", "replicationcontrollers", "persistentvolumeclaims", "persistentvolumes"),
        READ,
    ),
    ("", ("configmaps",), (*READ, "create", "update", "delete")),
    ("apps", ("daemonsets", "deployments", "replicasets", "statefulsets"), READ),
    ("batch", ("jobs", "cronjobs"), (*READ, "patch")),
    ("policy", ("poddisruptionbudgets",), READ),
    (
        "storage.k8s.io",
        ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"),
        READ,
    ),
    ("resource.k8s.io", ("deviceclasses", "resourceclaims", "resourceslices"), READ),
    ("coordination.k8s.io", ("leases",), (*READ, "create", "update", "patch")),
    ("autoscaling.x-k8s.io", ("provisioningrequests", "provisioningrequests/status"), (*READ, "update", "patch")),
)


def files(asked: Asked, place: AutoscalerPlace) -> dict[str, str]:
    """The provider's address, for cluster-autoscaler, and the provider's settings."""
    cloud = {
        "address": f"127.0.0.1:{place.ports[f'{PROVIDER}/http']}",
        "cacert": str(place.pki / "ca.crt"),
        "cert": str(place.pki / "admin.crt"),
        "key": str(place.pki / "admin.key"),
        # cluster-autoscaler's default of 5 s is too short on a busy machine, when nodes are removed with their pods.
        "grpc_timeout": "60s",
    }
    known: dict[str, Any] = {
        "hourly": dict(asked.get("hourly") or {}),
        "delays": list(asked.get("registrationDelays") or ()),
    }
    # JSON is YAML too.
    return {_CLOUD: json.dumps(cloud, indent=1), _SETTINGS: json.dumps(known, indent=1, sort_keys=True)}


def arguments(asked: Asked, place: AutoscalerPlace) -> list[str]:
    """The command line of cluster-autoscaler: the options that connect it to the cluster, and the user's."""
    ours = {
        "cloud-provider": "externalgrpc",
        "cloud-config": str(place.folder / _CLOUD),
        "kubeconfig": str(place.kubeconfig),
        "address": f"127.0.0.1:{place.ports['http']}",
        "namespace": "kube-system",
        # There is only one, and it would exit whenever etcd or the API server is silent for some seconds.
        "leader-elect": "false",
    }
    theirs = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in _options(asked)}
    return [f"--{name}={value}" for name, value in {**theirs, **ours}.items()]


def _options(asked: Asked) -> list[tuple[str, object]]:
    # Sorted: a mapping from Pulumi has another order each time, which would count as a change each time.
    found = sorted(dict(asked.get("options") or {}).items())
    # Pulumi's numbers are floats.
    return [(name, int(each) if isinstance(each, float) and each == int(each) else each) for name, each in found]


def python(asked: Asked) -> Path:
    """The provider's interpreter: this Python, by its real path, so that it finds its standard library."""
    return Path(sys.executable).resolve()


def provider_arguments(asked: Asked, place: AutoscalerPlace) -> list[str]:
    """The command line of the provider."""
    module = "kumulus.extras.scaling.cluster_autoscaler.serve"
    port = str(place.ports[f"{PROVIDER}/http"])
    return ["-P", "-m", module, port, str(place.administrator), str(place.pki), str(place.folder / _SETTINGS)]


def provider_environment(asked: Asked, place: AutoscalerPlace) -> dict[str, str]:
    """The provider's variables: started by a link in the cluster's directory, it would not find a venv's packages."""
    if place.folder == Path("/nowhere"):
        # Where Kumulus is installed is not part of what the stack asks for.
        return {}
    return {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each), "PYTHONUNBUFFERED": "1"}


def manifests(asked: Asked) -> list[Manifest]:
    """Its ClusterRole, and the binding of that to its user."""
    return granted("kumulus-cluster-autoscaler", _RULES, user(USER))
