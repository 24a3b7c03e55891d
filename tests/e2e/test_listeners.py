"""Every command is run, and all that listens meanwhile is in the table of docs/security.md, on this machine alone."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli.registry import offered
from kumulus.extras.kind_image import image
from tests.support import docker, listeners, processes
from tests.support.listeners import Watch
from tests.support.project import ROOT, Project
from tests.support.tools import missing, require

pytestmark = pytest.mark.e2e
OBSERVABILITY = ("prometheus", "kube-state-metrics", "metrics-server")
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")
PULUMI = ("pulumi", "pulumi-language-python", "kumulus.provider.plugin")
TEMPLATE = {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "20", "nvidia.com/gpu": "2"}, "taints": []}
CONTAINER = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w"}, "spec": {"containers": [CONTAINER]}}
LIVED = {
    **POD,
    "metadata": {"name": "w", "labels": {"app": "w"}},
    "status": {
        "phase": "Running",
        "startTime": "2026-01-31T12:00:00Z",
        "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "2026-01-31T12:00:07Z"}}}],
    },
}
JOB = {"name": "work", "jobs": 2, "requests": {"nvidia.com/gpu": "1"}, "duration": "1s"}
KEMU = {
    "apiVersion": "kemu.datastrophic.io/v1alpha1",
    "kind": "ClusterConfig",
    "spec": {
        "nodeGroups": [{"name": "web", "placement": [{"availabilityZone": "z", "replicas": 1}], "nodeTemplate": {}}]
    },
}
CHECKOUT = ("kumulus", "requirements.txt", "pyproject.toml", "Pulumi.yaml", "src", "components", "README.md", "stacks")


@dataclass
class Rig:
    """The stack `dev`, up, and a watch of everything that listens."""

    project: Project
    watch: Watch

    @property
    def directory(self) -> Path:
        return self.project.directory

    def run(self, *arguments: str) -> str:
        """Run a command of ours, which has to succeed; returns what it prints."""
        ended = self.project.kumulus(*arguments)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def write(self, name: str, content: Any) -> str:
        """Write a file beside the program, as YAML unless it is text; returns its name."""
        file = self.directory / name
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return name

    def declare(self, replicas: int) -> None:
        """Write the stack's file."""
        group = {
            "name": "web",
            "placement": [{"availabilityZone": "z", "replicas": replicas}],
            "nodeTemplate": TEMPLATE,
        }
        more: dict[str, Any] = {} if missing(*OBSERVABILITY) else {"observability": {}}
        usage = [{"name": "all", "cpu": "80%", "memory": "60%"}]
        self.project.write_stack({"nodeGroups": [group], "podUsage": usage, **more}, "dev")

    def checkout(self) -> Path:
        """A checkout in which commands may change everything."""
        there = self.directory.parent / "checkout"
        if not there.exists():
            there.mkdir()
            for name in CHECKOUT:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                copy(ROOT / name, there / name)
        return there

    def run_in_checkout(self, *arguments: str) -> None:
        """Run a command in a checkout of its own, without a package index, so that it may fail."""
        there = self.checkout()
        line = [sys.executable, str(there / "kumulus"), *arguments]
        variables = {**self.project.environment, "PIP_NO_INDEX": "1"}
        ended = subprocess.run(line, cwd=there, env=variables, capture_output=True, text=True, check=False, timeout=300)
        assert "Traceback" not in ended.stderr, ended.stderr


def up(rig: Rig) -> None:
    rig.declare(4)
    rig.run("up", "dev")


def fault(rig: Rig) -> None:
    rig.run("fault", "inject", "down", "--kind", "not-ready", "--count", "1", "-s", "dev")
    rig.run("fault", "list", "-s", "dev")
    rig.run("fault", "clear", "-s", "dev", "--all")


def kind(rig: Rig) -> None:
    require("kind")
    rig.run("kind", "version")


def kind_image(rig: Rig) -> None:
    if trouble := docker.trouble():
        pytest.skip(trouble)
    if not image.archive().exists():
        pytest.skip(f"no node image at {image.archive()}: make kind-image")
    rig.run("kind-image")


def clone(rig: Rig) -> None:
    rig.run("capture", "-s", "dev", "--to", "captured")
    rig.run("clone", "captured", "-s", "clone")


def fit(rig: Rig) -> None:
    rig.run("fit", rig.write("pod.yaml", POD), "--on", "captured", "-s", "clone")


def translate(rig: Rig) -> None:
    rig.run("capture", "-s", "dev", "--to", "sent.tar.gz")
    (table,) = rig.directory.glob("sent*.json")
    rig.run("translate", rig.write("report.md", "nothing"), "--table", str(table))


def experiment(rig: Rig) -> None:
    # A scheduler beside the cluster's own, and a policy that it asks.
    beside = {"name": "beside", "workloads": [JOB], "policy": "BestFit", "timeout": "60s"}
    rig.run("experiment", "run", rig.write("beside.yaml", beside), "-s", "dev")


