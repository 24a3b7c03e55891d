"""Add-ons on the kwok runtime: Helm charts whose objects are real and whose pods are emulated.

The tests share one stack and go through its life in their order.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support import charts, processes
from tests.support.pods import is_ready, is_running
from tests.support.project import CLUSTER, NODES, POOL, Project, node_group

pytestmark = pytest.mark.e2e

RELEASE = "kubernetes:helm.sh/v3:Release"
NODE_GROUPS = [node_group("a100", 2, "use1", gpus=8)]


@dataclass
class Stack:
    """A stack with three add-ons: a chart from a directory, one that is packed, and one from a repository."""

    project: Project
    """Its project."""
    cluster: dict[str, Any]
    """Its ``kumulus:cluster``, as up now."""

    def write(self) -> None:
        self.project.write_stack(self.cluster, stack="addons")

    def addon(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(addon for addon in self.cluster["clusterAddons"] if addon["name"] == name)
        return found

    def revisions(self) -> dict[str, list[tuple[str, str]]]:
        """Helm's record in the cluster: the revisions of each release, each with its status."""
        selector = "owner=helm"
        found: dict[str, list[tuple[str, str]]] = {}
        for secret in self.project.api().metadata("/api/v1/secrets", labelSelector=selector):
            labels = secret["labels"]
            found.setdefault(labels["name"], []).append((labels["version"], labels["status"]))
        return {name: sorted(revisions) for name, revisions in found.items()}

    def words(self, name: str) -> dict[str, str]:
        """What the release's ConfigMap says: its chart's version and two of its values."""
        path = f"/api/v1/namespaces/in-{name}/configmaps/{name}-words"
        found: dict[str, str] = self.project.api().get(path)["data"]
        return found

    def pods(self, name: str) -> list[dict[str, Any]]:
        return self.project.api().list(f"/api/v1/namespaces/in-{name}/pods")


