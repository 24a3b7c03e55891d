"""A real kind cluster: its nodes are containers, its add-on's pod really runs, beside a fleet that KWOK plays.

The tests share one stack and go through its life in their order.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.extras.kind_image import containers
from tests.support import docker, kind
from tests.support.api import Api
from tests.support.pods import JOBS, PODS, is_ready, is_running
from tests.support.processes import await_that
from tests.support.project import CLUSTER, NODES, ROOT, Project
from tests.support.tools import require

pytestmark = pytest.mark.e2e

NAME = f"kumulus-test-{os.getpid()}"
CONTROL_PLANE = f"{NAME}-control-plane"
FLEET = "type=kwok"
MADE = "karpenter.sh/nodepool"
SYSTEM = "/api/v1/namespaces/kube-system"
POOLS = 6
SHARDS = 4
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
# kwokCharts.leaseDurationSeconds, half of the default; after a quarter of it more, a controller looks at a lease again.
LEASE_S = 20
AGAIN_S = LEASE_S / 4
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "main", "image": "none"}]},
}
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "completions": 4,
        "parallelism": 4,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": {"type": "kwok"},
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "8"}}},
                ],
            }
        },
    },
}


@dataclass
class Stack:
    """gcp-small-kind with an add-on, on the node image that is made here."""

    project: Project
    """Its project."""
    cluster: dict[str, Any]
    """Its ``kumulus:cluster``, as up now."""
    port: int
    """Where the add-on answers."""

    def write(self) -> None:
        self.project.write_stack({**self.cluster, "kindConfig": kind.config(self.port)})

    def answers(self) -> str:
        """The name of the pod that answers."""
        await_that(lambda: kind.answering(self.port) != "", 90, "the add-on answers", 0.2)
        return kind.answering(self.port)

    def ready(self) -> dict[str, Any]:
        """The fleet's nodes, once there are as many as are declared and all are ready."""
        count = sum(each["replicas"] for group in self.cluster["nodeGroups"] for each in group["placement"])
        return dict(
            self.project.api(NAME).until(
                NODES,
                lambda nodes: len(nodes) == count and all(map(is_ready, nodes.values())),
                90,
                labelSelector=FLEET,
            )
        )


@pytest.fixture(scope="module")
def stack(module_project: Project) -> Iterator[Stack]:
    node_image = kind.node_image()
    module_project.install_plugins()
    cluster = module_project.copy_stack("gcp-small-kind")
    cluster.pop("kubernetesVersion")
    cluster |= {
        "name": NAME,
        "kind": {"nodeImage": node_image},
        "kwokCharts": {**kind.kwok_charts(), "leaseDurationSeconds": LEASE_S},
        "clusterAddons": [kind.hello()],
    }
    made = Stack(module_project, cluster, kind.free_port())
    yield made
    # However far it got; a test that passed has left none.
    for container in kind.containers(NAME):
        docker.docker("rm", "--force", "--volumes", container)


def test_up_makes_a_cluster_whose_add_on_runs_beside_an_emulated_fleet(stack: Stack) -> None:
    stack.write()
    stack.project.up(timeout=400)
    assert kind.containers(NAME) == {CONTROL_PLANE: "running"}
    assert len(stack.ready()) == 30
    api = stack.project.api(NAME)
    assert [node["metadata"]["name"] for node in api.list(NODES, labelSelector="type!=kwok")] == [CONTROL_PLANE]
    # What runs a node is for the real one.
    kept = {pod["spec"].get("nodeName", CONTROL_PLANE) for pod in api.list(f"{SYSTEM}/pods")}
    assert kept == {CONTROL_PLANE}
    [pod] = api.list("/api/v1/namespaces/web/pods")
    assert (is_running(pod), pod["spec"]["nodeName"]) == (True, CONTROL_PLANE)
    assert stack.answers() == pod["metadata"]["name"]
    assert stack.project.outputs()["capacity"]["gpus"] == 240
    stack.project.preview("--expect-no-changes")


def test_a_job_runs_on_emulated_nodes(stack: Stack) -> None:
    api = stack.project.api(NAME)
    api.create(JOBS, JOB)
    api.until(JOBS, lambda jobs: jobs["train"]["status"].get("succeeded") == 4)
    assert {pod["spec"]["nodeName"] for pod in api.list(PODS)} <= stack.ready().keys()
    api.delete(f"{JOBS}/train?propagationPolicy=Background")


