"""The kind runtime where its tools fail or are not there, and whose clusters it touches."""

import asyncio
import errno
import json
import os
import shutil
import signal
import stat
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from aiohttp import web

from kumulus.host import files, inotify, installation, processes
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.cluster import ClusterResource
from kumulus.provider.resources.cluster_place import UNSHOWN
from kumulus.runtimes import directories
from kumulus.runtimes.base import Observed, RecordedControlPlane, WantedControlPlane
from kumulus.runtimes.directories import exclusive
from kumulus.runtimes.kind import containers, creating
from kumulus.runtimes.kind import runtime as kind
from kumulus.runtimes.kind.containers import ContainerEngine
from kumulus.runtimes.kind.place import KindPlace
from kumulus.runtimes.kind.runtime import KindRuntime
from tests.support.apiserver import listening
from tests.support.said import Said
from tests.unit.runtimes.kind.standin import StandIn

CONFIG = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4"}
ME = "this stack"
DAEMON_SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"


@dataclass
class Bench:
    """The runtime with stand-ins for docker and kind, and an API server whose answers a test decides on."""

    tools: StandIn
    home: Path
    uid: str = "uid-1"
    ready: bool = True
    answers: bool = True
    starting: int = 0
    daemon_sets: list[dict[str, Any]] = field(default_factory=list)
    patches: dict[str, dict[str, Any]] = field(default_factory=dict)
    schemas: list[str] = field(default_factory=list)
    said: Said = field(default_factory=Said)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.starting:
            self.starting -= 1
            return web.json_response({"message": "cannot get path /readyz", "code": 403}, status=403)
        if not self.answers:
            return web.Response(status=503)
        if request.path == "/openapi/v2":
            self.schemas.append(request.headers["Accept"])
        if request.path == "/api/v1/nodes":
            condition = {"type": "Ready", "status": str(self.ready), "message": "cni plugin not initialized"}
            return web.json_response({"items": [{"metadata": {"name": "n"}, "status": {"conditions": [condition]}}]})
        if request.path == DAEMON_SETS:
            return web.json_response({"items": self.daemon_sets})
        if request.method == "PATCH":
            self.patches[request.path.removeprefix(f"{DAEMON_SETS}/")] = await request.json()
        return web.json_response({"metadata": {"uid": self.uid}})

    def wanted(self, owner: str = ME, version: str = "", **options: Any) -> WantedControlPlane:
        return WantedControlPlane("dev", owner, str(self.home), version, options)

    async def create(self, owner: str = ME, version: str = "", **options: Any) -> Observed:
        return await KindRuntime().create(self.wanted(owner, version, **options), self.said, self.stop)

    async def node_is_made(self) -> None:
        """Wait until kind has come so far."""
        while "dev-control-plane" not in self.tools.nodes:  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.02)

    async def kind_has_begun(self) -> None:
        """Wait until kind was asked for the cluster, of which it has made nothing yet."""
        while not any(call.startswith("kind create") for call in self.tools.asked()):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.02)

    async def refused(self, owner: str = ME, **options: Any) -> str:
        """What a creation that fails is told; it has to leave nothing."""
        with pytest.raises(ProviderError) as raised:
            await self.create(owner, **options)
        return str(raised.value)

    async def read(self, seen: Observed, owner: str = ME) -> Observed | None:
        return await KindRuntime().read(self.recorded(seen, owner), self.said)

    async def repair(self, seen: Observed) -> Observed:
        return await KindRuntime().repair(self.wanted(), seen.identity, self.said)

    async def delete(self, seen: Observed, owner: str = ME) -> None:
        await KindRuntime().delete(self.recorded(seen, owner), self.said)

    def recorded(self, seen: Observed, owner: str = ME) -> RecordedControlPlane:
        return RecordedControlPlane.of(self.wanted(owner), seen)

    async def differences(self, seen: Observed, **recorded: Any) -> dict[str, str]:
        """What an update that nobody has seen a preview of would do to the cluster, by path."""
        cluster = ClusterResource({"kind": KindRuntime()}, Connections())
        inputs = cluster.check({}, {"name": "dev", "runtime": "kind", "home": str(self.home)}, "/").inputs
        place = {"directory": seen.directory, "kubeconfig": seen.kubeconfig, "identity": seen.identity}
        old = {**inputs, **place, "owner": ME, "configuration": "", **recorded}
        return {each.path: each.kind for each in await cluster.compare(old, inputs)}

    @property
    def directory(self) -> Path:
        return self.home / "clusters" / "dev"

    def note(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.directory / "kumulus.json").read_text())
        return found

    def left(self) -> list[str]:
        """What there is of the cluster: containers and files."""
        return [*self.tools.nodes, *(str(each) for each in self.home.rglob("*") if each.is_file())]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    tools = StandIn(tmp_path / "bin")
    made = Bench(tools, tmp_path / "home")
    monkeypatch.setenv("PATH", f"{tools.directory}:{os.environ['PATH']}")
    monkeypatch.delenv("KIND_EXPERIMENTAL_PROVIDER", raising=False)
    monkeypatch.setenv(UNSHOWN, "1")
    # The machine's own engine, if it has one, is not asked for anything.
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    monkeypatch.setattr(creating, "executable", lambda: tools.kind)
    async with listening(made.handle) as address:
        tools.serves(address)
        yield made


