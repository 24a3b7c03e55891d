"""What pods use, on a real control plane: the kubelet's endpoint, DCGM's series, and ``kubectl top``.

metrics-server is no tool of every machine: without it these tests are skipped (./kumulus tools --with metrics-server).
"""

import asyncio
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.kwok.stages import API_VERSION
from kumulus.kwok.usage import NAME, resource_usage
from kumulus.model.fault_effects import XID_ANNOTATION
from kumulus.model.nodes import node_manifest
from kumulus.runtimes.kwok.layout import Layout
from kumulus.stackfile.expand import pools
from kumulus.stackfile.model import ClusterSpec
from tests.integration.conftest import NODES, PODS, Plane, plane_at
from tests.support import processes
from tests.support.processes import occupied
from tests.support.said import Said
from tests.support.tools import require
from tests.support.usage import Series, of_gpus, scraped, top

pytestmark = pytest.mark.integration
USAGES = f"/apis/{API_VERSION}/clusterresourceusages"
GROUP = {
    "name": "a",
    "placement": [{"availabilityZone": "z", "replicas": 2}],
    "nodeTemplate": {
        "metadata": {"labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}},
        "taints": [],
        "capacity": {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"},
    },
}
USAGE = [
    {
        "name": "training",
        "selector": {"labels": {"app": "training"}},
        "cpu": "50%",
        "memory": {"curve": [{"at": "0s", "value": "1Gi"}, {"at": "1h", "value": "1Gi"}]},
        "gpu": {"range": {"from": "70%", "to": "90%"}},
        "gpuMemory": "25%",
    },
    {"name": "rest", "cpu": "250m", "memory": "512Mi"},
]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane made without usage, to which it was added."""
    require("metrics-server")
    home = tmp_path_factory.mktemp("home")
    with plane_at(home) as made:
        runtime, api = made.runtime, made.api
        spec = ClusterSpec.checked({"nodeGroups": [GROUP], "podUsage": USAGE})
        (pool,) = pools(spec, "test")
        for ordinal in range(2):
            api.create(NODES, node_manifest(pool, ordinal, "2026-01-01T00:00:00Z"))
        for name, app, gpus in (("trains", "training", "4"), ("serves", "web", "0")):
            requests = {"cpu": "8", "memory": "64Gi", **({"nvidia.com/gpu": gpus} if gpus != "0" else {})}
            container = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": requests}}
            body = {"metadata": {"name": name, "labels": {"app": app}}, "spec": {"containers": [container]}}
            body["spec"]["nodeName"] = "a-z-0"  # type: ignore[index]
            api.create(PODS, body)
        changed = dataclasses.replace(made.wanted, options={"podUsage": "gpus"})
        with pytest.MonkeyPatch.context() as patch:
            # On a machine where Docker answers, kwokctl must not take the cluster for one of containers.
            docker = tmp_path_factory.mktemp("bin") / "docker"
            docker.write_text("#!/bin/sh\nexit 0\n")
            docker.chmod(0o755)
            patch.setenv("PATH", str(docker.parent), prepend=os.pathsep)
            observed = asyncio.run(runtime.repair(changed, made.identity, Said()))
        body = {"apiVersion": API_VERSION, "kind": "ClusterResourceUsage", "metadata": {"name": NAME}}
        api.create(USAGES, {**body, "spec": resource_usage([each.usage() for each in spec.podUsage])})
        yield Plane(runtime, changed, observed, api)


def settled(plane: Plane, node: str) -> Series:
    """The series, once KWOK knows of the usage."""

    def known(found: Series) -> bool:
        busy = of_gpus(found, "DCGM_FI_DEV_GPU_UTIL").get("0")
        return bool(busy) and len(of_gpus(found, "DCGM_FI_DEV_XID_ERRORS")) == 8

    return scraped(plane.directory, node, known)


def test_gpus_have_dcgms_series(measured: Plane) -> None:
    found = settled(measured, "a-z-0")
    busy = of_gpus(found, "DCGM_FI_DEV_GPU_UTIL")
    assert sorted(busy) == [str(gpu) for gpu in range(8)]
    # Four GPUs are a pod's, the others idle.
    assert all(70 <= busy[str(gpu)] <= 90 for gpu in range(4))
    assert all(busy[str(gpu)] == 0 for gpu in range(4, 8))
    used, free = of_gpus(found, "DCGM_FI_DEV_FB_USED"), of_gpus(found, "DCGM_FI_DEV_FB_FREE")
    assert (used["0"], free["0"], used["7"], free["7"]) == (20480, 61440, 0, 81920)
    temperature = of_gpus(found, "DCGM_FI_DEV_GPU_TEMP")
    assert temperature["7"] == 32 < temperature["0"]
    assert set(of_gpus(found, "DCGM_FI_DEV_XID_ERRORS").values()) == {0}
    labels = next(dict(labels) for name, labels in found if name == "DCGM_FI_DEV_FB_USED")
    assert set(labels) == {"gpu", "UUID", "device", "modelName", "Hostname"}
    assert (labels["modelName"], labels["Hostname"]) == ("NVIDIA-A100-SXM4-80GB", "a-z-0")


def test_an_xid_that_a_fault_notes_on_a_node_is_dcgms_last_one(measured: Plane) -> None:
    def noted(value: str | None) -> None:
        measured.api.merge(f"{NODES}/a-z-1", {"metadata": {"annotations": {XID_ANNOTATION: value}}})

    def told(xid: int) -> None:
        scraped(
            measured.directory, "a-z-1", lambda found: set(of_gpus(found, "DCGM_FI_DEV_XID_ERRORS").values()) == {xid}
        )

    noted("79")
    told(79)
    noted(None)
    told(0)


def test_metrics_server_is_a_component_that_is_brought_back(measured: Plane) -> None:
    before = measured.processes()
    processes.kill(before["metrics-server"])
    found = asyncio.run(measured.read())
    assert found is not None
    assert (found.health, found.components["metrics-server"]) == ("degraded", "stopped")
    assert asyncio.run(measured.repair()).health == "running"
    after = measured.processes()
    assert {name for name in after if before[name] != after[name]} == {"metrics-server"}


def test_what_pods_use_is_served_although_others_have_taken_the_ports(measured: Plane) -> None:
    before, components = Layout(measured.directory).ports(), {"metrics-server", "kwok-controller"}
    processes.kill(pid for name in components for pid in measured.processes()[name])
    with occupied(before["metrics-server"]), occupied(before["kwok-controller"]):
        assert asyncio.run(measured.repair()).health == "running"
        after = Layout(measured.directory).ports()
        assert {name for name in before if before[name] != after[name]} == components
        # The API server reaches the one, which asks the other.
        assert top(Path(measured.observed.kubeconfig), "pods", "trains")["trains"][1] == "1024Mi"


def test_kubectl_top_shows_what_pods_and_nodes_use(measured: Plane) -> None:
    """After the test above, which has waited for metrics-server's readings: earlier, they would be waited for twice."""
    pods = top(Path(measured.observed.kubeconfig), "pods", "trains", "serves")
    cpu, memory = pods["trains"]
    assert (3900 <= int(cpu.removesuffix("m")) <= 4100, memory) == (True, "1024Mi")
    cpu, memory = pods["serves"]
    assert (240 <= int(cpu.removesuffix("m")) <= 260, memory) == (True, "512Mi")
    nodes = top(Path(measured.observed.kubeconfig), "nodes", "a-z-0", "a-z-1")
    # Both pods, and the node's own daemons.
    assert 4150 <= int(nodes["a-z-0"][0].removesuffix("m")) <= 4450
    assert nodes["a-z-0"][2] == "2048Mi"
    assert 40 <= int(nodes["a-z-1"][0].removesuffix("m")) <= 60


def test_without_usage_nothing_of_it_is_left(measured: Plane) -> None:
    """The last test: it takes the usage away."""
    plain = dataclasses.replace(measured.wanted, options={})
    observed = asyncio.run(measured.runtime.repair(plain, measured.identity, Said()))
    assert "metrics-server" not in observed.components
    assert "metrics-server" not in measured.processes()
    assert "metrics-server" not in Layout(measured.directory).ports()
    services = "/apis/apiregistration.k8s.io/v1/apiservices"
    assert not [each for each in measured.api.list(services) if "metrics" in each["metadata"]["name"]]
