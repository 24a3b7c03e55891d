"""KWOK inside a cluster: the configuration and the controllers that its charts have no values for, as manifests.

The chart kwok installs what a kwok-controller needs (its kinds, its permissions, its priority), and its default
configuration. Each controller here reads that, and then its own, which wins: KWOK merges the documents in their order
(kwok v0.8.0, pkg/config/config.go).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kumulus.kwok.base_stages import node_stages_above, pod_stages_above
from kumulus.kwok.lifecycle_states import CONDITION
from kumulus.model import nodes
from kumulus.model.active_faults import WITHOUT_KWOK
from kumulus.model.pools import CLUSTER_LABEL
from kumulus.model.scale import SHARD_LABEL, lease_seconds, pod_range, selector

NAMESPACE = "kube-system"
NAME = "kwok-controller"
"""The name of the chart's service account; also the first controller's name."""

PORT = 10247
# A minute after a controller has stopped, its nodes are lost to the cluster. So its pod does not stay five minutes on a
# lost machine, as other pods do.
_SECONDS_ON_A_LOST_MACHINE = 30
_MANAGED = {"app.kubernetes.io/managed-by": "kumulus"}
_CHARTS_OWN, _OURS = "/root/.kwok/kwok.yaml", "/etc/kumulus/kwok.yaml"


@dataclass(frozen=True)
class ControllerSettings:
    """What all kwok-controllers of a cluster have in common."""

    repository: str
    """The repository of their image."""
    tag: str
    """The tag of their image."""
    pull_secrets: tuple[str, ...]
    parallelism: int
    """How many stages, and how many leases, each works on at once."""
    lease_seconds: int | None
    """How long a node's lease holds; None for what fits the number of nodes."""
    pod_cidr: str
    """The range of emulated pods' addresses."""
    cpu: str
    """Each controller's request, a quantity."""
    memory: str
    """Each controller's request, a quantity."""