@pytest.fixture(scope="module")
def stack(module_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    module_project.install_plugins()
    folder = module_project.directory / "charts"
    charts.write_chart(folder / "local", "0.1.0")
    charts.pack_chart(folder, "0.1.0")
    with charts.repository(tmp_path_factory.mktemp("repository"), {"0.1.0": {}, "0.2.0": {}}) as url:
        addons: list[dict[str, Any]] = [
            {
                "name": "local",
                "chart": "./charts/local",
                "valuesObject": {"replicas": 3, "greeting": "from a mapping", "deep": {"word": "yes"}},
            },
            {
                "name": "packed",
                "chart": "./charts/sample-0.1.0.tgz",
                "valuesObject": "greeting: from a text\ndeep:\n  word: on\n",
                "dependsOn": ["local"],
            },
            {"name": "served", "repoName": "mine", "repoURL": url, "chart": "mine/sample", "version": "0.1.0"},
        ]
        for addon in addons:
            addon["namespace"] = f"in-{addon['name']}"
        yield Stack(module_project, {"nodeGroups": NODE_GROUPS, "clusterAddons": addons})


def test_charts_from_everywhere_are_installed_and_said_to_be_emulated(stack: Stack) -> None:
    stack.write()
    up = stack.project.up()
    assert "add-ons on the kwok runtime are emulated" in up.text
    assert stack.revisions() == {name: [("1", "deployed")] for name in ("local", "packed", "served")}
    # The chart's own values stay where none is given; `on` in a text is what it is for Helm.
    assert stack.words("local") == {"version": "0.1.0", "greeting": "from a mapping", "deep": "yes"}
    assert stack.words("packed") == {"version": "0.1.0", "greeting": "from a text", "deep": "true"}
    assert stack.words("served") == {"version": "0.1.0", "greeting": "none", "deep": "none"}
    pods = stack.pods("local")
    assert len(pods) == 3
    assert all(map(is_running, pods))
    assert {pod["spec"]["nodeName"] for pod in pods} <= {"system-0", "system-1"}
    service = stack.project.api().get("/api/v1/namespaces/in-local/services/local")
    assert service["spec"]["clusterIP"].startswith("10.96.")
    stack.project.preview("--expect-no-changes")


def test_another_version_is_an_upgrade_in_place_of_that_release_alone(stack: Stack) -> None:
    nodes = stack.project.node_uids()
    stack.addon("served")["version"] = "0.2.0"
    stack.addon("local")["valuesObject"]["greeting"] = "changed"
    stack.write()
    steps = [step for step in stack.project.foresee().steps if step.type == RELEASE]
    assert {(step.op, step.name) for step in steps} == {("update", "served-release"), ("update", "local-release")}
    assert stack.words("served")["version"] == "0.1.0"

    stack.project.up()
    assert stack.words("served")["version"] == "0.2.0"
    assert stack.words("local")["greeting"] == "changed"
    assert stack.revisions() == {
        "local": [("1", "superseded"), ("2", "deployed")],
        "packed": [("1", "deployed")],
        "served": [("1", "superseded"), ("2", "deployed")],
    }
    assert stack.project.node_uids() == nodes
    stack.project.preview("--expect-no-changes")


def test_a_stopped_cluster_keeps_its_add_ons(stack: Stack) -> None:
    revisions, identity = stack.revisions(), stack.project.identity()
    processes.kill(pid for pids in stack.project.processes().values() for pid in pids)
    stack.project.up("--refresh")
    assert stack.project.identity() == identity
    assert stack.revisions() == revisions
    stack.project.up("--refresh", "--expect-no-changes")


def test_a_lost_cluster_is_made_again_with_its_add_ons(stack: Stack) -> None:
    identity = stack.project.identity()
    processes.kill(pid for pids in stack.project.processes().values() for pid in pids)
    shutil.rmtree(stack.project.cluster())
    stack.project.up("--refresh")
    assert stack.project.identity() != identity
    assert_all_there(stack)


def test_a_replaced_cluster_has_its_add_ons_again(stack: Stack) -> None:
    identity = stack.project.identity()
    stack.cluster["kwok"] = {"featureGates": {"AllAlpha": False}}
    stack.write()
    replaced = {(step.type, step.name) for step in stack.project.foresee().steps if step.op == "replace"}
    assert {
        (CLUSTER, "addons-control-plane"),
        (POOL, "a100-use1"),
        (POOL, "system"),
        *((RELEASE, f"{name}-release") for name in ("local", "packed", "served")),
    } <= replaced
    assert stack.project.identity() == identity

    stack.project.up(shown=True)
    assert stack.project.identity() != identity
    assert_all_there(stack)


def assert_all_there(stack: Stack) -> None:
    """Every release is installed, once, with its pods running; and every node is there."""
    assert stack.revisions() == {name: [("1", "deployed")] for name in ("local", "packed", "served")}
    assert stack.words("served")["version"] == "0.2.0"
    assert all(is_running(pod) for name in ("local", "packed", "served") for pod in stack.pods(name))
    nodes = stack.project.api().list(NODES)
    assert {node["metadata"]["name"] for node in nodes} == {"a100-use1-0", "a100-use1-1", "system-0", "system-1"}
    assert all(map(is_ready, nodes))
    stack.project.preview("--refresh", "--expect-no-changes")


def test_removed_add_ons_are_uninstalled(stack: Stack) -> None:
    stack.cluster["clusterAddons"] = [stack.addon("local")]
    stack.write()
    stack.project.up()
    assert stack.revisions().keys() == {"local"}
    assert stack.pods("local")
    stack.cluster["clusterAddons"] = []
    stack.write()
    stack.project.up()
    assert stack.revisions() == {}
    assert stack.project.api().list("/api/v1/namespaces/in-local/services") == []


def test_destroy_with_add_ons_is_quick_and_clean(stack: Stack) -> None:
    stack.cluster["clusterAddons"] = [
        {"name": "local", "chart": "./charts/local", "namespace": "in-local", "valuesObject": {"replicas": 3}}
    ]
    stack.write()
    up = stack.project.up()
    assert stack.revisions() == {"local": [("1", "deployed")]}
    destroyed = stack.project.destroy()
    assert destroyed.seconds < max(20, 3 * up.seconds)
    assert "error" not in destroyed.text
    assert stack.project.processes() == {}
    assert not stack.project.home.exists()
