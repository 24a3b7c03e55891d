"""The operator's DRA plugin for KWOK's nodes: a Deployment whose pod is a process, and what it may do.

It listens on port 8080 of every address, without an option: as a pod that is a process, it has addresses of its own.
It makes a ResourceSlice of the ConfigMap of each node. Objects as of its chart 0.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.model.devices import NVIDIA_DRIVER
from kumulus.model.gfd import DRA_IMAGE, DRA_PLUGIN
from kumulus.model.slices import RESOURCE_API, device_class_expression, device_class_spec
from kumulus.nodes.ownership import make

if TYPE_CHECKING:
    from kumulus.kube import Client

Ours = tuple[Mapping[str, str], str, str]
NAMESPACE = "gpu-operator"
_NODE = "local"
_SLICES = f"/apis/{RESOURCE_API}/resourceslices"
_ITS_SLICE = re.compile(r"kwok-.+-gpu")
_RBAC = "rbac.authorization.k8s.io"
_ROLES = f"/apis/{_RBAC}/v1/clusterroles"


def manifests(environment: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Its objects, in the order in which they are made; its namespace is there."""
    own = {"name": DRA_PLUGIN, "namespace": NAMESPACE}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": own}
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceslices"],
            "verbs": ["get", "list", "watch", "create", "update", "delete"],
        },
    ]
    yield {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": DRA_PLUGIN}, "rules": rules}
    yield {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": DRA_PLUGIN},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": DRA_PLUGIN},
        "subjects": [{"kind": "ServiceAccount", **own}],
    }
    spec = device_class_spec(device_class_expression(NVIDIA_DRIVER, NVIDIA_DRIVER))
    yield {"apiVersion": RESOURCE_API, "kind": "DeviceClass", "metadata": {"name": NVIDIA_DRIVER}, "spec": spec}
    variables = [{"name": name, "value": value} for name, value in sorted(environment.items())]
    pod = {
        "serviceAccountName": DRA_PLUGIN,
        # The node's policy may not be there yet.
        "nodeName": _NODE,
        "containers": [{"name": DRA_PLUGIN, "image": DRA_IMAGE, "env": variables}],
    }
    labels = {"app": DRA_PLUGIN}
    template = {"metadata": {"labels": labels}, "spec": pod}
    deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": own, "spec": deployment}


async def run(client: Client, environment: Mapping[str, str], ours: Ours) -> None:
    """Make its objects, or put them right."""
    for each in manifests(environment):
        await make(client, each, *ours)


async def end(client: Client, mark: Mapping[str, str]) -> None:
    """Remove its objects, if they are there, and the slices that it made."""
    if DRA_PLUGIN not in await objects.names(client, _ROLES, objects.labelled(mark)):
        return
    # The role goes late: as long as it is there, something may be left.
    for each in reversed(list(manifests({}))):
        await objects.remove(client, objects.address(each))
        if each["kind"] == "Deployment":
            for name in await objects.names(client, _SLICES, {"fieldSelector": f"spec.driver={NVIDIA_DRIVER}"}):
                if _ITS_SLICE.fullmatch(name):
                    await objects.remove(client, f"{_SLICES}/{name}")
