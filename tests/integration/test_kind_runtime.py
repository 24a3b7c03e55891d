"""The kind runtime against Docker and kind themselves, with the node image that `make kind-image` makes."""

import asyncio
import json
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.kind_image import image
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes import apiserver
from kumulus.runtimes.base import Observed, RecordedControlPlane, WantedControlPlane
from kumulus.runtimes.kind import runtime as kind
from kumulus.runtimes.kind.containers import CLUSTER_LABEL
from kumulus.runtimes.kind.kind_config import EMPTY
from kumulus.runtimes.kind.runtime import KindRuntime
from tests.support import docker
from tests.support.kind import node_image
from tests.support.pods import is_ready
from tests.support.said import Said

pytestmark = pytest.mark.integration
NODE = "kumulus-test-control-plane"


def wanted(home: Path, name: str = "kumulus-test", owner: str = "the tests", **options: Any) -> WantedControlPlane:
    return WantedControlPlane(name, owner, str(home), "", {"nodeImage": image.name(), **options})


def containers(name: str = "kumulus-test") -> list[str]:
    """Ids of the containers under a cluster's name."""
    return docker.docker("ps", "--all", "--quiet", "--filter", f"label={CLUSTER_LABEL}={name}").split()


def volumes() -> set[str]:
    return set(docker.docker("volume", "ls", "--quiet").split())


async def create(asked: WantedControlPlane, said: Said | None = None, stop: asyncio.Event | None = None) -> Observed:
    return await KindRuntime().create(asked, said or Said(), stop or asyncio.Event())


async def refused(asked: WantedControlPlane) -> str:
    with pytest.raises(ProviderError) as raised:
        await create(asked)
    return str(raised.value)


@dataclass
class Plane:
    """The cluster that the tests of this module share."""

    wanted: WantedControlPlane
    observed: Observed
    said: Said

    @property
    def recorded(self) -> RecordedControlPlane:
        return RecordedControlPlane.of(self.wanted, self.observed)

    async def read(self) -> Observed:
        found = await KindRuntime().read(self.recorded, Said())
        assert found is not None
        return found

    async def repair(self) -> Observed:
        return await KindRuntime().repair(self.wanted, self.observed.identity, self.said)


