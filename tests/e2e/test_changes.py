"""Changes of a stack file: what a preview says they mean, and that nothing else is touched."""

from __future__ import annotations

import re

import pytest

from tests.e2e.conftest import Fleet
from tests.support.pods import ALL_PODS, JOBS, PODS, is_ready, is_running, job, pod
from tests.support.project import NODES, POOL

pytestmark = pytest.mark.e2e

GROUP = "a2-ultragpu-8g"
POOL_NAME = f"{GROUP}-use1"
GPU = "nvidia.com/gpu"


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
    assert f"group {GROUP}, zone use1: +3 nodes (5 → 8): +24 {GPU}, +288 cpu" in plain
    assert "~ 1 to update" in plain
    assert project.node_uids() == before, "a preview changes nothing"

    assert "~ 1 updated" in project.up().stdout
    after = project.node_uids()
    assert after.keys() - before.keys() == {f"{POOL_NAME}-{ordinal}" for ordinal in (5, 6, 7)}
    assert before.items() <= after.items()
    new = [node for node in project.api().list(NODES) if node["metadata"]["name"] not in before]
    assert all(map(is_ready, new))
    assert [node["status"]["allocatable"][GPU] for node in new] == ["8"] * 3


def test_shrinking_a_pool_tells_how_many_pods_go_and_takes_them_along(fleet: Fleet) -> None:
    project, api = fleet.project, fleet.project.api()
    place = fleet.group(GROUP)["placement"][0]
    last, first = f"{POOL_NAME}-{place['replicas'] - 1}", f"{POOL_NAME}-0"
    for name, node in (("stays", first), ("goes", last), ("goes-too", f"{POOL_NAME}-{place['replicas'] - 2}")):
        api.create(PODS, pod(name, node))
    api.create(JOBS, job("training", last, 2))
    running = api.until(PODS, lambda pods: len(pods) == 5 and all(map(is_running, pods.values())))
    before = project.node_uids()
    replicas = place["replicas"]
    place["replicas"] -= 3
    fleet.write()

    plain = project.preview().stdout
    assert f"zone use1: \N{MINUS SIGN}3 nodes ({replicas} → {replicas - 3}): \N{MINUS SIGN}24 {GPU}" in plain
    assert "; 4 running pods would go" in plain
    assert project.node_uids() == before

    project.up()
    gone = {f"{POOL_NAME}-{ordinal}" for ordinal in range(replicas - 3, replicas)}
    assert project.node_uids() == {name: uid for name, uid in before.items() if name not in gone}
    left = {each["metadata"]["name"]: each for each in api.list(ALL_PODS)}
    assert not [name for name, each in left.items() if each["spec"].get("nodeName") in gone]
    assert left["stays"]["metadata"]["uid"] == running["stays"]["metadata"]["uid"]
    assert is_running(left["stays"])


def test_a_changed_template_is_applied_in_place(fleet: Fleet) -> None:
    project = fleet.project
    before = project.node_uids()
    template = fleet.group("a3-highgpu-8g")["nodeTemplate"]
    template["metadata"]["labels"]["example.com/team"] = "vision"
    template["taints"] = [{"key": "example.com/reserved", "value": "night", "effect": "PreferNoSchedule"}]
    template["capacity"] |= {GPU: "4", "example.com/fabric": "2"}
    fleet.write()

    preview = project.foresee()
    pools = {f"a3-highgpu-8g-{zone}" for zone in ("use1", "use2", "use3")}
    assert {step.name for step in preview.steps} == pools
    changed = {'labels["example.com/team"]', "taints"}
    changed |= {f'{what}["{name}"]' for what in ("capacity", "allocatable") for name in (GPU, "example.com/fabric")}
    assert {(step.op, frozenset(step.changed)) for step in preview.steps} == {("update", frozenset(changed))}
    assert preview.messages["a3-highgpu-8g-use1"] == (
        f"group a3-highgpu-8g, zone use1: 3 nodes changed: +6 example.com/fabric, \N{MINUS SIGN}12 {GPU}, "
        "labels example.com/team, taints"
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


def test_what_is_taken_out_of_a_template_goes_from_the_nodes(fleet: Fleet) -> None:
    project = fleet.project
    before = project.node_uids()
    template = fleet.group("a3-ultragpu-8g")["nodeTemplate"]
    template["metadata"]["labels"]["example.com/team"] = "vision"
    fleet.write()
    project.up()
    del template["metadata"]["labels"]["example.com/team"]
    template["taints"] = []
    fleet.write()
    project.up()
    assert project.node_uids() == before
    nodes = project.api().list(NODES, labelSelector="kumulus.io/group=a3-ultragpu-8g")
    assert len(nodes) == 5
    assert not [node for node in nodes if "example.com/team" in node["metadata"]["labels"]]
    assert not [node for node in nodes if node["spec"].get("taints")]
