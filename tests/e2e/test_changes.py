"""Changes of a stack file, and of nodes by others: what a preview says, and that nothing else is touched."""

import re

import pytest
import yaml

from tests.e2e.conftest import Fleet
from tests.support.api import MERGE_PATCH
from tests.support.pods import is_ready
from tests.support.project import NODES, POOL, Project

pytestmark = pytest.mark.e2e

GROUP = "a2-ultragpu-8g"
ZONES = ("us-central1-a", "us-central1-b", "us-central1-c")
POOL_NAME = f"{GROUP}-{ZONES[0]}"
DRIFTING = f"{GROUP}-{ZONES[1]}"
GPU = "nvidia.com/gpu"
INTRUDER = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "intruder",
        "labels": {"kumulus.io/pool": DRIFTING, "kumulus.io/group": GROUP, "type": "kwok"},
    },
}


def test_growing_a_pool_previews_it_alone_and_creates_only_the_missing_nodes(fleet: Fleet) -> None:
    project = fleet.project
    before = project.node_uids()
    fleet.group(GROUP)["placement"][0]["replicas"] = 8
    fleet.write()

    [step] = project.foresee().steps
    assert (step.op, step.type, step.name) == ("update", POOL, POOL_NAME)
    assert step.changed == {"replicas": "update"}
    assert (step.old["replicas"], step.new["replicas"]) == (5, 8)
    plain = project.preview("--diff").text
    assert set(re.findall(r"::kumulus:index:\S+::(\S+)]", plain)) == {POOL_NAME}
    assert "~ replicas: 5 => 8\n" in plain
    assert f"group {GROUP}, zone {ZONES[0]}: +3 nodes (5 → 8): +24 {GPU} (NVIDIA-A100-SXM4-80GB), +288 cpu" in plain
    assert ", +$121.65/h\n" in plain
    assert "~ 1 to update" in plain
    assert project.node_uids() == before, "a preview changes nothing"

    assert "~ 1 updated" in project.up().stdout
    after = project.node_uids()
    assert after.keys() - before.keys() == {f"{POOL_NAME}-{ordinal}" for ordinal in (5, 6, 7)}
    assert before.items() <= after.items()
    new = [node for node in project.api().list(NODES) if node["metadata"]["name"] not in before]
    assert all(map(is_ready, new))
    assert [node["status"]["allocatable"][GPU] for node in new] == ["8"] * 3


def test_a_changed_template_is_applied_in_place(fleet: Fleet) -> None:
    project = fleet.project
    before = project.node_uids()
    template = fleet.group("a3-highgpu-8g")["nodeTemplate"]
    template["metadata"]["labels"]["example.com/team"] = "vision"
    template["taints"] = [{"key": "example.com/reserved", "value": "night", "effect": "PreferNoSchedule"}]
    template["capacity"] = {GPU: "4", "example.com/fabric": "2"}
    fleet.write()

    preview = project.foresee()
    pools = {f"a3-highgpu-8g-{zone}" for zone in ZONES}
    assert {step.name for step in preview.steps} == pools
    changed = {'labels["example.com/team"]', "taints", "gpu.count"}
    changed |= {f'{what}["{name}"]' for what in ("capacity", "allocatable") for name in (GPU, "example.com/fabric")}
    assert {(step.op, frozenset(step.changed)) for step in preview.steps} == {("update", frozenset(changed))}
    assert preview.messages[f"a3-highgpu-8g-{ZONES[0]}"] == (
        f"group a3-highgpu-8g, zone {ZONES[0]}: 3 nodes changed: +6 example.com/fabric, \N{MINUS SIGN}12 {GPU} "
        "(NVIDIA-H100-80GB-HBM3), labels example.com/team, nvidia.com/gpu.count, taints"
    )

    assert "~ 3 updated" in project.up().stdout
    assert project.node_uids() == before
    for node in project.api().list(NODES):
        ours = node["metadata"]["labels"]["kumulus.io/pool"] in pools
        assert ("example.com/team" in node["metadata"]["labels"]) == ours
        assert (node["spec"]["taints"] == template["taints"]) == ours
        assert (node["status"]["capacity"][GPU] == node["status"]["allocatable"][GPU] == "4") == ours
        assert (node["status"]["allocatable"].get("example.com/fabric") == "2") == ours
    project.preview("--expect-no-changes")


