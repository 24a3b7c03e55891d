"""Which kinds are read, by which requests; and the ClusterRole with exactly the rights for them."""

from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.kinds import ObjectKind
from kumulus.extras.schedulers.native.objects import GROUP as SCHEDULING

ROLE = "kumulus-capture"
_DEVICES, _DEVICES_VERSIONS = "resource.k8s.io", ("v1", "v1beta2", "v1beta1")

OF_SCHEDULERS = tuple(kind for kind in registry.object_kinds() if kind.fields is not None)
"""Those of schedulers that are captured."""
NODES, PODS = ObjectKind("Node", "nodes"), ObjectKind("Pod", "pods")
KINDS = (
    NODES,
    ObjectKind("Namespace", "namespaces"),
    ObjectKind("PriorityClass", "priorityclasses", SCHEDULING),
    ObjectKind("RuntimeClass", "runtimeclasses", "node.k8s.io"),
    ObjectKind("StorageClass", "storageclasses", "storage.k8s.io"),
    ObjectKind("CSIDriver", "csidrivers", "storage.k8s.io"),
    ObjectKind("CSINode", "csinodes", "storage.k8s.io"),
    ObjectKind("CSIStorageCapacity", "csistoragecapacities", "storage.k8s.io"),
    ObjectKind("PersistentVolume", "persistentvolumes"),
    ObjectKind("PersistentVolumeClaim", "persistentvolumeclaims"),
    ObjectKind("DeviceClass", "deviceclasses", _DEVICES, _DEVICES_VERSIONS),
    ObjectKind("ResourceSlice", "resourceslices", _DEVICES, _DEVICES_VERSIONS),
    ObjectKind("ResourceClaimTemplate", "resourceclaimtemplates", _DEVICES, _DEVICES_VERSIONS),
    ObjectKind("ResourceClaim", "resourceclaims", _DEVICES, _DEVICES_VERSIONS),
    *OF_SCHEDULERS,
    ObjectKind("PodDisruptionBudget", "poddisruptionbudgets", "policy"),
    ObjectKind("LimitRange", "limitranges"),
    ObjectKind("ResourceQuota", "resourcequotas"),
    # The longest list last: if it is interrupted, the others are complete.
    PODS,
)


def kind_of(name: str, api_version: str) -> ObjectKind | None:
    """The kind of an object by its `kind` and `apiVersion`; None if it is not read."""
    return next((kind for kind in KINDS if kind.name == name and kind.is_in(api_version)), None)


def kept_as(name: str) -> list[str]:
    """As which the pages of all kinds of a name are kept."""
    return [kind.kept_as for kind in KINDS if kind.name == name]


def cluster_role() -> str:
    """The ClusterRole as a manifest: list, and nothing else, of the kinds that are read."""
    groups: dict[str, list[str]] = {}
    for kind in KINDS:
        groups.setdefault(kind.group, []).append(kind.plural)
    rules = "".join(
        f'  - apiGroups: ["{group}"]\n    resources: [{", ".join(plurals)}]\n    verbs: [list]\n'
        for group, plurals in groups.items()
    )
    return f"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {ROLE}\nrules:\n{rules}"
