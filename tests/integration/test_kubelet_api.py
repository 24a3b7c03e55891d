"""What asks for a pod's kubelet: the API server finds kwok-controller, which has a clear answer, and nobody else."""

import subprocess
from collections.abc import AsyncIterator, Sequence
from http.client import RemoteDisconnected
from urllib.request import urlopen

import pytest

from kumulus import toolchain
from tests.integration.conftest import PODS, Plane, Pools
from tests.support.pods import pod

pytestmark = pytest.mark.integration
ASKING = {
    "logs": (["logs", "asked"], 'no logs found for container "main" in pod "default/asked"'),
    "exec": (["exec", "asked", "--", "id"], 'no exec found for container "main" in pod "default/asked"'),
    "attach": (["attach", "asked"], 'no attaches found for container "main" in pod "default/asked"'),
}


@pytest.fixture
async def asked(plane: Plane, pools: Pools) -> AsyncIterator[None]:
    inputs = pools.inputs(1)
    await pools.create(inputs)
    (node,) = pools.nodes(inputs)
    plane.api.create(PODS, pod("asked", node))
    plane.api.until(PODS, lambda found: found["asked"]["status"].get("phase") == "Running")
    yield
    plane.api.delete(f"{PODS}/asked?gracePeriodSeconds=0")


@pytest.mark.parametrize("what", ASKING)
@pytest.mark.usefixtures("asked")
def test_what_only_a_kubelet_could_do_gets_a_clear_answer(plane: Plane, what: str) -> None:
    arguments, answer = ASKING[what]
    done = subprocess.run(kubectl(plane, arguments), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert answer in done.stderr


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
    assert "no forward found for port 80 in pod" in said


def kubectl(plane: Plane, arguments: Sequence[str]) -> list[str]:
    return [str(toolchain.find("kubectl")), "--kubeconfig", plane.observed.kubeconfig, *arguments]
