"""The disk with the clusters fills up amid a create, an update, an experiment: told, and the next command goes on."""

import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import disk, processes
from tests.support.project import NODES, ROOT, Project, Result

pytestmark = pytest.mark.e2e
GIB = 1 << 30
# More than fits into what is left once etcd's database cannot grow.
MANY, BALLAST = 200, 100_000
FEW = 4


def stack(nodes: int, ballast: int = 0) -> dict[str, Any]:
    template = {
        "metadata": {"annotations": {"example.com/ballast": "x" * ballast}},
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
    }
    groups = [("kept", FEW, {**template, "metadata": {}})]
    groups += [("heavy", nodes, template)] if nodes else []
    return {
        "nodeGroups": [
            {"name": name, "placement": [{"availabilityZone": "z", "replicas": count}], "nodeTemplate": wanted}
            for name, count, wanted in groups
        ]
    }


@pytest.fixture(scope="module")
def disk_of_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system of 2 GiB for the clusters alone."""
    made = tmp_path_factory.mktemp("disk")
    with disk.small(made, 2048):
        yield made


@pytest.fixture
def place(disk_of_clusters: Path) -> Iterator[Path]:
    """Where it is; there is room again afterwards, however far a test got."""
    yield disk_of_clusters
    if (disk_of_clusters / "filling").exists():
        roomy(disk_of_clusters)


@pytest.fixture(scope="module")
def project(disk_of_clusters: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """One project; a test that needs an empty database destroys the cluster of the one before."""
    made = Project(tmp_path_factory.mktemp("full"))
    made.keep_clusters_in(disk_of_clusters / "home")
    made.environment["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    try:
        yield made
    finally:
        made.close()


def full(place: Path) -> None:
    """Not a byte is left, which is seen by trying."""
    disk.resize(place, 0)
    disk.fill(place)


def roomy(place: Path) -> None:
    (place / "filling").unlink()
    disk.resize(place, GIB)


def told(failed: Result, place: Path) -> str:
    """What a command said, which failed and named the full disk in words."""
    assert failed.code != 0, failed.text
    assert "Traceback" not in failed.text
    assert re.search(rf"no disk space[^;]* at {place}/home", failed.text), failed.text[-3000:]
    return failed.text


def there(project: Project) -> set[str]:
    return {str(node["name"]) for node in project.api().metadata(NODES)}


def test_a_disk_that_fills_amid_a_create_is_told_and_the_next_up_goes_on_with_what_there_is(
    project: Project, place: Path
) -> None:
    project.write_stack(stack(0))
    # However little there is, it is refused before anything is made: a control plane needs 1 GiB.
    said = ""
    for spare in (4 << 10, 64 << 10, 16 << 20):
        disk.resize(place, spare)
        said = told(project.pulumi("up", "--yes", "--skip-preview"), place)
    assert f"no disk space: 16 MiB free at {project.home}, a control plane needs 1,024 MiB" in said
    disk.resize(place, GIB)
    project.up()
    assert there(project) == {f"kept-z-{ordinal}" for ordinal in range(FEW)}
    project.preview("--refresh", "--expect-no-changes")


TIMELINE = [
    {"scheduler": "stop"},
    {"resize": {"pool": "kept-z", "replicas": FEW + 2}},
    {"fault": {"name": "struck", "kubelet": "notReady", "target": {"names": ["kept-z-0"]}}},
    {"after": "created", "scheduler": "start"},
]
RECORDS = "/api/v1/namespaces/kube-system/configmaps"


def faults(project: Project) -> list[str]:
    return [each["name"] for each in project.api().metadata(RECORDS, labelSelector="kumulus.io/record=fault")]


def test_a_disk_that_fills_amid_an_experiment_ends_it_and_the_next_up_puts_all_back(
    project: Project, place: Path
) -> None:
    project.write_stack(stack(0))
    project.up()
    before = project.node_uids()
    file = project.directory / "experiment.yaml"
    work = {"name": "work", "jobs": 5000, "arrival": {"rate": 50}}
    file.write_text(yaml.safe_dump({"name": "struck", "workloads": [work], "timeline": TIMELINE, "settle": "5m"}))
    results = project.directory / "results"
    where = ["--kubeconfig", str(project.kubeconfig()), "--results", str(results)]
    line = [str(ROOT / "kumulus"), "experiment", "run", str(file), *where]
    with subprocess.Popen(line, env=project.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
        try:
            processes.await_amid(run, lambda: faults(project), 120)
            full(place)
            out, _ = run.communicate(timeout=240)
        finally:
            run.send_signal(signal.SIGKILL)
    said = out.decode(errors="replace")
    assert run.returncode not in (0, -signal.SIGKILL), said
    assert "Traceback" not in said
    assert re.search("no disk space|no space left", said), said[-3000:]
    roomy(place)
    again = project.up("--refresh")
    assert "experiment struck (run " in again.text + project.up().text
    assert project.node_uids() == before
    assert faults(project) == []
    assert not any(each["name"].startswith("experiment-") for each in project.api().metadata("/api/v1/namespaces"))
    project.preview("--refresh", "--expect-no-changes")


def test_a_disk_that_fills_amid_an_update_is_told_and_what_was_acknowledged_is_there(
    project: Project, place: Path
) -> None:
    project.write_stack(stack(0))
    if project.cluster().exists():
        # The database of a cluster that had an experiment has room for all of it.
        project.destroy()
    project.up()
    before = project.node_uids()
    project.write_stack(stack(MANY, BALLAST))
    full(place)
    told(project.pulumi("up", "--yes", "--skip-preview"), place)
    # etcd has met it, and has ended; its log had no room to say so.
    assert "quickstart/etcd" not in project.processes()
    roomy(place)
    project.up("--refresh")
    project.up()
    assert {name: uid for name, uid in project.node_uids().items() if name in before} == before
    assert there(project) == {*before, *(f"heavy-z-{ordinal}" for ordinal in range(MANY))}
    project.preview("--refresh", "--expect-no-changes")
