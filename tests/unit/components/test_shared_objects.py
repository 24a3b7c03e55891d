"""A cluster is told the objects that the Kubernetes provider creates in it under names that other stacks can use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kumulus import EmulatedCluster
from kumulus.model.contents import objects_of
from kumulus.stackfile.load import load
from tests.support.program import CLUSTER, Registered, run
from tests.support.project import ROOT

TEMPLATE = {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}}
GROUP: dict[str, Any] = {
    "name": "a100",
    "placement": [{"availabilityZone": "z", "replicas": 2}],
    "nodeTemplate": TEMPLATE,
    "gpuProduct": "NVIDIA-A100-SXM4-80GB",
    "resourceSlices": {},
}
SELECTED = {"name": "training", "selector": {"labels": {"app": "training"}}}
LIFECYCLE = {**SELECTED, "run": "10m"}
USAGE = {**SELECTED, "cpu": "80%"}
PLURALS = {
    "DeviceClass": "deviceclasses",
    "Stage": "stages",
    "ClusterResourceUsage": "clusterresourceusages",
}


def path_of(resource: Registered) -> str:
    """Where the API server has an object without a namespace."""
    kind = resource.inputs["kind"]
    return f"/apis/{resource.inputs['apiVersion']}/{PLURALS[kind]}/{resource.inputs['metadata']['name']}"


@pytest.mark.parametrize("runtime", ["existing", "kwok", "kind"])
def test_the_paths_are_those_of_what_is_declared_and_given_only_where_others_can_be(
    runtime: str, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("clusters: []\nusers: []\n")
    where = {"existing": {"kubeconfig": str(file)}} if runtime == "existing" else {}
    cluster = {"runtime": runtime, **where, "nodeGroups": [GROUP], "podLifecycles": [LIFECYCLE], "podUsage": [USAGE]}
    program = run(lambda: EmulatedCluster("dev", loaded=load({"cluster": cluster}, "dev", ROOT), base=ROOT))
    # KWOK's own stages are not shared: their names end in the stack's.
    objects = [path_of(each) for each in program.resources if each.inputs.get("kind") in PLURALS]
    declared = {path for path in objects if not path.endswith("-dev")}
    assert {path.split("/")[-2] for path in declared} == set(PLURALS.values())
    paths = objects_of(program.only(CLUSTER).inputs["contents"])
    assert paths == (declared if runtime == "existing" else None)
