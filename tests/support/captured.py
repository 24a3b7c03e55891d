"""A realistic company cluster, to be captured: affinities, taints, spread, volumes, priorities, gates."""

from collections.abc import Iterator
from typing import Any

Made = tuple[str, dict[str, Any]]
NAMESPACES = ("shop", "search", "ml", "batch")
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def objects() -> Iterator[Made]:
    """The objects that pods refer to, each with the collection to post it to."""
    for namespace in NAMESPACES:
        labels = {"example.com/tier": namespace[:2], "team": f"team-{namespace}"}
        yield "/api/v1/namespaces", {"metadata": {"name": namespace, "labels": labels}}
    for name, value in (("acme-critical", 1000), ("acme-batch", -10)):
        body: dict[str, Any] = {"metadata": {"name": name}, "value": value, "description": "of ACME's secret project"}
        if value < 0:
            body["preemptionPolicy"] = "Never"
        yield "/apis/scheduling.k8s.io/v1/priorityclasses", body
    yield (
        "/apis/storage.k8s.io/v1/storageclasses",
        {"metadata": {"name": "acme-fast"}, "provisioner": "csi.acme.example", "volumeBindingMode": "Immediate"},
    )
    budget = {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}
    yield "/apis/policy/v1/namespaces/shop/poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": budget}
    yield (
        "/api/v1/namespaces/batch/resourcequotas",
        {"metadata": {"name": "compute"}, "spec": {"hard": {"requests.cpu": "100M", "pods": "100k"}}},
    )


def devices(nodes: int) -> Iterator[Made]:
    """A driver's devices on nodes acme-0, acme-1 …, and a DeviceClass for them."""
    rule = 'device.driver == "gpu.acme.example" && device.attributes["gpu.acme.example"].breed == "acme-large"'
    yield (
        "/apis/resource.k8s.io/v1/deviceclasses",
        {"metadata": {"name": "acme-gpus"}, "spec": {"selectors": [{"cel": {"expression": rule}}]}},
    )
    for index in range(nodes):
        node = f"acme-{index}"
        attributes = {"breed": {"string": "acme-large"}, "driverVersion": {"version": "1.2.3"}, "index": {"int": index}}
        listed = [
            {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}
            for number in (1, 0)
        ]
        spec = {
            "driver": "gpu.acme.example",
            "nodeName": node,
            "pool": {"name": node, "generation": 2, "resourceSliceCount": 1},
            "devices": listed,
        }
        yield "/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": f"{node}-x7k2p"}, "spec": spec}


def volume(index: int, zone: str) -> Iterator[Made]:
    """A volume in a zone and the claim that it is bound to."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "acme-fast",
        "claimRef": {"namespace": "ml", "name": f"data-{index}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "csi": {"driver": "csi.acme.example", "volumeHandle": f"vol-secret-{index}"},
    }
    yield "/api/v1/persistentvolumes", {"metadata": {"name": f"pv-{index}"}, "spec": spec}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "acme-fast",
        "resources": {"requests": {"storage": "10Gi"}},
        "volumeName": f"pv-{index}",
    }
    yield "/api/v1/namespaces/ml/persistentvolumeclaims", {"metadata": {"name": f"data-{index}"}, "spec": claim}


def pods(count: int, zone: str) -> Iterator[dict[str, Any]]:
    """Pods of four kinds, each in its namespace."""
    for index in range(count):
        yield _KINDS[index % len(_KINDS)](index, zone)


def _pod(namespace: str, name: str, labels: dict[str, str], spec: dict[str, Any], cpu: str = "20m") -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.acme.example/secret/app:1.2",
        "args": ["--password=hunter2"],
        "env": [{"name": "TOKEN", "value": "hunter3"}],
        "resources": {"requests": {"cpu": cpu, "memory": "20Mi"}, "limits": {"memory": "40Mi"}},
        **spec.pop("container", {}),
    }
    metadata = {"namespace": namespace, "name": name, "labels": labels, "annotations": {"acme.example/note": "secret"}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def _web(index: int, zone: str) -> dict[str, Any]:
    spread = {
        "maxSkew": 500,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    apart = {
        "weight": 10,
        "podAffinityTerm": {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}},
    }
    return _pod(
        "shop",
        f"web-{index}",
        {"app": "web", "acme.example/cost-centre": f"cc-{index % 7}"},
        {
            "topologySpreadConstraints": [spread],
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}},
            "priorityClassName": "acme-critical",
        },
    )


def _search(index: int, zone: str) -> dict[str, Any]:
    wanted = {"matchExpressions": [{"key": HOST, "operator": "Exists"}, {"key": "nope", "operator": "DoesNotExist"}]}
    near = {
        "topologyKey": ZONE,
        "namespaceSelector": {"matchLabels": {"team": "team-shop"}},
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
    }
    return _pod(
        "search",
        f"search-{index}",
        {"app": "search"},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wanted]},
                },
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": near}],
                },
            },
            "tolerations": [{"key": "acme.example/reserved", "operator": "Exists", "effect": "NoSchedule"}],
        },
    )


def _ml(index: int, zone: str) -> dict[str, Any]:
    if index % 40 == 2:
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{index}"}}
        return _pod("ml", f"train-{index}", {"app": "train"}, {"volumes": [claim], "nodeSelector": {ZONE: zone}})
    return _pod("ml", f"infer-{index}", {"app": "infer"}, {"nodeSelector": {"kubernetes.io/os": "linux"}})


def _batch(index: int, zone: str) -> dict[str, Any]:
    if index % 100 == 3:
        return _pod("batch", f"huge-{index}", {"app": "huge"}, {}, cpu="5k")
    if index % 100 == 7:
        return _pod("batch", f"gated-{index}", {"app": "gated"}, {"schedulingGates": [{"name": "acme.example/wait"}]})
    return _pod("batch", f"job-{index}", {"app": "job"}, {"priorityClassName": "acme-batch"})


_KINDS = (_web, _search, _ml, _batch)


def with_volumes(count: int, zone: str) -> Iterator[Made]:
    """The volumes of the pods that have one."""
    for index in range(count):
        if index % 40 == 2:
            yield from volume(index, zone)