def test_drift_is_named_and_put_right_and_nothing_else_is_touched(fleet: Fleet) -> None:
    project, api = fleet.project, fleet.project.api()
    before = project.node_uids()
    missing, labelled, tainted, smaller = (f"{DRIFTING}-{n}" for n in (1, 2, 3, 4))
    also_missing, theirs = f"{DRIFTING}-0", f"{GROUP}-{ZONES[2]}-0"
    for name in (missing, also_missing):
        api.delete(f"{NODES}/{name}")
    api.merge(f"{NODES}/{labelled}", {"metadata": {"labels": {"datastrophic.io/gpu-type": "other"}}})
    api.merge(f"{NODES}/{tainted}", {"spec": {"taints": None}})
    api.request("PATCH", f"{NODES}/{smaller}/status", {"status": {"capacity": {GPU: "3"}}}, MERGE_PATCH)
    api.create(NODES, INTRUDER)
    # What belongs to others, on a node that drifted and on one that did not.
    for name in (labelled, theirs):
        note = {"labels": {"others.example.com/note": "kept"}, "annotations": {"others.example.com/note": "kept"}}
        api.merge(f"{NODES}/{name}", {"metadata": note, "spec": {"unschedulable": True}})

    preview = project.foresee("--refresh")
    [step] = preview.steps
    assert (step.op, step.type, step.name) == ("update", POOL, DRIFTING)
    assert step.found["replicas"] == 3
    assert step.found["drift"] == {
        "missing": f"2: {also_missing}, {missing}",
        "extra": "1: intruder",
        "altered": {
            labelled: 'labels["datastrophic.io/gpu-type"]: "other" instead of "nvidia-a100-80gb"',
            tainted: 'taints["kwok.x-k8s.io/node:NoSchedule"]: missing instead of "fake"',
            smaller: f'capacity["{GPU}"]: "3" instead of "8"',
        },
    }
    assert f"drift to repair: missing 2: {also_missing}, {missing}; extra 1: intruder" in preview.messages[DRIFTING]
    assert before.items() & project.node_uids().items() == before.items() - {
        (name, before[name]) for name in (missing, also_missing)
    }, "a preview changes nothing"

    assert "~ 1 updated" in project.up("--refresh").stdout
    after = project.node_uids()
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {missing, also_missing}
    nodes = {node["metadata"]["name"]: node for node in api.list(NODES)}
    for name in project.node_uids(labelSelector=f"kumulus.io/pool={DRIFTING}"):
        node = nodes[name]
        assert node["metadata"]["labels"]["datastrophic.io/gpu-type"] == "nvidia-a100-80gb"
        assert {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"} in node["spec"]["taints"]
        assert (node["status"]["capacity"][GPU], node["status"]["allocatable"][GPU]) == ("8", "8")
    for name in (labelled, theirs):
        assert nodes[name]["metadata"]["labels"]["others.example.com/note"] == "kept"
        assert nodes[name]["metadata"]["annotations"]["others.example.com/note"] == "kept"
        assert nodes[name]["spec"]["unschedulable"] is True
    project.preview("--refresh", "--expect-no-changes")


def test_a_preview_counts_with_the_prices_of_a_file_of_ones_own(project: Project) -> None:
    own = {"regions": {"us-central1": {"onDemand": {"e2-standard-4": 0.25}}}}
    (project.directory / "prices.yaml").write_text(yaml.safe_dump(own))
    placement = [{"availabilityZone": "us-central1-a", "replicas": 2}]
    group = {"name": "g", "instanceType": "e2-standard-4", "placement": placement}
    project.write_stack({"nodeGroups": [group]}, stack="dev", prices="prices.yaml")
    said = project.preview().text
    assert "+$0.50/h" in said, said
