"""A run of an experiment that is killed: the next ``pulumi up`` puts the cluster back, and its preview says so."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
import yaml

from kumulus.model.identity import STACK_ID
from tests.support.project import CLUSTER, NODES, ROOT, Project

pytestmark = pytest.mark.e2e
RECORDS = "/api/v1/namespaces/kube-system/configmaps"
GROUP = {
    "name": "a",
    "placement": [{"availabilityZone": "z", "replicas": 4}],
    "nodeTemplate": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
}
TIMELINE = [
    {"scheduler": "stop"},
    {"resize": {"pool": "a-z", "replicas": 6}},
    {"fault": {"name": "struck", "kubelet": "notReady", "target": {"names": ["a-z-0"]}}},
    {"after": "created", "scheduler": "start"},
]


@pytest.fixture
def project(tmp_path: os.PathLike[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    made = Project(tmp_path_factory.mktemp("killed"))
    try:
        made.write_stack({"nodeGroups": [GROUP]})
        made.up()
        yield made
    finally:
        made.close()


def faults(project: Project) -> list[str]:
    return [each["name"] for each in project.api().metadata(RECORDS, labelSelector="kumulus.io/record=fault")]


def killed_amid_its_work(project: Project) -> None:
    file = project.directory / "experiment.yaml"
    late = {"name": "late", "arrival": {"after": "5m"}}
    file.write_text(yaml.safe_dump({"name": "struck", "workloads": [late], "timeline": TIMELINE, "settle": "5m"}))
    where = ["--kubeconfig", str(project.kubeconfig()), "--results", str(project.directory / "results")]
    line = [str(ROOT / "kumulus"), "experiment", "run", str(file), *where]
    with subprocess.Popen(line, env=project.environment, stderr=subprocess.PIPE, text=True) as run:
        try:
            give_up = time.monotonic() + 120
            while not faults(project):
                assert run.poll() is None, run.stderr and run.stderr.read()
                assert time.monotonic() < give_up
                time.sleep(0.05)
            (namespace,) = project.api().metadata("/api/v1/namespaces", labelSelector="kumulus.io/experiment")
            assert namespace["labels"][STACK_ID] == project.api().metadata(NODES)[0]["labels"][STACK_ID]
        finally:
            run.kill()
        assert run.wait() == -signal.SIGKILL


def test_a_plain_up_puts_back_what_a_killed_run_has_left_and_its_preview_says_so(project: Project) -> None:
    before = project.node_uids()
    killed_amid_its_work(project)
    assert len(project.node_uids()) == 6
    assert f"{project.stack}/kube-scheduler" not in project.processes()

    preview = project.foresee()
    [step] = preview.steps
    assert (step.op, step.type) == ("update", CLUSTER)
    assert "has left it, which is gone: all of it is put back" in preview.messages[step.name]
    assert len(project.node_uids()) == 6, "a preview changes nothing"

    said = project.up()
    assert "experiment struck (run " in said.text
    assert project.node_uids() == before
    assert faults(project) == []
    assert len(project.processes()[f"{project.stack}/kube-scheduler"]) == 1
    assert not any(each["name"].startswith("experiment-") for each in project.api().metadata("/api/v1/namespaces"))
    ready = [c["status"] for c in project.api().get(f"{NODES}/a-z-0")["status"]["conditions"] if c["type"] == "Ready"]
    assert ready == ["True"]
    project.preview("--refresh", "--expect-no-changes")