# --- tools that fail or are not there --------------------------------------------------------------------------------


async def test_without_docker_the_message_names_the_ways_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    said = await bench.refused()
    assert said.startswith("docker is not installed, and the nodes of the runtime kind are its containers; ")
    assert "kind.provider: podman" in said
    assert "runtime: kwok" in said
    assert not bench.home.exists()


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            "Docker's engine does not run: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. "
            "Is the docker daemon running?; start it (`systemctl start docker`)",
        ),
        (
            "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct",
            "Docker's engine does not run: failed to connect",
        ),
        (
            "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock",
            "Docker may not be used by this user: permission denied while trying to connect to the docker API at "
            "unix:///var/run/docker.sock; add the user to the group docker",
        ),
        ("flag provided but not defined: -last", "`docker ps` failed: flag provided but not defined: -last"),
    ],
)
async def test_an_engine_that_cannot_be_used_is_told_with_what_to_do(bench: Bench, says: str, told: str) -> None:
    bench.tools.answers("docker ps", says)
    assert (await bench.refused()).startswith(told)
    assert not bench.home.exists()
    assert not [call for call in bench.tools.asked() if call.startswith("kind")]


async def test_the_engine_s_end_is_told_by_the_real_docker(bench: Bench) -> None:
    (bench.tools.directory / "docker").unlink()
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    assert (await bench.refused()).startswith("Docker's engine does not run: ")


async def test_an_engine_that_hangs_is_not_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers.ContainerEngine._run, "__kwdefaults__", {"timeout": 0.3})
    bench.tools.answers("docker ps", seconds=60)
    assert "Docker does not answer: `docker ps` took more than 0 s; restart its engine" in await bench.refused()


async def test_kind_that_does_not_say_whose_a_cluster_is_leaves_it_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await bench.create()
    for file in bench.directory.iterdir():
        file.unlink()
    bench.directory.rmdir()
    monkeypatch.setattr(creating, "_READ_S", 0.3)
    bench.tools.answers("kind get", seconds=60)
    assert await bench.read(seen) is None
    assert bench.said.messages[-1].endswith("it is left alone")


