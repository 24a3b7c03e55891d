"""Stacks that a release made keep their resources: every one is registered as it was, by the same parent."""

from pathlib import Path
from typing import Any

import pytest

from kumulus import EmulatedCluster
from kumulus.stackfile.load import load
from tests.support.program import Program, run
from tests.support.project import ROOT

RECORDED = Path(__file__).with_name("declared.txt")


def group(name: str, **more: Any) -> dict[str, Any]:
    places = [
        {"availabilityZone": "use1-a", "replicas": 4},
        {"availabilityZone": "b", "replicas": 2, "region": "r"},
    ]
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}
    return {"name": name, "placement": places, "nodeTemplate": {"capacity": capacity}, **more}


TOPOLOGY = {"preset": "volcano", "nodesPerRack": 2}
EVERYTHING: dict[str, Any] = {
    "nodeGroups": [
        group("a", topology=TOPOLOGY, gpuProduct="NVIDIA-L40S", resourceSlices={}),
        {**group("b", gpuOperator={}, instanceType="p5.48xlarge"), "nodeTemplate": {}},
    ],
    "clusterAddons": [
        {"name": "queue", "chart": "queue", "repoURL": "https://charts.example.com", "version": "1.2.3"},
        {"name": "second", "chart": "oci://r.example/x", "dependsOn": ["queue"], "crds": "Create"},
        {"name": "third", "chart": "./tests/support/hello-chart", "crds": "Skip"},
    ],
    "faults": [
        {"name": "xid", "kind": "gpu-fell-off-bus", "target": {"nodeGroup": "a", "count": 2}},
        {"name": "fail", "kind": "container-fails", "pods": {"labels": {"app": "x"}}},
    ],
    "tenants": [
        {
            "name": "research",
            "namespace": "research-prod",
            "quota": {"pods": 50},
            "rules": [{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get"]}],
        },
        {"name": "t2"},
    ],
    "podLifecycles": [{"name": "training", "selector": {"labels": {"app": "training"}}, "run": "10m"}],
    "podUsage": [{"name": "training", "selector": {"labels": {"app": "training"}}, "cpu": "80%"}],
    "observability": {},
    "hostCommands": [
        {"name": "build", "create": "true"},
        {"name": "mid", "create": "true", "when": "beforeNodes"},
        {"name": "end", "create": "true", "when": "last"},
    ],
}


@pytest.fixture(params=["kwok", "kind", "existing"])
def runtime(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def program(runtime: str, tmp_path: Path) -> Program:
    file = tmp_path / "kubeconfig"
    file.write_text("clusters: []\nusers: []\n")
    existing = {"existing": {"kubeconfig": str(file)}} if runtime == "existing" else {}
    loaded = load({"cluster": {**EVERYTHING, **existing, "runtime": runtime}}, "dev", ROOT)
    return run(lambda: EmulatedCluster("dev", loaded=loaded, base=ROOT))


def test_every_resource_is_called_as_it_was(runtime: str, program: Program) -> None:
    section = RECORDED.read_text().partition(f"[{runtime}]\n")[2].partition("[")[0]
    declared = sorted(f"{each.parent} > {each.type}::{each.name}" for each in program.resources)
    assert declared == section.splitlines()


def test_a_destroy_asks_before_it_deletes_or_forgets_anything(runtime: str, program: Program) -> None:
    pools = {f"{each.type}::{each.name}" for each in program.resources if each.type == "kumulus:index:NodePool"}
    forgotten = pools | {f"{each.type}::{each.name}" for each in program.resources if each.deleted_with}
    assert len(forgotten) > (15 if runtime != "existing" else 0)
    needed = {f"{each.type}::{each.name}": each.depends_on for each in program.resources}
    before = set(program.only("kumulus:index:DestroyCheck").depends_on)
    while more := set().union(*(needed[name] for name in before)) - before:
        before |= more
    assert forgotten <= before
