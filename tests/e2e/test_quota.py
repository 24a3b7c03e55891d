"""etcd's storage quota really reached: the error names it and the remedy, and the remedy works.

The tests fill one cluster, one after the other.
"""

from typing import Any

import pytest

from tests.support.project import CLUSTER, NODES, Project

pytestmark = pytest.mark.e2e
POOL = "heavy-z"
# More than fit into the quota, by more than etcd takes until it has seen that it is reached: 400 on a busy machine.
COUNT = 800
FEW = 20
MAPS = "/api/v1/namespaces/default/configmaps"


def heavy(quota: str, nodes: int) -> dict[str, Any]:
    """A fleet whose nodes fill an etcd quickly: each has 100 kB of an annotation."""
    metadata = {"annotations": {"example.com/ballast": "x" * 100_000}}
    template = {"metadata": metadata, "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}}
    group = {"name": "heavy", "placement": [{"availabilityZone": "z", "replicas": nodes}], "nodeTemplate": template}
    return {"nodeGroups": [group], "kwok": {"etcdQuota": quota}}


def fill(project: Project) -> set[str]:
    """Bring up more than fits; returns the nodes that there are."""
    before = len(project.node_uids()) if project.processes() else 0
    project.write_stack(heavy("16Mi", COUNT))
    failed = project.pulumi("up", "--yes", "--skip-preview")
    assert failed.code != 0
    assert "Traceback" not in failed.text
    assert "etcd's storage quota is reached" in failed.text
    assert "raise kwok.etcdQuota in the stack file" in failed.text
    there = project.api().metadata(NODES)
    assert before < len(there) < COUNT
    [recorded] = [r["outputs"] for r in project.state()["resources"] if r["type"].endswith(":NodePool")]
    assert recorded["replicas"] == len(there), "what was done is recorded"
    assert f"nodes: {len(there) - before} created; {COUNT - len(there)} left to do" in failed.text
    return {str(node["name"]) for node in there}


def takes_writes(project: Project) -> bool:
    """Whether etcd takes more than deletions, and more than a little."""
    made = project.api().create(MAPS, {"metadata": {"generateName": "room-"}, "data": {"x": "y" * 500_000}})
    return bool(made["metadata"]["uid"])


def test_a_full_etcd_is_named_with_its_remedy_and_helped_by_a_smaller_fleet(module_project: Project) -> None:
    project = module_project
    there = fill(project)
    assert len(there) > FEW
    before = project.node_uids()
    project.write_stack(heavy("16Mi", FEW))
    brought_up = project.up()
    assert "compacted and defragmented" in brought_up.text
    after = project.node_uids()
    assert after.keys() == {f"{POOL}-{n}" for n in range(FEW)}
    assert {name: uid for name, uid in after.items() if name in there} == {
        name: uid for name, uid in before.items() if name in after
    }
    assert takes_writes(project)
    project.preview("--refresh", "--expect-no-changes")


def test_a_larger_quota_is_taken_in_place(module_project: Project) -> None:
    project = module_project
    there = fill(project)
    before, identity = project.node_uids(), project.identity()
    project.write_stack(heavy("1Gi", COUNT))
    foreseen = project.foresee()
    [cluster] = [step for step in foreseen.steps if step.type == CLUSTER]
    assert cluster.op == "update"
    assert "options.etcdQuota" in cluster.changed
    assert "etcd is full and will be compacted and defragmented" in foreseen.messages["quickstart-control-plane"]
    project.up()
    assert {node["name"] for node in project.api().metadata(NODES)} == {f"{POOL}-{n}" for n in range(COUNT)}
    assert project.identity() == identity
    assert {name: uid for name, uid in project.node_uids().items() if name in there} == before
    assert takes_writes(project)
    project.preview("--refresh", "--expect-no-changes")
    project.destroy()
    assert project.processes() == {}
