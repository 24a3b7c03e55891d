"""Drift: what others did to the nodes is named, and put right, and nothing else is touched."""

import pytest

from tests.e2e.conftest import Fleet
from tests.support.api import MERGE_PATCH
from tests.support.project import NODES, POOL

pytestmark = pytest.mark.e2e

POOL_NAME = "a2-ultragpu-8g-us-central1-b"
GPU = "nvidia.com/gpu"
INTRUDER = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "intruder",
        "labels": {"kumulus.io/pool": POOL_NAME, "kumulus.io/group": "a2-ultragpu-8g", "type": "kwok"},
    },
}


def test_drift_is_named_and_put_right_and_nothing_else_is_touched(fleet: Fleet) -> None:
    project, api = fleet.project, fleet.project.api()
    before = project.node_uids()
    missing, labelled, tainted, smaller = (f"{POOL_NAME}-{n}" for n in (1, 2, 3, 4))
    also_missing, theirs = f"{POOL_NAME}-0", "a2-ultragpu-8g-us-central1-c-0"
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
    assert (step.op, step.type, step.name) == ("update", POOL, POOL_NAME)
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
    assert f"drift to repair: missing 2: {also_missing}, {missing}; extra 1: intruder" in preview.messages[POOL_NAME]
    assert before.items() & project.node_uids().items() == before.items() - {
        (name, before[name]) for name in (missing, also_missing)
    }, "a preview changes nothing"

    assert "~ 1 updated" in project.up("--refresh").stdout
    after = project.node_uids()
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {missing, also_missing}
    nodes = {node["metadata"]["name"]: node for node in api.list(NODES)}
    for name in project.node_uids(labelSelector=f"kumulus.io/pool={POOL_NAME}"):
        node = nodes[name]
        assert node["metadata"]["labels"]["datastrophic.io/gpu-type"] == "nvidia-a100-80gb"
        assert {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"} in node["spec"]["taints"]
        assert (node["status"]["capacity"][GPU], node["status"]["allocatable"][GPU]) == ("8", "8")
    for name in (labelled, theirs):
        assert nodes[name]["metadata"]["labels"]["others.example.com/note"] == "kept"
        assert nodes[name]["metadata"]["annotations"]["others.example.com/note"] == "kept"
        assert nodes[name]["spec"]["unschedulable"] is True
    project.preview("--refresh", "--expect-no-changes")
