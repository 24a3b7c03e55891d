"""etcd's storage quota really reached: the error names it and the remedy, and the remedy works."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.project import NODES, Project

pytestmark = pytest.mark.e2e
POOL = "heavy-z"
# More than fit into the quota, by more than can be under way when it is reached.
COUNT = 600


def heavy(quota: str, nodes: int) -> dict[str, Any]:
    """A fleet whose nodes fill an etcd quickly: each has 100 kB of an annotation."""
    metadata = {"annotations": {"example.com/ballast": "x" * 100_000}}
    template = {"metadata": metadata, "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}}
    group = {"name": "heavy", "placement": [{"availabilityZone": "z", "replicas": nodes}], "nodeTemplate": template}
    return {"nodeGroups": [group], "kwok": {"etcdQuota": quota}}


def test_a_full_etcd_is_named_with_its_remedy_and_the_remedy_works(project: Project) -> None:
    project.write_stack(heavy("16Mi", COUNT))
    failed = project.pulumi("up", "--yes", "--skip-preview")
    assert failed.code != 0
    assert "Traceback" not in failed.text
    assert "etcd's storage quota is reached" in failed.text
    assert "raise kwok.etcdQuota in the stack file" in failed.text
    there = project.api().metadata(NODES)
    assert 0 < len(there) < COUNT
    [recorded] = [r["outputs"] for r in project.state()["resources"] if r["type"].endswith(":NodePool")]
    assert recorded["replicas"] == len(there), "what was done is recorded"
    assert f"nodes: {len(there)} created; {COUNT - len(there)} left to do" in failed.text

    project.write_stack(heavy("1Gi", COUNT))
    assert "etcdQuota" in project.preview("--diff").text
    project.up()
    assert {node["name"] for node in project.api().metadata(NODES)} == {f"{POOL}-{n}" for n in range(COUNT)}
    project.destroy()
    assert project.processes() == {}
