"""Volumes of a StorageClass of ours, on each Kubernetes version: made, bound, attached and removed."""

from __future__ import annotations

import pytest

from kumulus.kwok.volume_stages import PROVISIONER
from tests.integration.conftest import PODS, Plane, Pools
from tests.integration.test_snapshot import Create

pytestmark = [pytest.mark.integration, pytest.mark.every_version]
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
# As kubelets annotate their nodes; without it, nothing is attached to a node.
ATTACHES = "volumes.kubernetes.io/controller-managed-attach-detach"


@pytest.mark.parametrize("mode", ["WaitForFirstConsumer", "Immediate"])
async def test_a_claim_of_the_class_is_bound_and_its_volume_attached_where_the_pod_is(
    plane: Plane, pools: Pools, workloads: Create, mode: str
) -> None:
    inputs = pools.inputs(1, annotations={ATTACHES: "true"}, taints=[])
    await pools.create(inputs)
    name = str(inputs["name"])
    workloads(CLASSES, {"metadata": {"name": name}, "provisioner": PROVISIONER, "volumeBindingMode": mode})
    spec = {"storageClassName": name, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "7Gi"}}}
    plane.api.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})
    of_nobody = {**spec, "storageClassName": f"{name}-none"}
    workloads(CLAIMS, {"metadata": {"name": f"{name}-none"}, "spec": of_nobody})
    container = {"name": "main", "image": "none", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    selector = {"kumulus.io/pool": name}
    workloads(
        PODS,
        {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": volumes, "nodeSelector": selector}},
    )
    plane.api.until(PODS, lambda found: found[name]["status"]["phase"] == "Running")
    claim = plane.api.until(CLAIMS, lambda found: "capacity" in found[name]["status"])[name]
    volume = plane.api.get(f"{VOLUMES}/{claim['spec']['volumeName']}")
    assert (claim["status"]["phase"], claim["status"]["capacity"]) == ("Bound", {"storage": "7Gi"})
    assert (volume["status"]["phase"], volume["spec"]["csi"]["driver"]) == ("Bound", PROVISIONER)
    attached = plane.api.until(
        ATTACHMENTS, lambda found: any((each.get("status") or {}).get("attached") for each in found.values())
    )
    assert {each["spec"]["nodeName"] for each in attached.values()} == {f"{name}-0"}
    assert plane.api.get(f"{CLAIMS}/{name}-none")["status"]["phase"] == "Pending", "the class is nobody's"

    plane.api.delete(f"{PODS}/{name}")
    plane.api.delete(f"{CLAIMS}/{name}")
    plane.api.until(VOLUMES, lambda found: not found)
    plane.api.until(ATTACHMENTS, lambda found: not found)