def test_what_users_have_is_saved_and_put_back_and_the_add_on_stays(stack: Stack) -> None:
    api, stack_name = stack.project.api(NAME), stack.project.stack
    template = {**JOB["spec"]["template"], "metadata": {"labels": {"app": "shop"}}}
    spec = {**template["spec"], "restartPolicy": "Always"}
    owner = {"replicas": 3, "selector": {"matchLabels": {"app": "shop"}}, "template": {**template, "spec": spec}}
    api.create("/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "shop"}, "spec": owner})

    def standing(count: int) -> dict[str, str]:
        found = api.until(
            PODS,
            lambda pods: len(pods) == count and all(map(is_running, pods.values())),
            labelSelector="app=shop",
        )
        return {name: each["spec"]["nodeName"] for name, each in found.items()}

    before, web = standing(3), api.metadata("/api/v1/namespaces/web/pods")
    saved = stack.project.kumulus("snapshot", "save", "full", "-s", stack_name)
    assert saved.returncode == 0, saved.stderr
    api.merge("/apis/apps/v1/namespaces/default/deployments/shop", {"spec": {"replicas": 1}})
    standing(1)
    restored = stack.project.kumulus("snapshot", "restore", "full", "-s", stack_name)
    assert restored.returncode == 0, restored.stderr
    assert "left as they are, with a Helm release in them or a stack's own: web" in restored.stdout
    assert standing(3) == before
    assert api.metadata("/api/v1/namespaces/web/pods") == web
    stack.project.preview("--refresh", "--expect-no-changes")
    api.delete("/apis/apps/v1/namespaces/default/deployments/shop?propagationPolicy=Background")
    api.until(PODS, lambda pods: not pods, labelSelector="app=shop")
    # A snapshot is the user's: nothing of Kumulus removes it.
    shutil.rmtree(stack.project.home / "snapshots")


def test_resizing_previews_one_pool_and_creates_only_the_missing_nodes(stack: Stack) -> None:
    before = stack.project.node_uids(NAME)
    stack.cluster["nodeGroups"][0]["placement"][0]["replicas"] = 9
    stack.write()
    steps = stack.project.foresee().by_name
    assert {name: step.op for name, step in steps.items()} == {"a2-ultragpu-8g-use1": "update"}
    stack.project.up()
    stack.ready()
    after = stack.project.node_uids(NAME)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 4


def test_an_image_from_an_archive_gets_into_the_nodes_and_runs(stack: Stack, tmp_path: Path) -> None:
    archive = tmp_path / "images.tar"
    containers.write(archive, [containers.program("example.com/hello:loaded", toolchain.find("hello"))], tmp_path)
    command: list[str | Path] = [ROOT / "kumulus", "kind", "load", "image-archive", archive, "--name", NAME]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert answer.returncode == 0, answer.stderr
    stack.cluster["clusterAddons"][0]["valuesObject"] = {"image": "example.com/hello:loaded"}
    stack.write()
    before = stack.answers()
    stack.project.up()
    await_that(lambda: kind.answering(stack.port) not in ("", before), 60, "the new pod answers", 0.2)
    stack.cluster["clusterAddons"][0]["valuesObject"] = {}
    stack.write()
    stack.project.up()


def test_karpenter_is_a_deployment_that_makes_nodes_and_takes_them_away(stack: Stack, tmp_path: Path) -> None:
    require("karpenter")
    archive = tmp_path / "karpenter.tar"
    commands: tuple[list[str | Path], ...] = (
        ["image", "karpenter", "--to", archive, "--name", "example.com/karpenter:made"],
        ["kind", "load", "image-archive", archive, "--name", NAME],
    )
    for command in commands:
        answer = subprocess.run([ROOT / "kumulus", *command], capture_output=True, text=True, check=False, timeout=120)
        assert answer.returncode == 0, answer.stderr
    machine = {"zones": ["us-central1-a"], "instanceTypes": ["e2-standard-4"]}
    stack.cluster["autoscaler"] = {"name": "karpenter", "image": "example.com/karpenter:made", **machine}
    stack.write()
    stack.project.up()
    stack.project.preview("--expect-no-changes")
    api = stack.project.api(NAME)
    [pod] = [each for each in api.list(f"{SYSTEM}/pods") if each["metadata"]["name"].startswith("karpenter-")]
    assert (is_running(pod), pod["spec"]["nodeName"]) == (True, CONTROL_PLANE)
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "3"}}}
    for number in range(2):
        spec = {"containers": [container], "nodeSelector": {MADE: "default"}}
        api.create(PODS, {"metadata": {"name": f"scaled-{number}"}, "spec": spec})
    api.until(PODS, lambda pods: len(pods) == 2 and all(map(is_running, pods.values())), timeout=180)
    api.until(NODES, lambda nodes: len(nodes) == 2 and all(map(is_ready, nodes.values())), 60, labelSelector=MADE)
    for number in range(2):
        api.delete(f"{PODS}/scaled-{number}")
    # It takes them back by itself, as they are empty.
    api.until(NODES, lambda nodes: not nodes, 180, labelSelector=MADE)
    stack.cluster.pop("autoscaler")
    stack.write()
    stack.project.up()
    assert [each for each in api.list(f"{SYSTEM}/pods") if each["metadata"]["name"].startswith("karpenter-")] == []
    groups = {each["name"] for each in api.get("/apis")["groups"]}
    assert {"karpenter.sh", "karpenter.kwok.sh"} & groups == set()


