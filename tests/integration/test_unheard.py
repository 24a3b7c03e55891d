"""What a client did not hear of a real API server has no time: the server has forgotten what the client heard last."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.statistics import Between
from kumulus.extras.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL
from kumulus.kube import Client, load_kubeconfig
from kumulus.kube.watch import Synced, WatchInterrupted
from tests.integration.conftest import PODS, Plane, Pools
from tests.integration.test_watch import Listener
from tests.support import processes
from tests.support.api import Refused
from tests.support.faultproxy import FaultProxy
from tests.support.measuring import measuring
from tests.support.processes import await_that

pytestmark = pytest.mark.integration
NUMBER = 20


@pytest.fixture
def waiting(plane: Plane) -> Iterator[list[str]]:
    """Names for pods that no node is there for; the pods are gone afterwards."""
    names = [f"unheard-{number}" for number in range(NUMBER)]
    yield names
    plane.api.delete(f"{PODS}?gracePeriodSeconds=0")


def forgotten(plane: Plane, version: str) -> bool:
    """Whether the server refuses to go on from a version with 410."""
    try:
        first = next(plane.api.events(PODS, version, 5), {})
    except Refused as error:
        return error.status == 410
    return first.get("type") == "ERROR" and first["object"].get("code") == 410


async def test_what_a_list_brings_after_a_real_410_has_no_time_and_is_counted(
    plane: Plane, pools: Pools, waiting: list[str], tmp_path: Path
) -> None:
    inputs = pools.inputs(1, taints=[])
    await pools.create(inputs)
    (node,) = pools.nodes(inputs)
    clock = Clock()
    with FaultProxy(plane.directory) as proxy:
        through = load_kubeconfig(proxy.kubeconfig(tmp_path / "through"))
        async with Client(through) as other, measuring(through, clock, "default") as client:
            beside = Listener(other, PODS)
            await beside.until(lambda: beside.of(Synced))
            for name in waiting:
                spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
                labels = {WORKLOAD_LABEL: "w", JOB_LABEL: name}
                plane.api.create(PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec})
            await beside.until(lambda: len(beside.objects) == NUMBER)
            await asyncio.to_thread(await_that, lambda: len(client.records.pods) == NUMBER, 60, "all pods are heard of")
            heard = plane.api.version(PODS)
            proxy.refuse()
            await beside.until(lambda: beside.of(WatchInterrupted))
            for name in waiting:
                target = {"apiVersion": "v1", "kind": "Node", "name": node}
                plane.api.create(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})
            # A new API server knows nothing of what was before it.
            processes.kill(plane.processes()["kube-apiserver"])
            assert (await plane.repair()).health == "running"
            assert forgotten(plane, heard)
            proxy.accept()
            await beside.until(lambda: len(beside.of(Synced)) == 2)
            await asyncio.to_thread(
                await_that, lambda: client.records.counts["bound"] == NUMBER, 60, "that they have a node is known"
            )
            measures = client.measures()
            beside.task.cancel()
    # It is cut off, and the answer may be 410 when it is in touch again.
    assert measures["client.interruptions"] in (1, 2)
    assert measures["pods.untimed"] == NUMBER
    assert measures["pods.scheduled"] == NUMBER
    for name in ("timeToSchedule.min", "timeToSchedule.p50", "timeToSchedule.max", "scheduling.ratePeak"):
        assert isinstance(measures[name], Between), name
