"""What a scheduler reads of a cluster's objects, as the API server has them, and how two clusters differ in it.

The list of fields is written by hand from kube-scheduler's plugins and Kueue's controller, not taken from
`kumulus.extras.capture`, so that a field that a capture omits is noticed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kumulus.kube import ApiError, Client

_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_SPECS = {
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "ResourceQuota": "/api/v1/resourcequotas",
    "LimitRange": "/api/v1/limitranges",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "ResourceFlavor": f"{_KUEUE}/resourceflavors",
    "ClusterQueue": f"{_KUEUE}/clusterqueues",
    "Cohort": f"{_KUEUE}/cohorts",
    "LocalQueue": f"{_KUEUE}/localqueues",
}
_PLAIN = {
    "PriorityClass": ("/apis/scheduling.k8s.io/v1/priorityclasses", ("value", "globalDefault", "preemptionPolicy")),
    "WorkloadPriorityClass": (f"{_KUEUE}/workloadpriorityclasses", ("value",)),
    "StorageClass": (
        "/apis/storage.k8s.io/v1/storageclasses",
        ("provisioner", "volumeBindingMode", "allowedTopologies"),
    ),
}
_POD = [
    "nodeName", "schedulerName", "priority", "priorityClassName", "preemptionPolicy", "nodeSelector", "affinity",
    "tolerations", "topologySpreadConstraints", "schedulingGates", "overhead", "runtimeClassName", "hostNetwork",
    "resources", "resourceClaims",
]  # fmt: skip
_CONTAINER = ("name", "resources", "restartPolicy")
_OURS = ("kumulus.io/", "topology.kumulus.io/")
# Fields about the disk behind a volume, which a clone does not have; no scheduler reads them.
_BEHIND = ("csi", "hostPath")


async def digest(client: Client) -> dict[str, Any]:
    """Everything that a scheduler reads, by `KIND namespace/name`."""
    found: dict[str, Any] = {}
    async for node in _each(client, "/api/v1/nodes"):
        found[_key("Node", node)] = _node(node)
    async for pod in _each(client, "/api/v1/pods"):
        found[_key("Pod", pod)] = _pod(pod)
    async for namespace in _each(client, "/api/v1/namespaces"):
        found[_key("Namespace", namespace)] = namespace["metadata"].get("labels")
    for kind, path in _SPECS.items():
        async for each in _each(client, path):
            found[_key(kind, each)] = _spec(kind, each)
    for kind, (path, fields) in _PLAIN.items():
        async for each in _each(client, path):
            found[_key(kind, each)] = {field: each.get(field) for field in fields}
    return found


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The differences, one line for each object."""
    lines = []
    for key in sorted({*one, *other}):
        if one.get(key) != other.get(key):
            lines.append(f"{key}: {one.get(key, 'is not there')} but {other.get(key, 'is not there')}")
    return lines


async def _each(client: Client, path: str) -> Any:
    try:
        async for page in client.pages(path):
            for each in page:
                yield each
    except ApiError as error:
        if error.status != 404:
            raise


def _key(kind: str, found: Mapping[str, Any]) -> str:
    metadata = found["metadata"]
    return f"{kind} {metadata.get('namespace', '')}/{metadata['name']}"


def _node(node: Mapping[str, Any]) -> dict[str, Any]:
    labels = {
        key: value for key, value in (node["metadata"].get("labels") or {}).items() if not key.startswith(_OURS[0])
    }
    status, spec = node["status"], node["spec"]
    taints = sorted((each["key"], each.get("value", ""), each["effect"]) for each in spec.get("taints") or ())
    ready = [each["status"] for each in status.get("conditions") or () if each["type"] == "Ready"]
    return {
        "labels": labels,
        "taints": taints,
        "unschedulable": spec.get("unschedulable", False),
        "capacity": status.get("capacity"),
        "allocatable": status.get("allocatable"),
        "ready": ready,
    }


def _pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec = pod["spec"]
    return {
        "labels": pod["metadata"].get("labels"),
        **{field: spec.get(field) for field in _POD},
        "containers": [
            {**{field: each.get(field) for field in _CONTAINER}, "ports": list(_host_ports(each))}
            for part in ("initContainers", "containers")
            for each in spec.get(part) or ()
        ],
        "claims": [
            each["persistentVolumeClaim"]["claimName"]
            for each in spec.get("volumes") or ()
            if "persistentVolumeClaim" in each
        ],
        "ended": pod["status"].get("phase") in ("Succeeded", "Failed"),
    }


def _host_ports(container: Mapping[str, Any]) -> Iterator[tuple[int, str, str]]:
    for port in container.get("ports") or ():
        if port.get("hostPort"):
            yield port["hostPort"], port.get("protocol", "TCP"), port.get("hostIP", "")


def _spec(kind: str, found: Mapping[str, Any]) -> Any:
    spec = {key: value for key, value in (found.get("spec") or {}).items() if key not in _BEHIND}
    if kind == "PersistentVolume":
        claim = spec.get("claimRef") or {}
        spec["claimRef"] = {"namespace": claim.get("namespace"), "name": claim.get("name")}
        return {"spec": spec, "labels": found["metadata"].get("labels"), "csi": _driver(found["spec"])}
    return spec


def _driver(spec: Mapping[str, Any]) -> str:
    return str((spec.get("csi") or {}).get("driver") or "")
