"""The examples of docs/testing.md with programs of others, copied from the page into an empty folder and run."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from kumulus import toolchain
from tests.support import examples
from tests.support.examples import got, have, module, pytest_of, run

pytestmark = pytest.mark.e2e

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
OF_OTHER_CLIENTS = """
from kubernetes.client import CoreV1Api
from lightkube.resources.core_v1 import Node

def test_each_client_has_this_clusters_nodes(kumulus):
    clients, wanted = kumulus.clients, {node.name for node in kumulus.nodes()}
    assert {each.metadata.name for each in CoreV1Api(clients.kubernetes).list_node().items} == wanted
    assert {each.name for each in clients.kr8s.get("nodes")} == wanted
    assert {each.metadata.name for each in clients.lightkube.list(Node)} == wanted
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with the files of the page."""
    return examples.write(tmp_path / "empty")


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
    assert "1 passed" in run(folder, *pytest_of(*options), path=[toolchain.find("kubectl").parent])


def test_clients_of_others_are_of_the_tests_cluster_and_not_the_users(folder: Path) -> None:
    have(folder, "kubernetes==37.0.2", "kr8s==0.20.15", "lightkube==1.0.1")
    (folder / "test_clients.py").write_text(OF_OTHER_CLIENTS)
    (folder / "conftest.py").unlink()
    environment = {**os.environ, "KUBECONFIG": str(folder / "none")}
    assert "1 passed" in run(folder, *pytest_of("test_clients.py"), env=environment)


def test_an_example_of_kopf_is_tested_in_ten_lines(folder: Path) -> None:
    have(folder, "kopf==1.45.2", "pykube-ng==23.6.0")
    got(sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", "kopf", "kopf==1.45.2", cwd=folder)
    shutil.unpack_archive(folder / "kopf-1.45.2.tar.gz", folder, filter="data")
    (folder / "conftest.py").unlink()
    assert "1 passed" in run(folder, *pytest_of("test_kopf.py"))


def test_volcano_installed_by_helm_is_tested_in_ten_lines(folder: Path) -> None:
    try:
        programs = [toolchain.find(each) for each in ("helm", "volcano-scheduler", "volcano-controller-manager")]
    except toolchain.ToolchainError as error:
        pytest.skip(str(error))
    (folder / "volcano").symlink_to(module("volcano.sh/volcano", "volcano-scheduler"))
    (folder / "conftest.py").unlink()
    assert "1 passed" in run(folder, *pytest_of("test_volcano.py"), path=[each.parent for each in programs])
