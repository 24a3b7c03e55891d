"""Mistakes of every kind: one clear message, no traceback, and nothing that the next up or destroy cannot handle."""

from __future__ import annotations

import copy
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import processes
from tests.support.pods import is_ready
from tests.support.project import NODES, Project, Result

pytestmark = pytest.mark.e2e

GOOD: dict[str, Any] = {
    "nodeGroups": [
        {
            "name": "a100",
            "placement": [{"availabilityZone": "use1", "replicas": 2}],
            "nodeTemplate": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}},
        }
    ]
}


@pytest.fixture(scope="module")
def stack(module_project: Project) -> Project:
    """A project whose stack is tried with one mistake after the other."""
    module_project.stack = "dev"
    return module_project


def refused(result: Result) -> str:
    """What was said by a command that has to be refused in words a user can use."""
    assert result.code not in (0, None), result.text
    assert "Traceback" not in result.text
    assert "KeyboardInterrupt" not in result.text
    assert "unexpected" not in result.text.lower(), "defects of the plugin itself are reported so"
    assert "unhandled error" not in result.text, "nothing is said beside what is wrong"
    return result.text


def calm(project: Project) -> None:
    """Nothing of a cluster is left, and destroy takes what there is in the state."""
    assert project.processes() == {}
    assert not project.cluster().exists()
    assert "Traceback" not in project.destroy().text


def good(project: Project) -> None:
    """A good stack file comes up after whatever there was."""
    project.write_stack(GOOD)
    project.up()
    nodes = project.api().list(NODES)
    assert len(nodes) == 2
    assert all(map(is_ready, nodes))


def mistaken(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    cluster = copy.deepcopy(GOOD)
    change(cluster)
    return cluster


def group(cluster: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = cluster["nodeGroups"][0]
    return found


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        pytest.param(
            mistaken(lambda c: c.update(nodeGroup=[])), "nodeGroup: is not a known key; write nodeGroups", id="key"
        ),
        pytest.param(
            mistaken(lambda c: group(c)["nodeTemplate"]["capacity"].update(memory="32Gb")),
            'nodeGroups[0].nodeTemplate.capacity.memory: "32Gb" has a B at its end',
            id="quantity",
        ),
        pytest.param(mistaken(lambda c: group(c).update(name="A_100")), 'nodeGroups[0].name: "A_100"', id="name"),
        pytest.param(
            mistaken(
                lambda c: c["nodeGroups"].extend(
                    {**group(c), "name": name, "placement": [{"availabilityZone": zone, "replicas": 1}]}
                    for name, zone in (("a100-use1", "b"), ("a100", "use1-b"))
                )
            ),
            "nodeGroups[2].placement[0]: makes the same node names as nodeGroups[1].placement[0]",
            id="colliding-pools",
        ),
        pytest.param(
            mistaken(lambda c: group(c)["placement"][0].update(replicas=-1)),
            "nodeGroups[0].placement[0].replicas: is -1, less than 0; write a number of nodes",
            id="negative-replicas",
        ),
        pytest.param(
            mistaken(lambda c: group(c)["placement"][0].update(replicas=10**12)),
            "nodeGroups[0].placement[0].replicas: is 1000000000000, more nodes than one placement can have",
            id="absurd-replicas",
        ),
        pytest.param(
            mistaken(
                lambda c: c.update(clusterAddons=[{"name": "mine", "namespace": "mine", "chart": "./charts/mine"}])
            ),
            "clusterAddons[0].chart: the chart",
            id="missing-chart",
        ),
        pytest.param(
            mistaken(lambda c: c.update(kubernetesVersion="1.2.3")),
            "Kubernetes v1.2.3 is not among the pinned versions; write one of",
            id="kubernetes-version",
        ),
    ],
)
def test_a_mistake_in_the_cluster_is_told_with_its_path(stack: Project, cluster: dict[str, Any], told: str) -> None:
    stack.write_stack(cluster)
    said = refused(stack.pulumi("up", "--yes", "--skip-preview"))
    assert told in said
    calm(stack)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        pytest.param(
            "http://127.0.0.1:1/x", None, "cannot be reached: connection refused; check the address", id="url"
        ),
        pytest.param("kemu.yaml", None, "there is no file", id="missing-file"),
        pytest.param("kemu.yaml", "kind: ClusterConfig\nspec: [}\n", "line 2, column", id="not-yaml"),
    ],
)
def test_a_kemu_file_that_cannot_be_read_is_told(stack: Project, name: str, content: str | None, told: str) -> None:
    if content is not None:
        (stack.directory / name).write_text(content)
    stack.write_stack(clusterConfig=name)
    said = refused(stack.pulumi("up", "--yes", "--skip-preview"))
    assert told.lower() in said.lower()
    assert name in said
    calm(stack)


def test_a_stack_file_that_is_not_yaml_is_told(stack: Project) -> None:
    stack.write_stack(GOOD)
    text = stack.stack_file().read_text()
    stack.stack_file().write_text("config: [}\n")
    # Pulumi itself reads this file.
    assert "invalid YAML file" in refused(stack.pulumi("up", "--yes", "--skip-preview"))
    stack.stack_file().write_text(text)
    calm(stack)


def test_after_all_these_mistakes_a_good_file_comes_up(stack: Project) -> None:
    good(stack)
    stack.destroy()
    assert not stack.home.exists()


def test_a_mistake_leaves_a_running_cluster_alone(project: Project) -> None:
    good(project)
    before = project.node_uids()
    project.write_stack(mistaken(lambda c: group(c)["placement"][0].update(replicas="many")))
    said = refused(project.pulumi("up", "--yes", "--skip-preview"))
    assert "nodeGroups[0].placement[0].replicas" in said
    assert project.node_uids() == before
    assert project.destroy().seconds < 30
    assert not project.home.exists()


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port somebody else listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


def test_a_port_in_use_is_told_with_who_uses_it(project: Project, taken_port: int) -> None:
    project.write_stack({**GOOD, "kwok": {"apiServerPort": taken_port}})
    said = refused(project.pulumi("up", "--yes", "--skip-preview"))
    assert f"port {taken_port} (kwok.apiServerPort) is in use by pid {os.getpid()}" in said
    assert project.processes() == {}
    good(project)


def test_a_component_that_does_not_start_is_told_with_its_log_and_at_once(project: Project) -> None:
    project.write_stack({**GOOD, "kwok": {"featureGates": {"NoSuchGate": True}}})
    result = project.pulumi("up", "--yes", "--skip-preview")
    said = refused(result)
    assert "kube-apiserver of cluster quickstart ended" in said
    assert "last lines of the log of kube-apiserver:" in said
    assert "unrecognized feature gate: NoSuchGate" in said
    assert result.seconds < 30, "it is not waited for what has ended"
    processes.await_that(lambda: processes.helpers(project.home) == {}, 10, "nothing is left of the commands")
    calm(project)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_full_disk_is_told_before_anything_is_made(project: Project, small_disk: Path) -> None:
    project.home = small_disk / "home"
    project.environment[processes.HOME_VARIABLE] = str(project.home)
    project.write_stack(GOOD)
    said = refused(project.pulumi("up", "--yes", "--skip-preview"))
    assert f"no disk space: 16 MiB free at {project.home}, a control plane needs 1,024 MiB" in said
    assert project.processes() == {}
    subprocess.run(["mount", "-o", "remount,size=2g", small_disk], check=True)
    good(project)
    project.destroy()
