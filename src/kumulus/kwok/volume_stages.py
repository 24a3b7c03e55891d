"""Volumes where a StorageClass of ours is named, as stages of KWOK: made, attached, deleted; nothing is stored in them.

Kubernetes' own controllers do the rest: kube-scheduler chooses a node, the controller manager asks for a volume by an
annotation of the claim, binds it, and attaches it to nodes that say that it may. Sources: pkg/controller/volume of
k8s.io/kubernetes (persistentvolume, attachdetach), and kubernetes-csi.github.io/docs/external-provisioner.html.
"""

from typing import Any

from kumulus.kwok.stages import absent, is_in, not_in, stage

PROVISIONER = "emulated.kumulus.io"
"""The `provisioner` of such a StorageClass, and the CSI driver of its volumes."""
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
    """Return the stages as KWOK ``Stage`` documents."""
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