def test_after_a_restart_of_the_machine_refresh_starts_the_nodes_again(stack: Stack) -> None:
    identity, before = stack.project.identity(NAME), stack.project.node_uids(NAME)
    docker.docker("stop", "--time", "5", CONTROL_PLANE, timeout=60)
    # Another container gets the node's address, as after a restart it may.
    docker.docker("run", "--detach", "--name", f"{NAME}-squatter", "--net", "kind", "--entrypoint", "sleep",
                  stack.cluster["kind"]["nodeImage"], "300")  # fmt: skip
    try:
        stack.project.up("--refresh", timeout=300)
    finally:
        docker.docker("rm", "--force", f"{NAME}-squatter")
    assert kind.containers(NAME) == {CONTROL_PLANE: "running"}
    assert stack.project.identity(NAME) == identity
    assert stack.project.node_uids(NAME) == before
    stack.ready()
    assert stack.answers()


def test_a_refresh_does_not_wait_long_for_a_silent_node_and_brings_it_back(stack: Stack) -> None:
    """A paused container accepts connections and says nothing: worse than one that is gone."""
    identity, before = stack.project.identity(NAME), stack.project.node_uids(NAME)
    docker.docker("pause", CONTROL_PLANE)
    # 140 s on a machine with little else to do: some eighteen requests, each of which waits for 8 s, as a preview's do.
    assert stack.project.up("--refresh", timeout=300).seconds < 240
    assert kind.containers(NAME) == {CONTROL_PLANE: "running"}
    assert stack.project.identity(NAME) == identity
    assert stack.project.node_uids(NAME) == before
    stack.ready()


def test_another_kind_config_replaces_the_cluster_and_everything_in_it(stack: Stack) -> None:
    identity, before = stack.project.identity(NAME), stack.project.node_uids(NAME)
    stack.port = kind.free_port()
    stack.write()
    foreseen = stack.project.foresee()
    steps = foreseen.by_name
    assert {name for name, step in steps.items() if step.op != "replace"} == set()
    assert len(steps) == 1 + POOLS
    changed = next(step for step in steps.values() if step.type == CLUSTER).changed
    assert list(changed) == ["options.kindConfig.nodes[0].extraPortMappings[0].hostPort"]
    assert stack.project.identity(NAME) == identity

    stack.project.up(timeout=500, shown=True)
    assert stack.project.identity(NAME) != identity
    assert kind.containers(NAME) == {CONTROL_PLANE: "running"}
    nodes = stack.ready()
    assert nodes.keys() | {CONTROL_PLANE} == before.keys()
    assert stack.answers()
    stack.project.preview("--expect-no-changes")