async def test_kind_that_is_missing_is_told_with_how_to_get_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from kumulus import toolchain

    def find(tool: str) -> Path:
        raise toolchain.ToolMissing(f"{tool} v0.33.0 is missing\n  To get it: ./kumulus tools --with kind")

    monkeypatch.undo()
    monkeypatch.setattr(toolchain, "find", find)
    said = await bench.refused()
    assert said.startswith("the runtime kind needs kind: kind v0.33.0 is missing")
    assert "./kumulus tools --with kind" in said


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (
            'ERROR: failed to create cluster: failed to pull image "kindest/node:v9": command "docker pull '
            'kindest/node:v9" failed with error: exit status 1\n\nCommand Output: Error response from daemon: '
            'Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host',
            "the node image kindest/node:v9 cannot be pulled: Error response from daemon: Get "
            '"https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host; check its name '
            "and the network, log in to its registry (`docker login`), or name an image that is there as "
            f"kind.nodeImage (`{installation.command()} kind-image` makes one without a registry)",
        ),
        (
            "ERROR: failed to create cluster: unable to decode config: yaml: unmarshal errors:\n"
            "  line 4: cannot unmarshal !!str `many` into int32",
            "kindConfig: kind cannot read it: cannot unmarshal !!str `many` into int32 (at 'podSubnet: 100.64.0.0/10')"
            "; correct it in the stack file",
        ),
        (
            "ERROR: failed to create cluster: [invalid ipFamily: ipv5, must have at least one control-plane node]",
            "kindConfig: [invalid ipFamily: ipv5, must have at least one control-plane node]; correct it in the stack",
        ),
        (
            'ERROR: failed to create cluster: command "docker run --name dev-control-plane --hostname '
            'dev-control-plane --label io.x-k8s.kind.role=control-plane img@sha256:1" failed with error: exit status '
            "125\n\nCommand Output: docker: Error response from daemon: driver failed programming external "
            "connectivity: Bind for 127.0.0.1:6443 failed: port is already allocated.",
            "the address 127.0.0.1:6443 is in use on this machine; write another port in kindConfig",
        ),
        (
            'ERROR: failed to create cluster: failed to init node with kubeadm: command "docker exec --privileged '
            'dev-control-plane kubeadm init --config=/kind/kubeadm.conf --v=6" failed with error: exit status 1\n\n'
            "Command Output: I1121 11:00:00 initconfiguration.go:261] loading configuration\n"
            "error execution phase wait-control-plane: timed out",
            "kind could not make the cluster: failed to init node with kubeadm: docker exec: exit status 1: "
            "error execution phase wait-control-plane: timed out",
        ),
        ("Killed", "kind could not make the cluster: it ended with exit code 1: Killed"),
    ],
)
async def test_what_kind_says_becomes_a_line_with_a_remedy_and_nothing_is_left(
    bench: Bench, says: str, told: str
) -> None:
    bench.tools.answers("kind create", says)
    said = await bench.refused(kindConfig=CONFIG)
    assert said.startswith(told)
    assert len(said) < 700
    assert bench.left() == []


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (
            128,
            "all of the 128 inotify instances that a user may have here: `sudo sysctl fs.inotify.max_user_instances=",
        ),
        (8192, "`docker logs kind-control-plane` then says why"),
        (None, "`docker logs kind-control-plane` then says why"),
    ],
)
async def test_where_a_node_did_not_boot_the_usual_cause_is_named_if_it_can_be(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, limit: int | None, told: str
) -> None:
    monkeypatch.setattr(inotify, "limit", lambda: limit)
    # kubernetes-sigs/kind#2972
    line = '"Reached target .*Multi-User System.*|detected cgroup v1"'
    bench.tools.answers(
        "kind create", f"ERROR: failed to create cluster: could not find a log line that matches {line}"
    )
    said = await bench.refused(kindConfig=CONFIG)
    assert said.startswith("kind could not make the cluster: a node's container runs, but its system did not start; ")
    assert told in said
    assert bench.left() == []


@pytest.mark.parametrize("networking", [{}, {"disableDefaultCNI": True}])
async def test_daemon_sets_of_a_new_cluster_pass_over_emulated_nodes(bench: Bench, networking: dict[str, Any]) -> None:
    # Without kind's own network, nodes are not waited for.
    bench.ready = not networking

    def daemon_set(name: str, **pod: Any) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"template": {"spec": pod}}}

    chosen: dict[str, Any] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    }
    bench.daemon_sets = [daemon_set("kube-proxy"), daemon_set("network", affinity=chosen)]
    await bench.create(kindConfig={**CONFIG, "networking": networking}, wait="1s")
    (pod,) = [patch["spec"]["template"]["spec"] for name, patch in bench.patches.items() if name == "kube-proxy"]
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {"key": "type", "operator": "NotIn", "values": ["kwok"]} in term["matchExpressions"]
    # One that chooses its nodes itself is left as it is.
    assert bench.patches.keys() == {"kube-proxy"}
    # Pulumi's provider asks for the same, and does not wait until the server has put it together.
    assert bench.schemas == ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf"]