@pytest.fixture(scope="module", autouse=True)
def _node_image() -> None:
    """Docker, kind and the node image: without them the tests are skipped, or fail where they have to be there."""
    node_image()


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A cluster made where a killed creation had left its own."""
    home = tmp_path_factory.mktemp("home")
    asked, said = wanted(home), Said()
    try:
        killed(home)
        assert len(containers()) == 1
        made = asyncio.run(create(asked, said))
        yield Plane(asked, made, said)
    finally:
        if left := containers():
            docker.docker("rm", "--force", "--volumes", *left)


def killed(home: Path) -> None:
    """Begin to make the cluster, in another process, and kill that as soon as there is a container."""
    program = (
        "import asyncio, pathlib; from tests.integration import test_kind_runtime as t; "
        f"asyncio.run(t.create(t.wanted(pathlib.Path({str(home)!r}))))"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        give_up = time.monotonic() + 60
        while not containers() and process.poll() is None and time.monotonic() < give_up:
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()


async def test_the_cluster_is_whole_and_its_kubeconfig_is_private(plane: Plane) -> None:
    seen, kubeconfig = plane.observed, Path(plane.observed.kubeconfig)
    assert (seen.health, seen.components) == ("running", {NODE: "running", "kube-apiserver": "running"})
    assert seen.server.startswith("https://127.0.0.1:")
    assert "removing what an interrupted run left behind" in plane.said.statuses
    assert any(each.startswith("kind: preparing nodes") for each in plane.said.statuses)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (kubeconfig, kubeconfig.parent)] == [0o600, 0o700]
    async with apiserver.client(kubeconfig) as client:
        (node,) = (await client.get("/api/v1/nodes"))["items"]
        daemon_sets = (await client.get("/apis/apps/v1/namespaces/kube-system/daemonsets"))["items"]
    assert is_ready(node)
    # Emulated nodes are passed over: by the one of the pod network, and by kubeadm's.
    passing_over = {each["metadata"]["name"]: json.dumps(each["spec"]["template"]["spec"]) for each in daemon_sets}
    assert {name for name, pods in passing_over.items() if '"values": ["kwok"]' in pods} == {"cnisync", "kube-proxy"}
    # Room for a fleet: the address range of a node is one of 16,384.
    assert node["spec"]["podCIDR"].startswith("100.64.")


async def test_it_is_read_as_it_was_made_and_repairing_it_changes_nothing(plane: Plane) -> None:
    assert await plane.read() == plane.observed
    assert await plane.repair() == plane.observed


async def test_another_stack_or_a_second_stack_of_the_name_is_refused(plane: Plane, tmp_path: Path) -> None:
    assert "(made by the tests)" in await refused(wanted(Path(plane.wanted.home), owner="another"))
    said = await refused(wanted(tmp_path / "elsewhere"))
    assert f"a kind cluster named 'kumulus-test' that this stack did not make is there ({NODE})" in said
    assert await plane.read() == plane.observed


@pytest.mark.parametrize("command", ["kill", "pause"])
async def test_a_cluster_that_was_stopped_is_started_and_is_the_same(plane: Plane, command: str) -> None:
    docker.docker(command, NODE)
    assert (await plane.read()).health == "stopped"
    assert await plane.repair() == plane.observed


async def test_an_api_server_that_stays_dead_is_given_up_on_and_told(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
    docker.docker("exec", NODE, "mv", manifest, "/root/")
    try:
        while (await plane.read()).health == "running":  # noqa: ASYNC110 - the kubelet ends it
            await asyncio.sleep(0.5)
        assert (await plane.read()).components["kube-apiserver"] == "unhealthy"
        monkeypatch.setattr(kind, "_RUNNING_S", 1.0)
        monkeypatch.setattr(kind, "_RESTARTED_S", 3.0)
        with pytest.raises(ProviderError, match=f"docker logs {NODE}"):
            await plane.repair()
    finally:
        docker.docker("exec", NODE, "mv", "/root/kube-apiserver.yaml", manifest)
    monkeypatch.undo()
    monkeypatch.setattr(kind, "_RUNNING_S", 60.0)
    assert await plane.repair() == plane.observed


async def test_lost_files_are_written_anew(plane: Plane) -> None:
    shutil.rmtree(plane.observed.directory)
    found = await plane.read()
    assert (found.health, found.components["kubeconfig"]) == ("degraded", "lost")
    assert await plane.repair() == plane.observed


async def test_cancelling_leaves_nothing(tmp_path: Path) -> None:
    stop = asyncio.Event()
    work = asyncio.create_task(create(wanted(tmp_path, "kumulus-cancelled"), stop=stop))
    while not containers("kumulus-cancelled") and not work.done():  # noqa: ASYNC110 - the engine makes it
        await asyncio.sleep(0.05)
    stop.set()
    with pytest.raises(ProviderError, match="cancelled while kind was making cluster kumulus-cancelled; nothing"):
        await work
    assert containers("kumulus-cancelled") == []
    assert not (tmp_path / "clusters" / "kumulus-cancelled").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"kindConfig": {**EMPTY, "networking": {"podSubnet": "10.0.0.0/99"}}},
            'kindConfig: invalid pod subnet failed to parse cidr value:"10.0.0.0/99" with error: invalid CIDR address: '
            "10.0.0.0/99; correct it in the stack file",
        ),
        (
            {"kindConfig": {**EMPTY, "networking": {"apiServerPort": 70_000_000_000}}},
            "kindConfig: kind cannot read it: cannot unmarshal !!int `7000000...` into int32 "
            "(at 'apiServerPort: 70000000000'); correct it in the stack file",
        ),
        ({"nodeImage": "localhost:1/none:1"}, "the node image localhost:1/none:1 cannot be pulled: Error response"),
    ],
    ids=["subnet", "port", "image"],
)
async def test_what_kind_refuses_is_told_in_a_line_and_nothing_is_left(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    said = await refused(wanted(tmp_path, "kumulus-refused", **options))
    assert said.startswith(told)
    assert containers("kumulus-refused") == []
    assert not (tmp_path / "clusters" / "kumulus-refused").exists()


async def test_a_port_that_is_taken_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        config = {**EMPTY, "networking": {"apiServerPort": port}}
        said = await refused(wanted(tmp_path, "kumulus-refused", kindConfig=config))
    assert f":{port} is in use on this machine; write another port in kindConfig" in said
    assert containers("kumulus-refused") == []


async def test_a_cluster_made_anew_by_hand_is_left_alone(tmp_path: Path) -> None:
    label = f"{CLUSTER_LABEL}=kumulus-byhand"
    container = docker.docker(
        "create", "--label", label, "--name", "kumulus-byhand-control-plane", image.name()
    ).strip()
    try:
        assert "that this stack did not make" in await refused(wanted(tmp_path, "kumulus-byhand"))
        directory = tmp_path / "clusters" / "kumulus-byhand"
        directory.mkdir(parents=True)
        note = {"owner": "the tests", "provider": "docker", "containers": json.dumps({"x": "another"})}
        (directory / "kumulus.json").write_text(json.dumps(note))
        recorded = RecordedControlPlane(
            "kumulus-byhand", "the tests", str(directory), str(directory / "kubeconfig.yaml"), "uid"
        )
        said = Said()
        assert await KindRuntime().read(recorded, said) is None
        await KindRuntime().delete(recorded, said)
        assert [message.rpartition("; ")[2] for message in said.messages] == ["it is left alone"] * 2
        assert [each for each in containers("kumulus-byhand") if container.startswith(each)]
    finally:
        with suppress(AssertionError):
            docker.docker("rm", "--force", container)


async def test_deleting_leaves_no_container_volume_or_file(plane: Plane) -> None:
    (volume,) = docker.docker("inspect", "--format", "{{range .Mounts}}{{.Name}} {{end}}", NODE).split()
    assert volume in volumes()
    for _ in range(2):  # finding nothing is success
        await KindRuntime().delete(plane.recorded, Said())
        assert containers() == []
        assert volume not in volumes()
        assert list(Path(plane.wanted.home).rglob("*.yaml")) == []  # noqa: ASYNC240
        assert await KindRuntime().read(plane.recorded, Said()) is None
    with pytest.raises(ProviderError, match="up --refresh"):
        await plane.repair()
