"""Which kinds are read, by which requests; and the ClusterRole with exactly the rights for them."""

import re
from dataclasses import dataclass

ROLE = "kumulus-capture"
_VERSION = re.compile(r"v[0-9]{1,2}(?:(?:alpha|beta)[0-9]{1,2})?")


@dataclass(frozen=True)
class Kind:
    """A kind that is read."""

    name: str
    """As in `kind`."""
    plural: str
    """As in the path."""
    group: str = ""
    """The API group; empty for the core."""
    versions: tuple[str, ...] = ("v1",)
    """The versions to try; the first one that is served is used."""
    pages: str = ""
    """As which its pages are kept, if another group has a kind of that name; empty for its name."""

    @property
    def kept_as(self) -> str:
        """As which its pages are kept."""
        return self.pages or self.name

    def path(self, version: str) -> str:
        """The collection's path, of all namespaces."""
        return f"/apis/{self.group}/{version}/{self.plural}" if self.group else f"/api/{version}/{self.plural}"

    def api_version(self, version: str) -> str:
        """As in `apiVersion`."""
        return f"{self.group}/{version}" if self.group else version

    def is_in(self, api_version: str) -> bool:
        """Whether objects of this kind can have an `apiVersion` of a file; a list's items may lack the group."""
        group, _, version = api_version.rpartition("/")
        return group in ("", self.group) and _VERSION.fullmatch(version) is not None


SCHEDULING = "scheduling.k8s.io"
KUEUE, _KUEUE_VERSIONS = "kueue.x-k8s.io", ("v1beta2", "v1beta1")
VOLCANO = "scheduling.volcano.sh"
_DEVICES, _DEVICES_VERSIONS = "resource.k8s.io", ("v1", "v1beta2", "v1beta1")

NODES, PODS = Kind("Node", "nodes"), Kind("Pod", "pods")
KINDS = (
    NODES,
    Kind("Namespace", "namespaces"),
    Kind("PriorityClass", "priorityclasses", SCHEDULING),
    Kind("RuntimeClass", "runtimeclasses", "node.k8s.io"),
    Kind("StorageClass", "storageclasses", "storage.k8s.io"),
    Kind("CSIDriver", "csidrivers", "storage.k8s.io"),
    Kind("CSINode", "csinodes", "storage.k8s.io"),
    Kind("CSIStorageCapacity", "csistoragecapacities", "storage.k8s.io"),
    Kind("PersistentVolume", "persistentvolumes"),
    Kind("PersistentVolumeClaim", "persistentvolumeclaims"),
    Kind("DeviceClass", "deviceclasses", _DEVICES, _DEVICES_VERSIONS),
    Kind("ResourceSlice", "resourceslices", _DEVICES, _DEVICES_VERSIONS),
    Kind("ResourceClaimTemplate", "resourceclaimtemplates", _DEVICES, _DEVICES_VERSIONS),
    Kind("ResourceClaim", "resourceclaims", _DEVICES, _DEVICES_VERSIONS),
    Kind("ResourceFlavor", "resourceflavors", KUEUE, _KUEUE_VERSIONS),
    Kind("ClusterQueue", "clusterqueues", KUEUE, _KUEUE_VERSIONS),
    Kind("Cohort", "cohorts", KUEUE, _KUEUE_VERSIONS),
    Kind("LocalQueue", "localqueues", KUEUE, _KUEUE_VERSIONS),
    Kind("WorkloadPriorityClass", "workloadpriorityclasses", KUEUE, _KUEUE_VERSIONS),
    Kind("Topology", "topologies", KUEUE, _KUEUE_VERSIONS),
    Kind("Queue", "queues", VOLCANO, ("v1beta1",)),
    Kind("PodGroup", "podgroups", VOLCANO, ("v1beta1",)),
    Kind("Workload", "workloads", SCHEDULING, ("v1beta1",)),
    Kind("CompositePodGroup", "compositepodgroups", SCHEDULING, ("v1alpha3",)),
    Kind("PodGroup", "podgroups", SCHEDULING, ("v1beta1",), pages=f"PodGroup.{SCHEDULING}"),
    Kind("PodDisruptionBudget", "poddisruptionbudgets", "policy"),
    Kind("LimitRange", "limitranges"),
    Kind("ResourceQuota", "resourcequotas"),
    # The longest list last: if it is interrupted, the others are complete.
    PODS,
)


def kind_of(name: str, api_version: str) -> Kind | None:
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
