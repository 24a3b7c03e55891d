"""Claims as stages of KWOK: devices that are made ready before a pod is bound to their node, and volumes.

For devices with `bindingConditions`, the stages do what a driver's controller does. kube-scheduler allocates the
devices, and binds the pod once the claim's `status.devices` has all of these conditions. If it has one of the
`bindingFailureConditions`, kube-scheduler gives the devices back and tries again (KEP-5007; PreBind of
k8s.io/kubernetes, pkg/scheduler/framework/plugins/dynamicresources).

For volumes of a StorageClass of ours, the stages make, delete and attach what Kubernetes' own controllers ask for.
kube-scheduler chooses a node; the controller manager asks for a volume by an annotation of the claim, binds it, and
attaches it to nodes that say that it may. Sources: pkg/controller/volume of k8s.io/kubernetes (persistentvolume,
attachdetach), and kubernetes-csi.github.io/docs/external-provisioner.html.
"""

import json
from collections.abc import Mapping
from typing import Any

from kumulus.kwok.lifecycle_states import delay
from kumulus.kwok.stages import absent, exists, is_in, not_in, stage
from kumulus.model.durations import seconds

_CLAIM = "resource.k8s.io/v1"
# KWOK applies it on the server, so what other drivers say of their devices in the claim stays.
_TEMPLATE = """
apiVersion: {api}
kind: ResourceClaim
metadata:
  name: {{{{ .metadata.name | Quote }}}}
  namespace: {{{{ .metadata.namespace | Quote }}}}
  uid: {{{{ .metadata.uid | Quote }}}}
  resourceVersion: {{{{ .metadata.resourceVersion | Quote }}}}
status:
  devices:
{{{{ range .status.allocation.devices.results }}}}{{{{ if and (eq .driver {driver}) .bindingConditions }}}}
  - driver: {{{{ .driver | Quote }}}}
    pool: {{{{ .pool | Quote }}}}
    device: {{{{ .device | Quote }}}}
{{{{ with .shareID }}}}
    shareID: {{{{ . | Quote }}}}
{{{{ end }}}}
    conditions:
{{{{ range .{conditions} }}}}
    - type: {{{{ . | Quote }}}}
      status: "True"
      reason: Emulated
      message: {message}
      lastTransitionTime: {{{{ Now | Quote }}}}
{{{{ end }}}}{{{{ end }}}}{{{{ end }}}}
"""
# In jq: since when it is allocated.
_ALLOCATED = "(.status.allocation.allocationTimestamp // .metadata.creationTimestamp)"


def claim_stages(bindings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The stages for the devices of each driver: ready ``after`` a duration, but for a share of ``failures``."""
    return [each for driver, how in sorted(bindings.items()) for each in _of_driver(driver, how)]


def _of_driver(driver: str, how: Mapping[str, Any]) -> list[dict[str, Any]]:
    named, failures = json.dumps(driver), how.get("failures", 0)
    waits = f".status.allocation.devices.results[]? | select(.driver == {named} and .bindingConditions) | .device"
    reported = f".status.devices[]? | select(.driver == {named}) | .device"
    match = [exists(waits), absent(reported), absent(".metadata.deletionTimestamp")]
    outcomes = (
        ("ready", "bindingConditions", "the device is ready", 1 - failures),
        ("failed", "bindingFailureConditions", "the device could not be made ready", failures),
    )
    found = []
    for outcome, conditions, message, share in outcomes:
        weight = round(1000 * share)
        if not weight:
            continue
        template = _TEMPLATE.format(api=_CLAIM, driver=named, conditions=conditions, message=message)
        rest = {
            "weight": weight,
            "delay": delay("", _ALLOCATED, str(seconds(how.get("after", "0s")))),
            "steps": [{"apply": {"template": template, "subresource": "status"}}],
        }
        found.append(stage(f"device-{outcome}-{driver}", "ResourceClaim", match, rest, group=_CLAIM))
    return found


PROVISIONER = "emulated.kumulus.io"
"""The `provisioner` of a StorageClass of ours, and the CSI driver of its volumes."""
_ASKED = '.metadata.annotations["volume.kubernetes.io/storage-provisioner"]'
_MADE_BY = "pv.kubernetes.io/provisioned-by"
_VOLUME = f"""
apiVersion: v1
kind: PersistentVolume
metadata:
  name: pvc-{{{{ .metadata.uid }}}}
  annotations:
    {_MADE_BY}: {PROVISIONER}
spec:
  accessModes:
{{{{ range .spec.accessModes }}}}
  - {{{{ . | Quote }}}}
{{{{ end }}}}
  capacity:
    storage: {{{{ .spec.resources.requests.storage | Quote }}}}
  claimRef:
    apiVersion: v1
    kind: PersistentVolumeClaim
    namespace: {{{{ .metadata.namespace | Quote }}}}
    name: {{{{ .metadata.name | Quote }}}}
    uid: {{{{ .metadata.uid | Quote }}}}
  csi:
    driver: {PROVISIONER}
    volumeHandle: pvc-{{{{ .metadata.uid }}}}
  persistentVolumeReclaimPolicy: Delete
  storageClassName: {{{{ .spec.storageClassName | Quote }}}}
  volumeMode: {{{{ or .spec.volumeMode "Filesystem" | Quote }}}}
"""


def volume_stages() -> list[dict[str, Any]]:
    """The stages for claims of volumes, for the volumes, and for their attachment to nodes."""
    asked = [is_in(_ASKED, PROVISIONER), absent(".spec.volumeName"), absent(".metadata.deletionTimestamp")]
    ours = is_in(f'.metadata.annotations["{_MADE_BY}"]', PROVISIONER)
    released = [ours, is_in(".status.phase", "Released"), is_in(".spec.persistentVolumeReclaimPolicy", "Delete")]
    attaching = [is_in(".spec.attacher", PROVISIONER), not_in("(.status.attached | tostring)", "true")]
    attached = {"next": {"statusTemplate": "attached: true"}}
    return [
        stage("claim-provision", "PersistentVolumeClaim", asked, {"steps": [{"apply": {"template": _VOLUME}}]}),
        stage("volume-delete", "PersistentVolume", released, {"next": {"delete": True}}),
        stage("volume-attach", "VolumeAttachment", attaching, attached, group="storage.k8s.io/v1"),
    ]
