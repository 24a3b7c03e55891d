"""Stacks that version 0.1.0 made keep their resources: every one is registered as it was, by the same parent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kumulus import EmulatedCluster
from kumulus.stackfile.load import load
from tests.support.program import run
from tests.support.project import ROOT

RECORDED = Path(__file__).with_name("declared_by_0_1_0.txt")


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
# What later versions declare besides.
SINCE = {
    "pulumi:pulumi:Stack::kumulus-dev > kumulus:index:StackIdentity::stack-identity",
    "kumulus:index:EmulatedCluster::dev > kumulus:index:DestroyCheck::dev-destroy-check",
    "kumulus:index:PrometheusStack::dev-observability"
    " > kubernetes:core/v1:ConfigMap::dev-observability-kumulus-cost.json",
    *(
        f"kumulus:index:KwokCharts::dev-kwok > kubernetes:{each}"
        for each in (
            "kwok.x-k8s.io/v1alpha1:Stage::kumulus-pod-delete-dev",
            "kwok.x-k8s.io/v1alpha1:Stage::kumulus-pod-leave-dev",
            "kwok.x-k8s.io/v1alpha1:Stage::kumulus-pod-kill-dev",
            "kwok.x-k8s.io/v1alpha1:Stage::kumulus-pod-stays-dev",
            "kwok.x-k8s.io/v1alpha1:Stage::kumulus-pod-terminate-dev",
        )
    ),
}
# What they call otherwise.
RENAMED = {
    "kumulus:index:ReleasePreparation": "kumulus:index:ReleaseGround",
    "kumulus:index:PodLifecycles": "kumulus:index:PodLives",
}
ENDS = {"preparation": "ground", "lifecycles": "lives"}
KUBECONFIG = "clusters: []\nusers: []\n"


@pytest.mark.parametrize("runtime", ["kwok", "kind", "existing"])
def test_every_resource_is_called_as_it_was(runtime: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    existing = {"existing": {"kubeconfig": str(file)}} if runtime == "existing" else {}
    loaded = load({"cluster": {**EVERYTHING, **existing, "runtime": runtime}}, "dev", ROOT)
    program = run(lambda: EmulatedCluster("dev", loaded=loaded, base=ROOT))
    section = RECORDED.read_text().partition(f"[{runtime}]\n")[2].partition("[")[0]
    declared = sorted(f"{each.parent} > {each.type}::{each.name}" for each in program.resources)
    assert sorted(_formerly(each) for each in declared if each not in SINCE) == section.splitlines()
    for each in program.resources:
        if each.type in RENAMED:
            assert each.formerly == {RENAMED[each.type]}, "or its former one is deleted"


def _formerly(declared: str) -> str:
    """As it was called, by the aliases of what it is or of its parent."""
    for now, before in RENAMED.items():
        declared = declared.replace(now, before)
    return re.sub(r"(?<=-)(preparation|lifecycles)\b", lambda found: ENDS[found[0]], declared)


@pytest.mark.parametrize("runtime", ["kwok", "kind"])
def test_a_destroy_asks_before_it_forgets_anything(runtime: str) -> None:
    loaded = load({"cluster": {**EVERYTHING, "runtime": runtime}}, "dev", ROOT)
    program = run(lambda: EmulatedCluster("dev", loaded=loaded, base=ROOT))
    forgotten = {f"{each.type}::{each.name}" for each in program.resources if each.deleted_with}
    assert len(forgotten) > 15
    needed = {f"{each.type}::{each.name}": each.depends_on for each in program.resources}
    before = set(program.only("kumulus:index:DestroyCheck").depends_on)
    while more := set().union(*(needed[name] for name in before)) - before:
        before |= more
    assert forgotten <= before
