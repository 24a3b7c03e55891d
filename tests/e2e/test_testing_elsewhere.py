"""The examples of docs/testing.md with programs of others, copied from the page into an empty folder and run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kumulus import toolchain
from kumulus.testing.plane import PREFIX
from tests.support.project import ROOT

pytestmark = pytest.mark.e2e

BLOCK = re.compile(r"```(?:python|yaml)\n# (\S+)\n(.+?)```", re.S)
FEATURE = """
Feature: nodes
  Scenario: all are Ready
    Then all nodes are Ready
"""
STEPS = """
from behave import then

@then("all nodes are Ready")
def ready(context):
    assert len(context.cluster.nodes()) == 3 and all(node.ready for node in context.cluster.nodes())
"""
OF_PYTEST_KUBERNETES = """
import pytest

@pytest.fixture
def up(k8s):
    k8s.create()
    return k8s

def test_a_pod_runs_and_is_gone_after_a_reset(up):
    containers = [{"name": "c", "image": "i"}]
    up.load_image("i")
    up.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {"containers": containers}})
    up.wait("pod/one", "condition=Ready")
    assert up.version()[0] == 1
    up.reset()
    assert up.kubectl(["get", "pods"])["items"] == []
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with the files of the page."""
    made = tmp_path / "empty"
    for name, text in BLOCK.findall((ROOT / "docs" / "testing.md").read_text()):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def run(folder: Path, *command: str, path: Path | None = None) -> str:
    """Run a program of Python's in the folder; returns what it printed, and fails if it leaves a cluster."""
    temporary = folder / "tmp"
    temporary.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}:{folder / 'packages'}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "TMPDIR": str(temporary),
        "PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"],
    }
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert list(temporary.glob(f"{PREFIX}*")) == []
    return said


def have(folder: Path, package: str) -> None:
    """Install a package beside the test; skip it, saying so, where that package is not to be had."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    got = subprocess.run(
        [*pip, "--target", str(folder / "packages"), package], capture_output=True, text=True, check=False, timeout=300
    )
    if got.returncode:
        pytest.skip(f"{package} is not to be had: {(got.stderr.strip().splitlines() or ['pip failed'])[-1]}")


def pytest_of(*options: str) -> list[str]:
    return ["pytest", "-p", "kumulus.testing.plugin", "-p", "no:cacheprovider", *options]


def test_unittest_needs_nothing_but_the_context_manager(folder: Path) -> None:
    assert "Ran 1 test" in run(folder, "unittest", "test_unittest")


def test_behave_needs_nothing_but_the_context_manager(folder: Path) -> None:
    have(folder, "behave==1.3.3")
    (folder / "features" / "nodes.feature").write_text(FEATURE)
    (folder / "features" / "steps").mkdir()
    (folder / "features" / "steps" / "nodes.py").write_text(STEPS)
    assert "1 scenario passed" in run(folder, "behave")


def test_pytest_kubernetes_has_emulated_clusters_by_a_provider(folder: Path) -> None:
    have(folder, "pytest-kubernetes==0.9.0")
    (folder / "test_k8s.py").write_text(OF_PYTEST_KUBERNETES)
    options = ["-p", "pytest_kubernetes.plugin", "test_k8s.py"]
    assert "1 passed" in run(folder, *pytest_of(*options), path=toolchain.find("kubectl").parent)