async def test_nodes_that_do_not_become_ready_are_told_with_their_reason(bench: Bench) -> None:
    bench.ready = False
    said = await bench.refused(wait="1s")
    assert "1 of cluster dev's nodes did not become ready within 1 s (n: cni plugin not initialized)" in said
    assert "kind.wait can be longer" in said
    assert bench.left() == []


# --- what kind is given ----------------------------------------------------------------------------------------------


async def test_kind_gets_the_stack_s_configuration_and_its_image(bench: Bench) -> None:
    nodes = [{"role": "control-plane", "image": "own:1"}]
    config = {**CONFIG, "nodes": nodes, "networking": {"podSubnet": "10.1.0.0/16"}}
    seen = await bench.create(kindConfig=config, nodeImage="example.com/node:v1")
    given = yaml.safe_load((bench.directory / "kind.yaml").read_text())
    # For its metrics, whether anybody asks now or later: kind changes nothing in place.
    assert [yaml.safe_load(patch)["kind"] for patch in given.pop("kubeadmConfigPatches")] == [
        "ClusterConfiguration",
        "KubeProxyConfiguration",
    ]
    assert given == config
    (call,) = [each for each in bench.tools.asked() if each.startswith("kind create")]
    assert call.endswith(f"--kubeconfig {seen.kubeconfig} --image example.com/node:v1")
    assert bench.said.statuses[:2] == ["kind: ensuring node image (kindest/node:v1)", "kind: preparing nodes"]
    assert [mode(Path(seen.kubeconfig)), mode(bench.directory)] == [0o600, 0o700]


@pytest.mark.parametrize(("version", "flag"), [("v1.35.4", "--image kindest/node:v1.35.4"), ("", "kubeconfig.yaml")])
async def test_a_kubernetes_version_is_a_node_image_and_none_is_kind_s_own(
    bench: Bench, version: str, flag: str
) -> None:
    await bench.create(version=version)
    (call,) = [each for each in bench.tools.asked() if each.startswith("kind create")]
    assert call.endswith(flag)


# --- whose cluster it is ---------------------------------------------------------------------------------------------


async def test_somebody_else_s_cluster_is_refused_and_left_alone(bench: Bench) -> None:
    bench.tools.add("dev", "7")
    said = await bench.refused()
    assert "a kind cluster named 'dev' that this stack did not make is there (dev-control-plane)" in said
    assert "kind: {adopt: true}" in said
    assert "runtime: existing" in said
    assert list(bench.tools.nodes) == ["dev-control-plane"]
    assert not bench.directory.exists()


@pytest.mark.parametrize("while_it", ["check", "pull"])
async def test_a_cluster_that_somebody_else_makes_first_is_left_alone(bench: Bench, while_it: str) -> None:
    taken = 'ERROR: failed to create cluster: node(s) already exist for a cluster with the name "dev"'
    full = 'ERROR: failed to create cluster: failed to pull image "kindest/node:v9": exit status 1'
    bench.tools.answers(f"kind {while_it}", taken if while_it == "check" else full, seconds=1.0)
    refused = asyncio.ensure_future(bench.refused())
    await bench.kind_has_begun()
    bench.tools.add("dev", "7")
    said = await refused
    if while_it == "check":
        assert "a kind cluster named 'dev' that this stack did not make is there; it is left alone. Set anoth" in said
    assert list(bench.tools.nodes) == ["dev-control-plane"]
    assert not bench.directory.exists()


