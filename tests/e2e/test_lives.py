"""Pod lifecycles in a stack: previewed, added to a running cluster, changed in place, and removed with the file."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.support.api import Object
from tests.support.pods import JOBS, PODS, TOLERATE_ALL
from tests.support.project import NODES, Project

pytestmark = pytest.mark.e2e
STAGES = "/apis/kwok.x-k8s.io/v1alpha1/stages"

CLUSTER: dict[str, Any] = {
    "nodeGroups": [
        {
            "name": "a",
            "placement": [{"availabilityZone": "z", "replicas": 3}],
            "nodeTemplate": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
        }
    ]
}
TRAINING: dict[str, Any] = {"name": "training", "selector": {"ownerKinds": ["Job"]}, "run": "8s"}


def job(name: str) -> Object:
    spec = {"restartPolicy": "Never", "tolerations": TOLERATE_ALL, "containers": [{"name": "main", "image": "none"}]}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}


def ran(project: Project, name: str) -> float:
    """How long the pod of a new job runs, in seconds."""
    api = project.api()
    api.create(JOBS, job(name))
    api.until(JOBS, lambda jobs: jobs[name]["status"].get("succeeded") == 1)
    (pod,) = api.list(PODS, labelSelector=f"job-name={name}")
    end = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    start, finish = (datetime.fromisoformat(end[key]) for key in ("startedAt", "finishedAt"))
    return (finish - start).total_seconds()


def test_lifecycles_are_added_changed_and_removed_in_place(project: Project) -> None:
    project.install_plugins()
    project.write_stack(CLUSTER)
    project.up()
    nodes, identity, before = project.node_uids(), project.identity(), project.processes()
    # However late KWOK is: the bounds only tell one duration from the next.
    assert ran(project, "before") < 8

    project.write_stack({**CLUSTER, "podLifecycles": [TRAINING]})
    project.up()
    changed = {name for name, pids in project.processes().items() if pids != before[name]}
    assert changed == {"quickstart/kwok-controller"}
    assert (project.node_uids(), project.identity()) == (nodes, identity)
    assert 8 <= ran(project, "eight") < 24
    assert project.foresee("--refresh").steps == ()

    project.write_stack({**CLUSTER, "podLifecycles": [{**TRAINING, "run": "24s"}]})
    foreseen = project.preview("--diff").stdout
    assert '"run: 8s" => "run: 24s"' in foreseen
    assert "1 to update" in foreseen
    after = project.processes()
    project.up()
    assert project.processes() == after
    assert ran(project, "twenty-four") >= 24

    project.write_stack(CLUSTER)
    project.up()
    assert project.api().list(STAGES) == []
    assert ran(project, "after") < 8
    assert project.node_uids() == nodes
    assert len(project.api().list(NODES)) == 3
    project.destroy()
    assert project.processes() == {}
