"""The large fleet: 2,550 nodes with 20,400 GPUs, KEMU's workload on it, and what happens when its up is killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Any

import pytest

from tests.support import processes
from tests.support.api import Refused
from tests.support.kemu import needs_examples, workload
from tests.support.pods import ALL_PODS, JOBS, is_ready, is_running
from tests.support.project import NODES, Project, Result, Running

pytestmark = pytest.mark.e2e

GPU = "nvidia.com/gpu"
POOLS = {"a2-ultragpu-8g": 500, "a3-highgpu-8g": 250, "a3-ultragpu-8g": 100}
WANTED = {
    f"{group}-{zone}-{ordinal}"
    for group, count in POOLS.items()
    for zone in ("use1", "use2", "use3")
    for ordinal in range(count)
}
JOBS_OF_KEMU = {
    "job-a100-no-affinity-100-workers": 15,
    "job-h100-no-affinity-50-workers": 15,
    "job-h200-no-affinity-25-workers": 12,
}


def gcp_large(project: Project) -> Project:
    """The project with the stack gcp-large as its current one."""
    project.copy_stack("gcp-large")
    return project


@pytest.fixture(scope="module")
def large(module_project: Project) -> Project:
    """A project for the tests that share one running gcp-large."""
    return gcp_large(module_project)


def begun(project: Project) -> Running:
    """An up that has made some of the nodes, but not all of them."""
    command = project.start("up", "--yes", "--skip-preview")
    processes.await_that(lambda: count(project) > 100 or command.process.poll() is not None, 60, "some nodes are there")
    assert command.process.poll() is None
    assert count(project) < len(WANTED)
    return command


def count(project: Project) -> int:
    try:
        return len(project.api().metadata(NODES))
    except (OSError, Refused):
        return 0


def assert_whole(project: Project) -> None:
    """Exactly the wanted nodes are there, and one process of each component."""
    assert project.node_uids().keys() == WANTED
    assert {name: len(pids) for name, pids in project.processes().items()} == {
        f"gcp-large/{name}": 1
        for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")
    }
    processes.await_that(lambda: helpers(project) == [], 15, "nothing is left of the commands")


def helpers(project: Project) -> list[str]:
    """What the commands left running, Pulumi's language host aside: it looks for its engine every five minutes."""
    return [line for line in processes.helpers(project.home).values() if "/pulumi-language-python " not in line]


def test_killed_pulumi_is_finished_by_the_next_up(project: Project) -> None:
    large = gcp_large(project)
    command = begun(large)
    command.process.kill()
    command.result()
    there = large.node_uids()
    assert 0 < len(there) < len(WANTED)

    locked = large.pulumi("up", "--yes", "--skip-preview")
    assert locked.code != 0
    assert "pulumi cancel" in locked.text, "this is what Pulumi itself asks for"
    assert large.pulumi("cancel", "--yes").code == 0
    finished = large.up()
    assert "interrupted while creating" in finished.text
    assert there.items() <= large.node_uids().items(), "what was there has not been made again"
    assert_whole(large)
    large.destroy()


def test_a_killed_plugin_is_finished_by_the_next_up(project: Project) -> None:
    large = gcp_large(project)
    command = begun(large)
    [plugin] = [pid for pid, line in processes.helpers(large.home).items() if line.endswith(address(line))]
    os.kill(plugin, signal.SIGKILL)
    failed = command.result()
    assert failed.code != 0
    assert "Traceback" not in failed.text
    there = large.node_uids()
    assert 0 < len(there) < len(WANTED)

    finished: Result = large.up()
    assert "Traceback" not in finished.text
    assert there.items() <= large.node_uids().items(), "what was there has not been made again"
    assert_whole(large)
    large.destroy()


def address(line: str) -> str:
    """The end of our plugin's command line; no other line ends so."""
    return f"-m provider {line.rpartition(' ')[2]}"


def test_two_and_a_half_thousand_nodes_come_up_ready(large: Project) -> None:
    result = large.up()
    nodes = large.api().list(NODES)
    assert {node["metadata"]["name"] for node in nodes} == WANTED
    assert all(map(is_ready, nodes))
    assert sum(int(node["status"]["allocatable"][GPU]) for node in nodes) == 20_400
    assert large.outputs()["capacity"]["gpus"] == 20_400
    # 30 s are promised; a machine that does other work meanwhile gets twice that.
    assert result.seconds < 60
    large.preview("--expect-no-changes")


@needs_examples
def test_the_workload_of_kemu_takes_every_gpu(large: Project) -> None:
    if not large.home.exists():
        large.up()
    api = large.api()
    for name, times in JOBS_OF_KEMU.items():
        manifest = workload(name)
        for _ in range(times):
            api.create(JOBS, manifest)

    def all_ready(jobs: Any) -> bool:
        return len(jobs) == 42 and sum(job["status"].get("ready", 0) for job in jobs.values()) == 2550

    api.until(JOBS, all_ready, 240)
    pods = api.list(ALL_PODS)
    assert len(pods) == 2550
    assert all(map(is_running, pods))
    taken: Counter[str] = Counter()
    for pod in pods:
        for container in pod["spec"]["containers"]:
            taken[pod["spec"]["nodeName"]] += int(container["resources"]["requests"][GPU])
    assert taken == dict.fromkeys(WANTED, 8)
    gone = large.destroy()
    assert gone.seconds < 30
    assert not large.home.exists()