async def test_a_creation_that_is_cancelled_while_the_image_is_pulled_removes_no_container(bench: Bench) -> None:
    bench.tools.answers("kind pull", seconds=60)
    refused = asyncio.ensure_future(bench.refused())
    await bench.kind_has_begun()
    bench.tools.add("dev", "7")
    while not bench.said.statuses:  # noqa: ASYNC110 - another process says it
        await asyncio.sleep(0.02)
    bench.stop.set()
    assert "cancelled while kind was making cluster dev; nothing of it is left" in await refused
    assert list(bench.tools.nodes) == ["dev-control-plane"]
    assert not bench.directory.exists()


async def test_a_cluster_is_adopted_when_the_stack_says_so_and_then_deleted_with_it(bench: Bench) -> None:
    bench.tools.add("dev", "7", state="exited")
    seen = await bench.create(adopt=True)
    assert (seen.identity, seen.health) == ("uid-1", "running")
    assert not [call for call in bench.tools.asked() if call.startswith("kind create")]
    assert "is taken over" in bench.said.messages[0]
    assert await bench.read(seen) == seen
    await bench.delete(seen)
    assert bench.left() == []


async def test_an_adoption_that_fails_takes_nothing_over(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "_STARTED_S", 0.2)
    bench.tools.add("dev", "7")
    bench.answers = False
    assert "does not answer" in await bench.refused(adopt=True)
    assert list(bench.tools.nodes) == ["dev-control-plane"]
    assert not bench.directory.exists()


async def test_another_stack_s_cluster_is_refused_and_never_deleted(bench: Bench) -> None:
    seen = await bench.create()
    assert "(made by this stack)" in await bench.refused("another stack", adopt=True)
    await bench.delete(seen, "another stack")
    assert bench.said.messages == [f"{bench.directory} now belongs to this stack; it is left alone"]
    assert await bench.read(seen) == seen


async def test_what_another_stack_makes_while_a_destroy_waits_is_left_alone(bench: Bench) -> None:
    seen = await bench.create()
    place = KindPlace(bench.directory)
    async with exclusive(place):
        destroy = asyncio.create_task(bench.delete(seen))
        await asyncio.sleep(0.5)
        bench.tools.remove()
        bench.tools.add("dev", "7")
        place.write_note({**place.note(), "owner": "another stack"})
    await destroy
    assert bench.said.messages == [f"{bench.directory} now belongs to another stack; it is left alone"]
    assert [node["id"] for node in bench.tools.nodes.values()] == ["7"]
    assert place.kubeconfig.exists()


async def test_a_cluster_made_anew_by_hand_is_not_ours_and_is_not_deleted(bench: Bench) -> None:
    seen = await bench.create()
    bench.tools.remove()
    bench.tools.add("dev", "7")
    assert await bench.read(seen) is None
    assert "another kind cluster named dev stands in the place of this stack's" in bench.said.messages[-1]
    with pytest.raises(ProviderError, match="up --refresh"):
        await bench.repair(seen)
    await bench.delete(seen)
    assert "is not the one this stack made; it is left alone" in bench.said.messages[-1]
    assert [node["id"] for node in bench.tools.nodes.values()] == ["7"]
    assert not bench.directory.exists()


async def test_another_identity_is_another_cluster_and_its_repair_does_not_change_whose_it_is(
    bench: Bench,
) -> None:
    seen = await bench.create("another stack")
    bench.uid = "uid-2"
    assert await bench.read(seen, "another stack") is None
    with pytest.raises(ProviderError, match=r"another cluster \(identity uid-2\) answers in place of dev"):
        await bench.repair(seen)
    assert bench.note()["owner"] == "another stack"
    bench.uid = "uid-1"
    await bench.repair(seen)
    assert bench.note()["owner"] == ME


