"""Volumes of a StorageClass of ours, on each Kubernetes version: made, bound, attached and removed."""

import pytest

from kumulus.kwok.claim_stages import PROVISIONER
from tests.integration.conftest import PODS, Plane, Pools
from tests.integration.test_snapshot import Create

pytestmark = [pytest.mark.integration, pytest.mark.every_version]
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
# As kubelets annotate their nodes; without it, nothing is attached to a node.
ATTACHES = "volumes.kubernetes.io/controller-managed-attach-detach"


async def test_claims_of_the_class_are_bound_and_their_volumes_attached_where_the_pod_is(
    plane: Plane, pools: Pools, workloads: Create
) -> None:
    inputs = pools.inputs(1, annotations={ATTACHES: "true"}, taints=[])
    await pools.create(inputs)
    pool = str(inputs["name"])
    claims = {f"{pool}-late": "WaitForFirstConsumer", f"{pool}-at-once": "Immediate"}
    request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "7Gi"}}}
    for name, mode in claims.items():
        workloads(CLASSES, {"metadata": {"name": name}, "provisioner": PROVISIONER, "volumeBindingMode": mode})
        plane.api.create(CLAIMS, {"metadata": {"name": name}, "spec": {**request, "storageClassName": name}})
    workloads(CLAIMS, {"metadata": {"name": f"{pool}-none"}, "spec": {**request, "storageClassName": f"{pool}-none"}})
    container = {
        "name": "main",
        "image": "none",
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in claims],
    }
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    spec = {"containers": [container], "volumes": volumes, "nodeSelector": {"kumulus.io/pool": pool}}
    workloads(PODS, {"metadata": {"name": pool}, "spec": spec})
    plane.api.until(PODS, lambda found: found[pool]["status"]["phase"] == "Running")
    bound = plane.api.until(CLAIMS, lambda found: all("capacity" in found[name]["status"] for name in claims))
    for name in claims:
        claim = bound[name]
        volume = plane.api.get(f"{VOLUMES}/{claim['spec']['volumeName']}")
        assert (claim["status"]["phase"], claim["status"]["capacity"]) == ("Bound", {"storage": "7Gi"})
        assert (volume["status"]["phase"], volume["spec"]["csi"]["driver"]) == ("Bound", PROVISIONER)
    attached = plane.api.until(
        ATTACHMENTS, lambda found: sum(bool((each.get("status") or {}).get("attached")) for each in found.values()) == 2
    )
    assert {each["spec"]["nodeName"] for each in attached.values()} == {f"{pool}-0"}
    assert plane.api.get(f"{CLAIMS}/{pool}-none")["status"]["phase"] == "Pending", "the class is nobody's"

    plane.api.delete(f"{PODS}/{pool}")
    for name in claims:
        plane.api.delete(f"{CLAIMS}/{name}")
    plane.api.until(VOLUMES, lambda found: not found)
    plane.api.until(ATTACHMENTS, lambda found: not found)
