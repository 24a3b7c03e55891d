"""`kumulus fit --watch`: a clone follows its source's pods, quotas and nodes, and an end by Ctrl-C leaves it clean.

The tests share a source and its clone, in their order.
"""

import os
import signal
import subprocess
import sys
import time
from queue import Empty, Queue
from threading import Thread
from typing import Any

import pytest
import yaml

from tests.support.project import ROOT, Project

pytestmark = pytest.mark.e2e
NODES, PODS, QUOTAS = "/api/v1/nodes", "/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/resourcequotas"
PATIENCE_S = 120.0


def cluster(count: int) -> dict[str, Any]:
    placement = {"availabilityZone": "z", "replicas": count}
    template = {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "20"}, "taints": []}
    return {"nodeGroups": [{"name": "web", "placement": [placement], "nodeTemplate": template}]}


def pod(name: str, node: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "3"}}}
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container]}}


def command(project: Project, *arguments: str) -> str:
    """Run a command of ours, which has to succeed."""
    ended = project.kumulus(*arguments)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


class Watching:
    """`kumulus fit --watch` under way, and what it says."""

    def __init__(self, project: Project) -> None:
        line = ["fit", "wanted.yaml", "--on", "there", "-s", "clone", "--watch", "--every", "1"]
        kubeconfig = ["--kubeconfig", str(project.kubeconfig("source"))]
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "kumulus"), *line, *kubeconfig],
            cwd=project.directory,
            env=project.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # As a shell starts it: Ctrl-C reaches pulumi, too.
            start_new_session=True,
        )
        self._lines: Queue[str] = Queue()
        self.said: list[str] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip())

    def until(self, part: str) -> str:
        """Wait for a line that has this in it."""
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            try:
                self.said.append(self._lines.get(timeout=1))
            except Empty:
                assert self.process.poll() is None, self.said
                continue
            if part in self.said[-1]:
                return self.said[-1]
        raise AssertionError(f"{part!r} was not said, but {self.said}")

    def end(self) -> int:
        """Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        while not self._lines.empty():
            self.said.append(self._lines.get())
        return code


@pytest.fixture(scope="module")
def cloned(module_project: Project) -> Project:
    """Two nodes of four CPUs as the stack `source`, one of them taken; captured into `there`, cloned as `clone`."""
    project = module_project
    project.write_stack(cluster(2), "source")
    project.up()
    api = project.api("source")
    api.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    api.until("/api/v1/namespaces/shop/serviceaccounts", lambda found: "default" in found)
    api.create(PODS, pod("old", sorted(each["metadata"]["name"] for each in api.list(NODES))[0]))
    command(project, "capture", "-s", "source", "--to", "there")
    command(project, "clone", "there", "-s", "clone")
    project.known("clone")
    (project.directory / "wanted.yaml").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "wanted", "namespace": "shop"},
                "spec": {
                    "replicas": 4,
                    "template": {
                        "metadata": {"labels": {"app": "wanted"}},
                        "spec": pod("", "")["spec"] | {"nodeName": None},
                    },
                },
            }
        )
    )
    return project


def keys(node: dict[str, Any]) -> list[str]:
    """The keys of a node's taints."""
    return [each["key"] for each in node["spec"].get("taints") or ()]


def test_what_was_cut_off_is_finished_first(cloned: Project) -> None:
    source, clone = cloned.api("source"), cloned.api("clone")
    first, second = sorted(each["metadata"]["name"] for each in source.list(NODES))
    # A pod came, the clone got it, and then the command was killed; the pod is gone since, and there is another.
    source.create(PODS, pod("between", second))
    command(cloned, "capture", "-s", "source", "--to", "there/.begun")
    clone.create(PODS, pod("between", second))
    source.delete(f"{PODS}/between?gracePeriodSeconds=0")
    source.delete(f"{PODS}/old?gracePeriodSeconds=0")
    source.create(PODS, pod("later", first))
    watching = Watching(cloned)
    try:
        watching.until("wanted: 1 of 4 pods fit")
    finally:
        watching.end()
    assert {each["metadata"]["name"]: each["spec"]["nodeName"] for each in clone.list(PODS)} == {"later": first}


def test_a_clone_follows_its_source_until_ctrl_c(cloned: Project) -> None:
    source, clone = cloned.api("source"), cloned.api("clone")
    first, second = sorted(each["metadata"]["name"] for each in source.list(NODES))
    third = f"{first[:-1]}2"
    (taken,) = source.list(PODS)
    watching = Watching(cloned)
    try:
        watching.until("wanted: 1 of 4 pods fit: 0/2 nodes are available")
        source.delete(f"{PODS}/{taken['metadata']['name']}?gracePeriodSeconds=0")
        watching.until("wanted: 2 of 4 pods fit, before 1")
        source.create(QUOTAS, {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}})
        watching.until("wanted: 1 of 4 pods fit, before 2: exceeded quota: small")
        source.delete(f"{QUOTAS}/small")
        watching.until("wanted: 2 of 4 pods fit, before 1")
        cloned.write_stack(cluster(3), "source")
        cloned.up()
        watching.until("wanted: 3 of 4 pods fit, before 2")
        source.create(PODS, pod("stays", second))
        watching.until("wanted: 2 of 4 pods fit, before 3")
        # A node that is no longer like the others is in another group of the clone, with the pod that it has.
        source.merge(f"{NODES}/{second}", {"spec": {"taints": [{"key": "own", "value": "x", "effect": "NoSchedule"}]}})
        clone.until(NODES, lambda found: set(found) == {first, second, third} and keys(found[second]) == ["own"])
        clone.until(PODS, lambda found: "stays" in found)
        source.create(PODS, pod("other", first))
        clone.until(PODS, lambda found: "other" in found)
    finally:
        code = watching.end()
    assert code == 130, watching.said
    assert not [line for line in watching.said if "Traceback" in line]
    there = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in clone.list(PODS)}
    assert there == {"stays": second, "other": first}
    taints = [{each["metadata"]["name"]: keys(each) for each in api.list(NODES)} for api in (source, clone)]
    assert taints[0] == taints[1] == {first: [], second: ["own"], third: []}
    # What Ctrl-C has cut off may be there: the next one finishes it.
    left = {each.name for each in (cloned.directory / "there").iterdir()} - {".begun"}
    assert left == {"stack.yaml", "workload.yaml", "left-out.md"}
    assert not [each for each in clone.list("/apis/scheduling.k8s.io/v1/priorityclasses") if "fit-" in str(each)]
    assert "unchanged" in command(cloned, "preview", "clone")


def test_another_cluster_is_not_followed(cloned: Project) -> None:
    # Finishes what the last Ctrl-C may have cut off.
    cloned.kumulus("fit", "wanted.yaml", "--on", "there", "-s", "clone")
    assert not (cloned.directory / "there" / ".begun").exists()
    before = (cloned.directory / "there" / "stack.yaml").read_text()
    cloned.write_stack({"nodeGroups": [{**cluster(1)["nodeGroups"][0], "name": "another"}]}, "source")
    cloned.up()
    watching = Watching(cloned)
    watching.until("error: the source has no node of those in there: it is another cluster")
    assert watching.process.wait(PATIENCE_S) == 1
    assert (cloned.directory / "there" / "stack.yaml").read_text() == before
