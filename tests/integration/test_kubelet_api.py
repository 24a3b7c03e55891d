"""What asks for a pod's kubelet: the API server finds kwok-controller, which has a clear answer, and nobody else."""

import json
import shlex
import subprocess
from collections.abc import AsyncIterator, Sequence
from http.client import RemoteDisconnected
from pathlib import Path
from urllib.request import urlopen

import pytest

from kumulus import toolchain
from kumulus.runtimes.kwok import pod_logs
from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import PODS, Plane, Pools
from tests.support.pods import pod
from tests.support.processes import await_that

pytestmark = pytest.mark.integration
POD_LOGS = ("ClusterLogs", "ClusterAttach", "ClusterExec", "ClusterPortForward")
SHOWN = {"now": [], "before a restart": ["--previous"], "the last line": ["--tail=1"]}


@pytest.fixture
async def asked(plane: Plane, pools: Pools) -> AsyncIterator[None]:
    inputs = pools.inputs(1)
    await pools.create(inputs)
    (node,) = pools.nodes(inputs)
    plane.api.create(PODS, pod("asked", node))
    plane.api.until(PODS, lambda found: found["asked"]["status"].get("phase") == "Running")
    yield
    plane.api.delete(f"{PODS}/asked?gracePeriodSeconds=0")


@pytest.mark.parametrize("options", SHOWN.values(), ids=SHOWN)
@pytest.mark.usefixtures("asked")
def test_the_log_of_a_pod_says_that_it_is_emulated(plane: Plane, options: list[str]) -> None:
    assert logs(plane, *options) == f"{pod_logs.SAID}\n"


@pytest.mark.usefixtures("asked")
async def test_so_does_that_of_a_cluster_made_before_after_the_next_up(plane: Plane) -> None:
    layout = Layout(plane.directory)
    before = [each for each in layout.documents() if each["kind"] not in POD_LOGS]
    layout.write_documents(before)
    parts = json.loads(layout.note()["parts"])
    layout.write_note({**layout.note(), "configuration": "", "parts": json.dumps({**parts, "kwok-controller": ""})})
    (plane.directory / Layout.POD_LOG).unlink()
    (controller,) = plane.processes()["kwok-controller"]
    await plane.repair()
    # The new one serves a moment after it has started.
    ask = kubectl(plane, ["logs", "asked"])
    await_that(lambda: subprocess.run(ask, capture_output=True, check=False).returncode == 0, 30, "it serves logs")
    assert logs(plane) == f"{pod_logs.SAID}\n"
    (now,) = plane.processes()["kwok-controller"]
    await plane.repair()
    assert plane.processes()["kwok-controller"] == [now] != [controller]


@pytest.mark.parametrize("terminal", ["", "--tty"])
@pytest.mark.usefixtures("asked")
def test_an_exec_says_that_the_pod_is_emulated_and_runs_nothing(plane: Plane, tmp_path: Path, terminal: str) -> None:
    options = ["--stdin", terminal] if terminal else []
    refused = kubectl(plane, ["exec", *options, "asked", "--", "touch", str(tmp_path / "made")])
    # With a terminal of its own, as a person's: kubectl asks for none otherwise.
    script = ["script", "--quiet", "--return", "--command", shlex.join(refused), "/dev/null"]
    ran = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode != 0
    assert "touch" in ran.stdout
    assert "this is an emulated pod: no container runs: not a directory" in ran.stdout
    assert not (tmp_path / "made").exists()


@pytest.mark.usefixtures("asked")
def test_an_attach_says_that_the_pod_is_emulated(plane: Plane) -> None:
    done = subprocess.run(kubectl(plane, ["attach", "asked"]), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "this is an emulated pod: no container runs" in done.stderr


@pytest.mark.usefixtures("asked")
def test_a_forwarded_port_says_that_there_is_none(plane: Plane) -> None:
    command = kubectl(plane, ["port-forward", "asked", ":80"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as forwarding:
        try:
            assert forwarding.stdout
            # Forwarding from 127.0.0.1:40001 -> 80
            port = forwarding.stdout.readline().split(" ->")[0].rpartition(":")[2]
            with pytest.raises((ConnectionError, RemoteDisconnected)), urlopen(f"http://127.0.0.1:{port}/", timeout=30):
                pass
            _, said = forwarding.communicate(timeout=60)
        finally:
            forwarding.kill()
    assert "this is an emulated pod: no container runs: not a directory" in said


def logs(plane: Plane, *options: str) -> str:
    command = kubectl(plane, ["logs", "asked", *options])
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def kubectl(plane: Plane, arguments: Sequence[str]) -> list[str]:
    return [str(toolchain.find("kubectl")), "--kubeconfig", plane.observed.kubeconfig, *arguments]