async def test_a_repair_on_a_full_disk_says_so_and_names_no_other_disk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await bench.create("another stack")

    def write(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write", write)
    with pytest.raises(ProviderError) as raised:
        await bench.repair(seen)
    assert str(raised.value) == f"no disk space left at {bench.home}; free some, and run `pulumi up --refresh`"


async def test_a_cluster_whose_files_are_lost_is_known_by_its_identity_and_restored(bench: Bench) -> None:
    seen = await bench.create()
    shutil.rmtree(bench.directory)
    assert await bench.differences(seen) == {"status": "update"}
    assert await bench.differences(seen, status="degraded") == {"status": "update"}
    with pytest.raises(ProviderError, match="would be replaced"):
        await bench.differences(seen, options={"nodeImage": "other"})
    found = await bench.read(seen)
    assert found is not None
    assert (found.health, found.components["kubeconfig"]) == ("degraded", "lost")
    # Before a forced replacement, whose state is not known: it is there, and consent is asked for.
    assert await KindRuntime().read(replace(bench.recorded(seen), identity=""), bench.said) == found
    assert await bench.repair(seen) == seen
    assert await bench.read(seen) == seen
    for file in bench.directory.iterdir():
        file.unlink()
    await bench.delete(seen)
    assert bench.tools.nodes == {}
    # Now it is gone, and is made again without a word.
    for recorded in ({}, {"status": "degraded"}, {"options": {"nodeImage": "other"}}):
        assert (await bench.differences(seen, **recorded))["status"] == "update-replace"


async def test_a_cluster_whose_files_are_lost_and_that_is_another_is_left_alone(bench: Bench) -> None:
    seen = replace(await bench.create(), identity="uid-0")
    for file in bench.directory.iterdir():
        file.unlink()
    assert await bench.read(seen) is None
    assert "left alone" in bench.said.messages[-1]
    await bench.delete(seen)
    assert list(bench.tools.nodes) == ["dev-control-plane"]


# --- read and repair -------------------------------------------------------------------------------------------------


async def test_a_cluster_that_is_gone_is_none_and_a_lost_node_makes_it_incomplete(bench: Bench) -> None:
    seen = await bench.create()
    bench.tools.add("other", "8", "worker")
    note = bench.note()
    made = {**json.loads(note["containers"]), "dev-worker": "9"}
    (bench.directory / "kumulus.json").write_text(json.dumps({**note, "containers": json.dumps(made)}))
    found = await bench.read(seen)
    assert found is not None
    assert (found.health, found.components["dev-worker"]) == ("incomplete", "missing")
    with pytest.raises(ProviderError, match="or a part of it, is gone; `pulumi up --refresh` makes it again"):
        await bench.repair(seen)
    bench.tools.remove("dev-control-plane")
    assert await bench.read(seen) is None


@pytest.mark.parametrize(("state", "component"), [("exited", "stopped"), ("paused", "paused"), ("created", "stopped")])
async def test_nodes_that_do_not_run_are_started(bench: Bench, state: str, component: str) -> None:
    seen = await bench.create()
    # Seen of a real one: it answers before it knows who may do what.
    bench.starting = 3
    bench.tools.set_state(state)
    found = await bench.read(seen)
    assert found is not None
    assert (found.health, found.components["dev-control-plane"]) == ("stopped", component)
    assert await bench.repair(seen) == seen


async def test_a_server_that_is_silent_is_restarted_and_given_up_on_in_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kind._LOOK_S + kind._RUNNING_S + kind._RESTARTED_S <= 40
    assert kind._STARTED_S <= 45
    seen = await bench.create()
    bench.answers = False
    found = await bench.read(seen)
    assert found is not None
    assert (found.health, found.components["kube-apiserver"]) == ("degraded", "unhealthy")
    monkeypatch.setattr(kind, "_RUNNING_S", 0.2)
    monkeypatch.setattr(kind, "_RESTARTED_S", 0.2)
    with pytest.raises(ProviderError, match=r"does not answer within 0 s: .*`docker logs dev-control-plane`"):
        await bench.repair(seen)
    assert [call for call in bench.tools.asked() if call.startswith("docker restart")]
    bench.answers = True
    assert await bench.repair(seen) == seen


async def test_a_silent_server_s_log_is_asked_of_the_engine_that_has_it(bench: Bench) -> None:
    cluster = kind._Cluster(KindPlace(bench.directory), ContainerEngine("podman"), bench.said)
    with pytest.raises(ProviderError, match="`podman logs dev-control-plane` says more"):
        await cluster._identity(0.1)


async def test_an_engine_that_ended_is_an_error_for_every_operation(bench: Bench) -> None:
    seen = await bench.create()
    bench.tools.answers("docker ps", "Cannot connect to the Docker daemon")
    for work in (bench.read, bench.repair):
        with pytest.raises(ProviderError, match="Docker's engine does not run"):
            await work(seen)
    with pytest.raises(ProviderError, match=r"does not run.*\n.*pulumi state delete"):
        await bench.delete(seen)


# --- killed and cancelled --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [False, True], ids=["the user", "the call"])
async def test_cancelling_ends_kind_and_leaves_nothing(bench: Bench, call: bool) -> None:
    bench.tools.answers("kind create", seconds=60)
    work = asyncio.create_task(bench.create())
    await bench.node_is_made()
    if call:
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(work, 20)
    else:
        bench.stop.set()
        with pytest.raises(ProviderError, match="cancelled while kind was making cluster dev; nothing of it is left"):
            await asyncio.wait_for(work, 20)
    assert bench.left() == []


async def test_a_container_that_is_still_being_made_is_waited_for_and_then_removed(bench: Bench) -> None:
    # Listed by its name, and not there yet: as seen of Docker 20.10 on a busy machine when kind was killed.
    bench.tools.answers("kind create", "ERROR: failed to create cluster: out of luck")
    bench.tools.answers("kind delete", "ERROR: failed to delete nodes: Error: No such container: dev-control-plane")
    threading.Timer(3.0, bench.tools.forget, ["kind delete"]).start()
    assert (await bench.refused()).startswith("kind could not make the cluster: out of luck")
    assert bench.left() == []


async def test_a_removal_that_says_nothing_and_removes_nothing_is_tried_again(bench: Bench) -> None:
    # `docker rm --force` of newer versions ends well for a container that is not there yet.
    bench.tools.answers("kind create", "ERROR: failed to create cluster: out of luck")
    bench.tools.keep_until_asked("kind delete", times=3)
    assert (await bench.refused()).startswith("kind could not make the cluster: out of luck")
    assert bench.left() == []


async def test_a_container_that_cannot_be_looked_at_yet_is_looked_at_again(bench: Bench) -> None:
    seen = await bench.create()
    bench.tools.answers("docker inspect", "Error: No such object: 100")
    asyncio.get_running_loop().call_later(1.0, bench.tools.forget, "docker inspect")
    assert await bench.read(seen) == seen


async def test_what_could_not_be_removed_is_told_and_removed_by_the_next(bench: Bench) -> None:
    bench.tools.answers("kind create", "ERROR: failed to create cluster: out of luck")
    bench.tools.answers("kind delete", "ERROR: failed to delete nodes: the engine ended")
    said = await bench.refused()
    assert said.startswith("kind could not make the cluster: out of luck\n  What there is of it stays until the next")
    assert bench.note()["state"] == "creating"
    for command in ("kind create", "kind delete"):
        bench.tools.answers(command, code=0)
    await bench.create()
    assert len(bench.tools.nodes) == 1


async def test_what_a_killed_create_left_is_removed_by_the_next(bench: Bench) -> None:
    killed = f"""
import asyncio
from unittest.mock import Mock
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kind import creating
from kumulus.runtimes.kind.runtime import KindRuntime
creating.executable = lambda: {bench.tools.kind!r}
wanted = WantedControlPlane("dev", {ME!r}, {str(bench.home)!r}, "", {{}})
asyncio.run(KindRuntime().create(wanted, Mock(), asyncio.Event()))
"""
    bench.tools.answers("kind create", seconds=60)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", killed)
    await bench.node_is_made()
    process.send_signal(signal.SIGKILL)
    await process.wait()
    (orphan,) = processes.naming("kind", f"{bench.directory}/kubeconfig.yaml")
    user = await asyncio.create_subprocess_exec("sh", "-c", "sleep 60; true", f"{bench.directory}/kubeconfig.yaml")
    assert bench.note()["state"] == "creating"
    assert KindRuntime().removed(str(bench.directory)) is False
    bench.tools.answers("kind create", code=0)
    seen = await bench.create()
    assert not psutil.pid_exists(orphan) or psutil.Process(orphan).status() == psutil.STATUS_ZOMBIE
    assert user.returncode is None, "what somebody does with the kubeconfig is not ours to end"
    user.kill()
    await user.wait()
    assert seen.health == "running"
    assert [node["id"] for node in bench.tools.nodes.values()] == ["101"]
    assert len([call for call in bench.tools.asked() if call.startswith("kind delete")]) == 1


@pytest.mark.parametrize("later", [-3600, 3600], ids=["before", "afterwards"])
async def test_a_cluster_of_somebody_else_is_not_taken_for_what_a_killed_create_left(bench: Bench, later: int) -> None:
    bench.tools.answers("kind create", "ERROR: failed to create cluster: out of luck")
    bench.tools.answers("kind delete", "ERROR: failed to delete nodes: the engine ended")
    await bench.refused()
    assert bench.note()["state"] == "creating"
    for command in ("kind create", "kind delete"):
        bench.tools.answers(command, code=0)
    # The containers that it left are gone, and a person makes a cluster of the same name.
    bench.tools.remove()
    made = datetime.now(UTC) + timedelta(seconds=later)
    bench.tools.add("dev", "theirs", created=made.isoformat())
    assert "a kind cluster named 'dev' that this stack did not make is there" in await bench.refused()
    assert [node["id"] for node in bench.tools.nodes.values()] == ["theirs"]


async def test_another_checkouts_cluster_is_not_taken_for_what_a_killed_create_left(bench: Bench) -> None:
    """Minutes after a run was killed that had made no container yet, as while it pulled the image."""
    mine = KindPlace(bench.directory)
    directories.prepare_home(mine)
    mine.begin(ME, ContainerEngine("docker"), {})
    theirs = replace(bench, home=bench.home.with_name("another checkout"))
    seen = await theirs.create("another checkout")
    assert "a kind cluster named 'dev' that this stack did not make is there" in await bench.refused()
    assert await theirs.read(seen, "another checkout") == seen
    # Where its own containers are there instead, they are still known as its own.
    await theirs.delete(seen, "another checkout")
    mine.begin(ME, ContainerEngine("docker"), {})
    bench.tools.add("dev", "left", created=datetime.now(UTC).isoformat())
    assert (await bench.create()).health == "running"
    assert "left" not in [node["id"] for node in bench.tools.nodes.values()]


@pytest.mark.parametrize("left", [False, True], ids=["anew", "after a killed create"])
async def test_two_checkouts_do_not_make_a_cluster_of_one_name_at_a_time(bench: Bench, left: bool) -> None:
    """kind would remove the containers of the first run when the second one fails."""
    if left:
        mine = KindPlace(bench.directory)
        directories.prepare_home(mine)
        mine.begin(ME, ContainerEngine("docker"), {})
    bench.tools.answers("kind pull", code=0, seconds=1.0)
    first = asyncio.ensure_future(bench.create())
    await bench.kind_has_begun()
    theirs = replace(bench, home=bench.home.with_name("another checkout"))
    assert "a kind cluster named 'dev' that this stack did not make is there" in await theirs.refused("another")
    assert len([call for call in bench.tools.asked() if call.startswith("kind create")]) == 1
    seen = await first
    assert await bench.read(seen) == seen


async def test_a_removal_that_was_begun_is_seen_without_asking_anybody_and_gone_on_with(bench: Bench) -> None:
    seen = await bench.create()
    bench.tools.answers("kind delete", "ERROR: failed to delete cluster: no space left")
    with pytest.raises(ProviderError, match=r"kind could not delete cluster dev: .*no space left"):
        await bench.delete(seen)
    assert KindRuntime().removed(seen.directory)
    bench.tools.answers("kind delete", code=0)
    await bench.delete(seen)
    assert bench.left() == []
    await bench.delete(seen)