def cluster(rig: Rig) -> None:
    made = json.loads(rig.run("cluster", "up", "--nodes", "2", "--json", "--detach"))
    rig.run("cluster", "down", made["folder"])


def trace(rig: Rig) -> None:
    rig.write("jobs.csv", "submitted,gpus\n0,1\n1,1\n")
    form = ["--columns", "arrival=submitted,gpus=gpus", "--machines", "count=2,gpus=8,cpu=8,memory=64Gi"]
    rig.run("trace", "import", "csv", "jobs.csv", *form, "--stack", "t", "--experiment", "t.yaml")


def snapshot(rig: Rig) -> None:
    rig.run("snapshot", "save", "full", "-s", "dev")
    rig.run("snapshot", "restore", "full", "-s", "dev")


def make_image(rig: Rig) -> None:
    require("karpenter")
    rig.run("image", "karpenter")


def ui(rig: Rig) -> None:
    line = [sys.executable, str(ROOT / "kumulus"), "ui", "-s", "dev", "--allow-changes"]
    with subprocess.Popen(
        line, cwd=rig.directory, env=rig.project.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "http://127.0.0.1:" in process.stdout.readline()
        processes.await_that(lambda: "kumulus" in rig.watch.programs(), 30, "its page's listener was seen")
        process.send_signal(signal.SIGINT)


RUNS: Mapping[str, Callable[[Rig], object]] = {
    "new": lambda rig: rig.run("new", "mine"),
    "up": up,
    "preview": lambda rig: rig.run("preview", "dev"),
    "price": lambda rig: rig.run("price", "-s", "dev"),
    "topology": lambda rig: rig.run("topology", "-s", "dev"),
    "fault": fault,
    "schema": lambda rig: rig.run("schema", "stack"),
    "convert": lambda rig: rig.run("convert", rig.write("kemu.yaml", KEMU)),
    "doctor": lambda rig: rig.run("doctor", "-s", "dev"),
    "plan": lambda rig: rig.run("plan", "--nodes", "100"),
    "env": lambda rig: rig.run("env", "dev"),
    "docs": lambda rig: rig.run("docs", "faults"),
    "ls": lambda rig: rig.run("ls", "--json"),
    "completion": lambda rig: rig.run("completion", "bash"),
    "kind": kind,
    "kind-image": kind_image,
    "tools": lambda rig: rig.run("tools", "--list"),
    "venv": lambda rig: rig.run_in_checkout("venv"),
    "clean": lambda rig: rig.run_in_checkout("clean"),
    # Refused, as a cluster is up.
    "uninstall": lambda rig: rig.run_in_checkout("uninstall"),
    "advise": lambda rig: rig.run(
        "advise", rig.write("pod.yaml", POD), "--types", "m5.xlarge", "--zones", "us-east-1a"
    ),
    "capture": lambda rig: rig.run("capture", "-s", "dev", "--to", "captured-first"),
    "clone": clone,
    "fit": fit,
    "translate": translate,
    "lifecycle": lambda rig: rig.run("lifecycle", "fit", "--by", "app", rig.write("lived.yaml", LIVED)),
    # It ends with its input, which is empty.
    "mcp": lambda rig: rig.run("mcp"),
    "gym": lambda rig: rig.run("gym", "check", "cordoned-zone"),
    "replay": lambda rig: rig.run("replay", "policy"),
    "experiment": experiment,
    "cluster": cluster,
    "trace": trace,
    "policy": lambda rig: rig.run_in_checkout("policy", "pack"),
    "image": make_image,
    "snapshot": snapshot,
    "watch": lambda rig: rig.run("watch", "-s", "dev", "--once"),
    "ui": ui,
    "down": lambda rig: rig.run("down", "clone"),
}
"""How each command is run, in this order."""


@pytest.fixture(scope="module")
def rig(module_project: Project) -> Iterator[Rig]:
    with Watch(module_project.home) as watch:
        made = Rig(module_project, watch)
        made.declare(3)
        made.run("up", "dev")
        yield made


def test_every_command_is_run_here() -> None:
    assert RUNS.keys() == offered().keys()


@pytest.mark.parametrize("command", RUNS)
def test_what_listens_while_a_command_runs_is_in_the_table_and_on_this_machine_alone(rig: Rig, command: str) -> None:
    RUNS[command](rig)
    assert listeners.amiss(rig.watch.found) == []


@pytest.mark.parametrize("program", [*CONTROL_PLANE, *PULUMI, *OBSERVABILITY, "kumulus"])
def test_what_listens_is_seen(rig: Rig, program: str) -> None:
    """Without this, the test above would also pass with a watch that sees nothing."""
    if program in OBSERVABILITY:
        require(*OBSERVABILITY)
    assert program in rig.watch.programs()
