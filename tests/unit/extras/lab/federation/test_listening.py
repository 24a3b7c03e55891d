"""The watches of a hub and its workers: one account of all, in which each thing is of its cluster."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledChanges
from kumulus.extras.lab.federation.dispatching import Dispatching
from kumulus.extras.lab.federation.listening import Listeners
from kumulus.extras.lab.federation.members import FederationMember, RunningFederation, Session
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.placement import PlacementRecorder
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL, PlannedJob
from kumulus.extras.watch.history.document import Sort
from kumulus.extras.watch.live.node import NOWHERE
from kumulus.kube import ApiError, Client, Connection
from kumulus.kube.messages import message_classes
from kumulus.nodes.catalog.prices import catalog
from tests.support.apiserver import listening
from tests.support.clocks import SetClock, until
from tests.support.messages import node_message, pod_message

SPACE = "experiment-x-1"
CLASSES = message_classes()
JOB = PlannedJob("w-0", "w", 0.0, 1, ({"kind": "Job", "metadata": {"name": "w-0"}, "spec": {}},))


class Cluster:
    """An API server with a node of the same name as every other's, and a pod of a Job where it is said to have one."""

    def __init__(self, *, pod: bool = False, objects: dict[str, list[dict[str, Any]]] | None = None) -> None:
        labels = {WORKLOAD_LABEL: "w", JOB_LABEL: "w-0"} | {
            f"batch.kubernetes.io/{key}": value for key, value in (("job-name", "w-0"), ("controller-uid", "u"))
        }
        metadata = {"uid": "p", "labels": labels, "namespace": SPACE}
        self.nodes = [node_message("cpu-z-0")]
        self.pods = [pod_message("w-0-abc", node="cpu-z-0", phase="Running", metadata=metadata)] if pod else []
        self.objects = objects or {}
        self.broken = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.broken.is_set():
            return web.json_response({"kind": "Status", "code": 503, "reason": "Down"}, status=503)
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await self.broken.wait()
            if request.transport is not None:
                request.transport.abort()
            return response
        name = request.path.rpartition("/")[2]
        if name in ("nodes", "pods"):
            kind = "NodeList" if name == "nodes" else "PodList"
            found = CLASSES[kind](metadata={"resourceVersion": "1"}, items=self.nodes if name == "nodes" else self.pods)
            body = b"k8s\x00" + CLASSES["Unknown"](raw=found.SerializeToString()).SerializeToString()
            return web.Response(body=body, content_type="application/vnd.kubernetes.protobuf")
        if name == "kube-system":
            return web.json_response({"metadata": {"uid": "this-cluster"}})
        items = self.objects.get(name, [])
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})


def hub() -> Cluster:
    workload = {
        "metadata": {"name": "job-w-0", "namespace": SPACE, "ownerReferences": [{"kind": "Job", "name": "w-0"}]},
        "status": {"clusterName": "west"},
    }
    reach = {"metadata": {"name": "west"}, "status": {"conditions": [{"type": "Active", "status": "True"}]}}
    return Cluster(objects={"workloads": [workload], "multikueueclusters": [reach]})


class Watched:
    """Listeners on a hub and two workers."""

    def __init__(self, clients: dict[str, Client]) -> None:
        journal = Journal(JournaledChanges("r", "e", "none", ""))
        members = [FederationMember(name, clients[name], journal) for name in ("east", "west")]
        federation = RunningFederation("hub", Path("/hub/kubeconfig.yaml"), "fed-hub", (), "default", "kueue-system")
        self.records = ExperimentRecords(Allocation(), [("w-0", "w", 1)])
        self.dispatching = Dispatching("hub", ["east", "west"], [JOB], SPACE)
        self.away: set[str] = set()
        self.back: dict[str, float] = {}
        self.clock = SetClock(5.0)
        self.notes: list[tuple[str, Sort]] = []
        self.listeners = Listeners(
            clients["hub"],
            Session(federation, members),
            self.records,
            self.clock,
            PlacementRecorder({"namespace": SPACE}, NOWHERE, self.clock, {}),
            self.dispatching,
            lambda: (self.away, self.back),
            lambda what, sort: self.notes.append((what, sort)),
        )


@asynccontextmanager
async def watching(**clusters: Cluster) -> AsyncIterator[Watched]:
    """Listeners that have seen what there is."""
    async with (
        listening(clusters["hub"].handle) as one,
        listening(clusters["east"].handle) as two,
        listening(clusters["west"].handle) as three,
    ):
        clients = {
            name: Client(Connection(address, "test"), patience=2)
            for name, address in (("hub", one), ("east", two), ("west", three))
        }
        found = Watched(clients)
        synced = [asyncio.Event(), asyncio.Event()]
        tasks = [
            asyncio.ensure_future(found.listeners.pods(SPACE, synced[0])),
            asyncio.ensure_future(found.listeners.nodes("", catalog(), synced[1])),
            asyncio.ensure_future(found.listeners.queues()),
        ]
        try:
            for event in synced:
                await asyncio.wait_for(event.wait(), 10)
            yield found
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for cluster in clusters.values():
                cluster.broken.set()
            for client in clients.values():
                await client.close()


async def test_each_cluster_has_its_own_of_two_nodes_with_one_name_and_the_hubs_is_not_counted() -> None:
    async with watching(hub=hub(), east=Cluster(), west=Cluster(pod=True)) as found:
        allocation = found.records.allocation
        assert {name: part.nodes for name, part in allocation.parts.items()} == {"east": 1, "west": 1}
        assert [part.allocated.gpus for _, part in sorted(allocation.parts.items())] == [0, 1]
        (pod,) = found.records.pods.values()
        assert (pod.cluster, pod.node, pod.owner) == ("west", "west/cpu-z-0", "w-0")
        assert found.dispatching.jobs["w-0"].begun == {("west", "u"): None}


async def test_the_hub_says_where_a_job_is_and_which_workers_it_reaches() -> None:
    async with watching(hub=hub(), east=Cluster(), west=Cluster()) as found:
        await until(lambda: found.dispatching.dispatched and found.dispatching.connected)
        assert found.dispatching.jobs["w-0"].cluster == "west"
        assert found.dispatching.connected == {"west": True}
        assert found.notes == [], "nothing has changed"


async def test_every_cluster_that_should_answer_is_asked() -> None:
    clusters = {name: Cluster() for name in ("hub", "east", "west")}
    async with watching(**clusters) as found:
        clusters["west"].broken.set()
        with pytest.raises(ApiError, match="503"):
            await found.listeners.ask()
        found.away.add("west")
        await found.listeners.ask()
        clusters["hub"].broken.set()
        with pytest.raises(ApiError, match="503"):
            await found.listeners.ask()


async def test_a_worker_that_is_silent_is_missed_unless_it_was_struck_or_has_just_come_back() -> None:
    east = Cluster()
    async with watching(hub=hub(), east=east, west=Cluster()) as found:
        assert found.listeners.silence() == (0.0, "")
        east.broken.set()
        await until(lambda: found.listeners.interruptions)
        found.clock.now = 25.0
        seconds, why = found.listeners.silence()
        assert (seconds, why.startswith("worker east: ")) == (20.0, True)
        found.away.add("east")
        assert found.listeners.silence()[0] == 0.0
        found.away.clear()
        found.back["east"] = 24.0
        assert found.listeners.silence()[0] == 1.0