@dataclass(frozen=True)
class Controllers:
    """The kwok-controllers of a cluster."""

    settings: ControllerSettings
    cluster: str
    nodes: int
    shards: int
    """How many controllers emulate the nodes."""

    def name(self, shard: int) -> str:
        """A controller's name; the first one keeps its name when others are added."""
        return NAME if shard == 0 else f"{NAME}-{shard}"

    def release_values(self) -> dict[str, Any]:
        """The values of the chart kwok: everything but the controllers."""
        return {
            "enableDeployment": False,
            "fullnameOverride": NAME,
            "image": {"repository": self.settings.repository, "tag": self.settings.tag},
            "imagePullSecrets": [{"name": name} for name in self.settings.pull_secrets],
        }

    def configuration(self, shard: int) -> dict[str, Any]:
        """What a controller is given beyond the chart's own configuration."""
        at_once = self.settings.parallelism
        options: dict[str, Any] = {
            "podPlayStageParallelism": at_once,
            "nodePlayStageParallelism": at_once,
            "nodeLeaseParallelism": at_once,
            "nodeLeaseDurationSeconds": lease_seconds(self.nodes, self.settings.lease_seconds),
            "cidr": pod_range(self.settings.pod_cidr, shard, self.shards),
        }
        chosen = (selector(shard, self.shards), f"!{WITHOUT_KWOK}")
        options["manageNodesWithLabelSelector"] = ",".join(filter(None, chosen))
        return {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}

    def config_map(self, shard: int) -> dict[str, Any]:
        """The ConfigMap with a controller's configuration."""
        text = json.dumps(self.configuration(shard), indent=2, sort_keys=True)
        return {"metadata": self._metadata(f"{self.name(shard)}-kumulus"), "data": {"kwok.yaml": text}}

    def deployment(self, shard: int) -> dict[str, Any]:
        """The Deployment of a controller."""
        # The configuration is read at the start only, so a changed one has to replace the pod.
        read = hashlib.sha256(json.dumps(self.configuration(shard), sort_keys=True).encode()).hexdigest()[:16]
        pod = {
            "metadata": {
                "labels": {**self._selector(shard), **_MANAGED},
                "annotations": {"kumulus.io/configuration": read},
            },
            "spec": self._pod(shard),
        }
        spec = {"replicas": 1, "selector": {"matchLabels": self._selector(shard)}, "template": pod}
        return {"metadata": self._metadata(self.name(shard)), "spec": spec}

    def service(self, shard: int) -> dict[str, Any]:
        """The Service for the metrics of a controller and of its nodes; the chart's Service selects all controllers."""
        ports = [{"name": "http", "port": PORT, "targetPort": PORT}]
        # The Deployment already tells whether the controller answers.
        metadata = {**self._metadata(service_name(shard)), "annotations": {"pulumi.com/skipAwait": "true"}}
        return {"metadata": metadata, "spec": {"selector": self._selector(shard), "ports": ports}}

    def _pod(self, shard: int) -> dict[str, Any]:
        def mount(name: str, path: str) -> dict[str, Any]:
            return {"name": name, "mountPath": path, "subPath": "kwok.yaml", "readOnly": True}

        secrets = [{"name": name} for name in self.settings.pull_secrets]
        volumes = (("charts", NAME), ("kumulus", f"{self.name(shard)}-kumulus"))
        return {
            "serviceAccountName": NAME,
            **({"imagePullSecrets": secrets} if secrets else {}),
            "affinity": nodes.affinity_to_real(),
            "tolerations": [
                *(
                    {"key": f"node-role.kubernetes.io/{role}", "operator": "Exists", "effect": "NoSchedule"}
                    for role in ("control-plane", "master")
                ),
                *(_tolerating(lost) for lost in ("not-ready", "unreachable")),
            ],
            "containers": [
                {
                    "name": "kwok",
                    "image": f"{self.settings.repository}:{self.settings.tag}",
                    "args": [f"--config={_CHARTS_OWN}", f"--config={_OURS}", "--node-ip=$(POD_IP)"],
                    "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                    "resources": {"requests": {"cpu": self.settings.cpu, "memory": self.settings.memory}},
                    "livenessProbe": _healthy(after=30, every=60, failures=10),
                    "readinessProbe": _healthy(after=1, every=5, failures=5),
                    "startupProbe": _healthy(after=1, every=1, failures=60),
                    "volumeMounts": [mount("charts", _CHARTS_OWN), mount("kumulus", _OURS)],
                }
            ],
            "volumes": [{"name": name, "configMap": {"name": source}} for name, source in volumes],
        }

    def _metadata(self, name: str) -> dict[str, Any]:
        labels = {**self._of_release(), **_MANAGED, CLUSTER_LABEL: self.cluster}
        return {"name": name, "namespace": NAMESPACE, "labels": labels}

    def _of_release(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": "kwok", "app.kubernetes.io/instance": release_name(self.cluster)}

    def _selector(self, shard: int) -> dict[str, str]:
        return {**self._of_release(), SHARD_LABEL: str(shard)}


def service_name(shard: int | str) -> str:
    """The name of the Service of one controller."""
    return f"{NAME}-shard-{shard}"


def release_name(cluster: str) -> str:
    """The name of the chart kwok's release, which tells which cluster it belongs to."""
    return f"{cluster}-kwok"


def stage_manifests(cluster: str, installed: bool) -> Sequence[Mapping[str, Any]]:
    """The stages that have to come before those of the chart stage-fast, with the cluster's name.

    If another stack has installed KWOK, only this stack's own nodes are touched.
    """
    found = [*node_stages_above(), *(pod_stages_above(CONDITION) if installed else [])]
    return [{**each, "metadata": {"name": f"{each['metadata']['name']}-{cluster}"}} for each in found]


def _tolerating(lost: str) -> dict[str, Any]:
    """The toleration of a machine that is lost, by the taint that says so."""
    key, seconds = f"node.kubernetes.io/{lost}", _SECONDS_ON_A_LOST_MACHINE
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


def _healthy(*, after: int, every: int, failures: int) -> dict[str, Any]:
    """A probe whose first look and pause are in seconds; it fails after so many failures."""
    return {
        "httpGet": {"path": "/healthz", "port": PORT, "scheme": "HTTP"},
        "initialDelaySeconds": after,
        "periodSeconds": every,
        "failureThreshold": failures,
        "timeoutSeconds": 5,
    }