def test_nodes_of_a_kwok_controller_that_is_lost_are_taken_over_within_the_leases_time(stack: Stack) -> None:
    stack.cluster["kwokCharts"] |= {"shards": SHARDS}
    stack.write()
    stack.project.up()
    api, shards = stack.project.api(NAME), {name: shard(node) for name, node in stack.ready().items()}
    # The first controller had them all, and lets go of the others' within the time of a lease.
    before = api.until(LEASES, lambda leases: len(_holders(shards, leases)) == SHARDS, LEASE_S + AGAIN_S + 30)
    assert len({holder(before[name]) for name in shards}) == SHARDS
    lost = {name for name in shards if shards[name] == "2"}
    assert len(lost) > 5
    restarts = _restarts(api)
    _kill_controller(api, "2")
    killed = time.monotonic()
    for name in lost:
        _bind(api, f"amid-{name}", name)
    taken = api.until(
        LEASES,
        lambda leases: all(holder(leases[name]) != holder(before[name]) for name in lost),
        LEASE_S + AGAIN_S + 60,
    )
    seconds = time.monotonic() - killed
    print(f"{len(lost)} nodes were taken over within {seconds:.0f} s")
    again = _restarts(api)
    assert again["2"] == restarts["2"] + 1
    # Until the next controller is there, and the last lease has run out: a slow machine gets some seconds for both.
    assert seconds < LEASE_S + AGAIN_S + 60
    assert len({holder(taken[name]) for name in lost}) == 1
    # The kubelet of a busy machine may have started another controller again, too.
    kept = {name for name in shards if again[shards[name]] == restarts[shards[name]]}
    assert kept
    assert {name for name in kept if holder(taken[name]) != holder(before[name])} == set()
    for name in lost:
        _bind(api, f"after-{name}", name)
        # KWOK may have passed over one that was bound while nobody had its node, and looks again when it changes.
        api.merge(f"{PODS}/amid-{name}", {"metadata": {"annotations": {"looked-at": "again"}}})
    mine = {f"{when}-{name}" for name in lost for when in ("amid", "after")}
    api.until(PODS, lambda pods: all(is_running(pods[name]) for name in mine), 30)
    for name in mine:
        api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")
    stack.ready()


def _bind(api: Api, name: str, node: str) -> None:
    api.create(PODS, {**POD, "metadata": {"name": name}, "spec": {**POD["spec"], "nodeName": node}})


def _holders(shards: Mapping[str, str], leases: Mapping[str, dict[str, Any]]) -> set[tuple[str, str]]:
    """Each shard with who holds leases of its nodes; of a shard with two it has two, and of two with one that, too."""
    found = {(shards[name], holder(leases[name])) for name in shards if name in leases}
    return found if len({who for _, who in found}) == SHARDS else set()


def holder(lease: dict[str, Any]) -> str:
    return str(lease["spec"]["holderIdentity"])


def shard(node_or_controller: dict[str, Any]) -> str:
    return str(node_or_controller["metadata"]["labels"]["kumulus.io/shard"])


def _restarts(api: Api) -> dict[str, int]:
    """How often each shard's controller has been started again."""
    pods = api.list(f"{SYSTEM}/pods", labelSelector="kumulus.io/shard")
    return {shard(pod): int(pod["status"]["containerStatuses"][0]["restartCount"]) for pod in pods}


def _kill_controller(api: Api, number: str) -> None:
    """Kill the process of a shard's controller."""
    [pod] = api.list(f"{SYSTEM}/pods", labelSelector=f"kumulus.io/shard={number}")
    # Its container's are all processes of the pod but the one that only holds the namespaces.
    group = pod["metadata"]["uid"].replace("-", "_")
    each = "while read pid; do readlink /proc/$pid/exe; echo $pid; done"
    found = f"grep -l {group} /proc/[0-9]*/cgroup | cut -d/ -f3 | {each}"
    lines = docker.docker("exec", CONTROL_PLANE, "sh", "-c", found).split()
    [pid] = [pid for program, pid in zip(lines[::2], lines[1::2], strict=True) if "kwok" in program]
    docker.docker("exec", CONTROL_PLANE, "kill", "-9", pid)


def test_destroy_leaves_no_container_file_or_process(stack: Stack) -> None:
    stack.project.destroy()
    assert kind.containers(NAME) == {}
    assert not stack.project.home.exists()
    assert kind.answering(stack.port) == ""
