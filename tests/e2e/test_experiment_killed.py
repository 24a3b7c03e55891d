"""A run that is killed: the next ``pulumi up`` puts the cluster back; one that is alive keeps its cluster."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from kumulus.model.identity import STACK_ID
from tests.support import processes
from tests.support.cut_off import dying
from tests.support.project import CLUSTER, NODES, ROOT, Project, node_group

pytestmark = pytest.mark.e2e
RECORDS = "/api/v1/namespaces/kube-system/configmaps"
TIMELINE = [
    {"scheduler": "stop"},
    {"resize": {"pool": "a-z", "replicas": 6}},
    {"fault": {"name": "struck", "kubelet": "notReady", "target": {"names": ["a-z-0"]}}},
    {"after": "created", "scheduler": "start"},
]


@pytest.fixture
def project(module_project: Project) -> Project:
    """The stack, up, as the test before has left it or anew."""
    module_project.write_stack({"nodeGroups": [node_group("a", 4)]})
    module_project.up()
    return module_project


def faults(project: Project) -> list[str]:
    return [each["name"] for each in project.api().metadata(RECORDS, labelSelector="kumulus.io/record=fault")]


@contextmanager
def amid_its_work(project: Project) -> Iterator[subprocess.Popen[str]]:
    """A run of an experiment that has changed what it changes; whatever the test makes of it, it is gone afterwards."""
    file = project.directory / "experiment.yaml"
    late = {"name": "late", "arrival": {"after": "5m"}}
    file.write_text(yaml.safe_dump({"name": "struck", "workloads": [late], "timeline": TIMELINE, "settle": "5m"}))
    where = ["--kubeconfig", str(project.kubeconfig()), "--results", str(project.directory / "results")]
    line = [str(ROOT / "kumulus"), "experiment", "run", str(file), *where]
    with subprocess.Popen(line, env=project.environment, stderr=subprocess.PIPE, text=True) as run:
        try:
            processes.await_amid(run, lambda: faults(project), 120)
            (namespace,) = project.api().metadata("/api/v1/namespaces", labelSelector="kumulus.io/experiment")
            assert namespace["labels"][STACK_ID] == project.api().metadata(NODES)[0]["labels"][STACK_ID]
            yield run
        finally:
            run.kill()


def test_a_plain_up_puts_back_what_a_killed_run_has_left_and_its_preview_says_so(project: Project) -> None:
    before = project.node_uids()
    with amid_its_work(project) as run:
        run.kill()
        assert run.wait() == -signal.SIGKILL
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


def test_a_plain_up_finishes_a_killed_restore_and_its_preview_says_so(project: Project) -> None:
    before = project.node_uids()
    saved = project.kumulus("snapshot", "save", "full", "-s", project.stack)
    assert saved.returncode == 0, saved.stderr
    project.api().delete(f"{NODES}/a-z-0")
    project.api().create(NODES, {"metadata": {"name": "later"}})
    line = dying("snapshot", "restore", "full", "-s", project.stack)
    killed = subprocess.run(line, cwd=project.directory, env=project.environment, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    preview = project.foresee()
    [step] = [each for each in preview.steps if each.type == CLUSTER]
    assert step.op == "update"
    assert "the cluster is as snapshot restore run " in preview.messages[step.name]
    said = project.up()
    assert "the restore of full finished: " in said.text
    assert project.node_uids() == before
    project.preview("--refresh", "--expect-no-changes")


def everything(project: Project) -> list[object]:
    """A cluster's nodes and processes, and what the state has."""
    return [project.node_uids(), project.processes(), [each["urn"] for each in project.state()["resources"]]]


def test_a_cluster_is_not_taken_away_while_a_run_is_under_way_on_it(project: Project) -> None:
    with amid_its_work(project) as run:
        before = everything(project)
        who = "experiment struck runs on this cluster (run "
        remedy = f"wait for it, or end it in order: kill {run.pid}"
        destroyed = project.pulumi("destroy", "--yes", "--skip-preview")
        assert destroyed.code != 0
        assert who in destroyed.text
        assert f"{remedy}; nothing was removed" in destroyed.text
        [cluster] = [each["urn"] for each in project.state()["resources"] if each["type"] == CLUSTER]
        replaced = project.pulumi("up", "--yes", "--replace", cluster)
        assert replaced.code != 0
        assert f"{remedy}; nothing was removed" in replaced.text
        down = project.kumulus("down", project.stack)
        assert down.returncode == 1
        assert f"error: {who}" in down.stderr
        assert down.stderr.endswith(f"{remedy}\n")
        assert everything(project) == before
        run.send_signal(signal.SIGINT)
        assert run.wait() == 1
    project.destroy()
    assert project.processes() == {}
