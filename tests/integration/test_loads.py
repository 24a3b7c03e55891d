"""Autoscalers of pods, on a real control plane whose pods share a declared load.

metrics-server is no tool of every machine: without it these tests are skipped (./kumulus tools --with metrics-server).
"""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kumulus.kube.objects import is_established
from kumulus.kwok.stages import API_VERSION
from kumulus.kwok.usage import NAME, SHARERS, resource_usage
from kumulus.model.nodes import node_manifest
from kumulus.model.quantity import NANO, parse
from kumulus.stackfile.expand import pools
from kumulus.stackfile.kwok_options import cluster_options
from kumulus.stackfile.model import ClusterSpec
from tests.integration.conftest import NODES, PODS, Plane, plane_at
from tests.support.api import Object
from tests.support.tools import require

pytestmark = pytest.mark.integration
USAGES = f"/apis/{API_VERSION}/clusterresourceusages"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
VERTICAL = "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = {
    "name": "a",
    "placement": [{"availabilityZone": "z", "replicas": 1}],
    "nodeTemplate": {"taints": [], "capacity": {"cpu": "96", "memory": "1Ti", "pods": "110"}},
}


def spec(load: str = "1") -> ClusterSpec:
    web = {"name": "web", "selector": {"labels": {"app": "web"}}, "cpu": {"load": load}, "memory": "100Mi"}
    queue = {"name": "queue", "selector": {"labels": {"app": "queue"}}, "cpu": {"load": "1600m"}, "memory": "300Mi"}
    return ClusterSpec.checked({"nodeGroups": [GROUP], "podUsage": [web, queue]})


def usage(load: str = "1") -> dict[str, Any]:
    return resource_usage([each.usage() for each in spec(load).podUsage])


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with a node, and a load of which nobody has a part yet."""
    require("metrics-server")
    with plane_at(tmp_path_factory.mktemp("home"), **cluster_options(spec())) as made:
        (pool,) = pools(spec(), "test")
        made.api.create(NODES, node_manifest(pool, 0, "2026-01-01T00:00:00Z"))
        body = {"apiVersion": API_VERSION, "kind": "ClusterResourceUsage", "metadata": {"name": NAME}}
        made.api.create(USAGES, {**body, "spec": usage()})
        yield made


def deployment(name: str, replicas: int, cpu: str) -> Object:
    requests = {"cpu": cpu, "memory": "128Mi"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def settled(plane: Plane, replicas: int) -> None:
    """Wait until the autoscaler has so many, and what they use is its target."""

    def there(found: Mapping[str, Object]) -> bool:
        status = found["web"].get("status") or {}
        # Before its first reading, it has a metric of no type.
        read = [each["resource"]["current"] for each in status.get("currentMetrics") or () if "resource" in each]
        used = [each.get("averageUtilization", 0) for each in read]
        # What it takes for the target: k8s.io/kubernetes pkg/controller/podautoscaler, tolerance 0.1.
        counts = (status.get("currentReplicas"), status.get("desiredReplicas"))
        return counts == (replicas, replicas) and 72 <= (used or [0])[0] <= 88

    plane.api.until(AUTOSCALERS, there, timeout=240)


def test_a_horizontal_autoscaler_follows_a_load_up_and_down(loaded: Plane) -> None:
    api = loaded.api
    api.merge(f"{USAGES}/{NAME}", {"spec": usage("1.9")})
    api.create(DEPLOYMENTS, deployment("web", 1, "500m"))
    target = {"type": "Utilization", "averageUtilization": 80}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }
    api.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": spec})
    # 1.9 cores are 95 % of what five pods are to use, 400m each.
    settled(loaded, 5)
    assert {each["metadata"]["annotations"][SHARERS] for each in api.list(PODS, labelSelector="app=web")} == {"5"}
    api.merge(f"{USAGES}/{NAME}", {"spec": usage("750m")})
    settled(loaded, 2)


def definition(kind: str) -> Object:
    """One of the kinds of the vertical autoscaler, without the checks of its fields."""
    group, plural = "autoscaling.k8s.io", f"{kind.lower()}s"
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": anything, "subresources": {"status": {}}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    metadata = {
        "name": f"{plural}.{group}",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797"},
    }
    return {
        "metadata": metadata,
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def allotted(pods: Mapping[str, Object]) -> set[int]:
    """CPU of the two pods' containers as a kubelet has allotted it, in millicores; 0 where it has not yet."""
    statuses = [status for pod in pods.values() for status in pod["status"].get("containerStatuses") or ()]
    if len(statuses) < 2:
        return {0}
    return {parse(each["resources"]["requests"]["cpu"]).nanos * 1000 // NANO for each in statuses}


def test_a_vertical_autoscaler_resizes_pods_in_place_to_their_part_of_a_load(loaded: Plane, tmp_path: Path) -> None:
    """With the autoscaler's own programs, where they are on PATH: k8s.io/autoscaler/vertical-pod-autoscaler."""
    programs = {name: shutil.which(f"vpa-{name}") for name in ("recommender", "updater")}
    if not all(programs.values()):
        pytest.skip("vpa-recommender and vpa-updater are not on PATH")
    api = loaded.api
    for kind in ("VerticalPodAutoscaler", "VerticalPodAutoscalerCheckpoint"):
        api.create(CRDS, definition(kind))
    api.until(CRDS, lambda found: all(is_established(each) for each in found.values()))
    api.create(DEPLOYMENTS, deployment("queue", 2, "100m"))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "queue"}
    spec = {"targetRef": target, "updatePolicy": {"updateMode": "InPlaceOrRecreate"}}
    body = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "queue"}}
    api.create(VERTICAL, {**body, "spec": spec})
    flags = {
        "recommender": ["--recommender-interval=10s", "--storage=checkpoint"],
        "updater": ["--updater-interval=10s", "--use-admission-controller-status=false"],
    }
    with ExitStack() as running:
        for name, more in flags.items():
            command = [
                str(programs[name]),
                f"--kubeconfig={loaded.observed.kubeconfig}",
                "--address=127.0.0.1:0",
                *more,
            ]
            log = running.enter_context((tmp_path / name).open("wb"))
            process = running.enter_context(subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path))
            running.callback(process.kill)
        before = api.until(PODS, lambda found: allotted(found) == {100}, labelSelector="app=queue")
        # Two pods share 1.6 cores; the recommender adds 15 % to 800m, and the width of a bucket of its histogram.
        after = api.until(PODS, lambda found: min(allotted(found)) > 800, timeout=300, labelSelector="app=queue")
    assert all(800 < cpu < 1200 for cpu in allotted(after))
    assert {name: pod["metadata"]["uid"] for name, pod in after.items()} == {
        name: pod["metadata"]["uid"] for name, pod in before.items()
    }
    assert {pod["status"]["containerStatuses"][0]["restartCount"] for pod in after.values()} == {0}
