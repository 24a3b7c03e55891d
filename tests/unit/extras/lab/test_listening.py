"""What one cluster's watches report: pods that were there before, and what happened while nothing was heard."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from aiohttp import web

from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.listening import Listener, occupy
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.views import PodView, node_view
from kumulus.extras.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL
from kumulus.kube import Client, Connection
from kumulus.kube.messages import message_classes
from tests.support.apiserver import listening
from tests.support.clocks import SetClock, until
from tests.support.messages import node_message, pod_message

SPACE = "experiment-x-1"
OF_WORK = {WORKLOAD_LABEL: "w", JOB_LABEL: "w-1"}


def pod(name: str, uid: str, **labels: str) -> Any:
    return pod_message(name, node="n", phase="Running", metadata={"uid": uid, "namespace": SPACE, "labels": labels})


class Cluster:
    """An API server with some pods, whose watches end with 410 Gone when its history is lost."""

    def __init__(self, *pods: Any) -> None:
        self.pods = list(pods)
        self.lost = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            await self.lost.wait()
            self.lost.clear()
            return web.json_response({"kind": "Status", "code": 410, "reason": "Expired"}, status=410)
        classes = message_classes()
        found = classes["PodList"](metadata={"resourceVersion": "1"}, items=self.pods)
        body = b"k8s\x00" + classes["Unknown"](raw=found.SerializeToString()).SerializeToString()
        return web.Response(body=body, content_type="application/vnd.kubernetes.protobuf")


class Watched:
    """A listener on a cluster with a node of eight GPUs."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.records = ExperimentRecords(Allocation(), [("w-1", "w", 1)])
        self.records.allocation.put_node(node_view(node_message("n"), ""))
        self.clock = SetClock(1.0)
        self.ended: list[str] = []
        self.listener = Listener(client, self.records, self.clock, on_pod=self._seen)

    def _seen(self, pod: PodView, over: bool) -> None:
        if over:
            self.ended.append(pod.uid)


@asynccontextmanager
async def watching(cluster: Cluster, others: bool = False) -> AsyncIterator[Watched]:
    """A listener that has seen what there is, after what was there before has been accounted for."""
    async with listening(cluster.handle) as address, Client(Connection(address, "test"), patience=2) as client:
        found, synced = Watched(client), asyncio.Event()
        await occupy(client, found.records)
        watch = found.listener.others if others else found.listener.pods
        task = asyncio.create_task(watch(SPACE, synced))
        try:
            async with asyncio.timeout(5):
                await synced.wait()
            yield found
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_pod_that_was_there_before_takes_its_place_once() -> None:
    """What `setup` creates in the run's namespace may have a node before the watch begins."""
    cluster = Cluster(pod("of-setup", "s"), pod("labelled", "l", **OF_WORK))
    async with watching(cluster) as found:
        assert found.records.allocation.gpus == 2
        assert not found.records.pods
        cluster.pods.clear()
        cluster.lost.set()
        await until(lambda: not found.records.allocation.gpus)


async def test_a_pod_of_others_takes_up_room_until_it_goes() -> None:
    """Pods of a Job that was deleted just before a run were counted for as long as the run lasted."""
    cluster = Cluster(pod("of-others", "o"), pod("stays", "s"))
    async with watching(cluster, others=True) as found:
        assert found.records.allocation.gpus == 2
        cluster.pods = [pod("of-others", "o2"), pod("came", "c")]
        cluster.lost.set()
        await until(lambda: set(found.records._strangers) == {"o2", "c"})
        assert found.records.allocation.gpus == 2
        cluster.pods.clear()
        cluster.lost.set()
        await until(lambda: not found.records.allocation.gpus)
        assert not found.records.pods


async def test_a_pod_that_was_replaced_under_its_name_while_nothing_was_heard_has_ended() -> None:
    cluster = Cluster()
    async with watching(cluster) as found:
        for known, (uid, now) in enumerate((("a", 2.0), ("b", 3.0)), start=1):
            found.clock.now, cluster.pods = now, [pod("w-1-0", uid, **OF_WORK)]
            cluster.lost.set()
            await until(partial(lambda count: len(found.records.pods) == count, known))
        before, after = found.records.pods["a"], found.records.pods["b"]
        assert (before.phase, before.ended, found.ended) == ("Deleted", 3.0, ["a"])
        assert (after.phase, after.ended) == ("Running", None)
        assert (found.records.live, found.records.allocation.gpus, found.records.jobs["w-1"].placed) == (1, 1, 1)
