"""Playing a recording: what is asked of the API server, in which order, and what is counted of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.records import Records
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.run.replaying import Replayer, ReplayResult
from kumulus.extras.lab.run.within import Within
from kumulus.kube import Client, Connection, Unreachable
from tests.support.apiserver import listening
from tests.unit.extras.lab.test_replay import change, create, write

NAMES = {"apps/v1": {"Deployment": "deployments"}, "v1": {"Pod": "pods"}, "batch/v1": {"Job": "jobs"}}


class Cluster:
    """Knows some kinds, has the pods that a test gives it, and remembers what was asked."""

    def __init__(self, pods: list[dict[str, Any]] | None = None, refused: str = "") -> None:
        self.pods, self.refused = pods or [], refused
        self.asked: list[tuple[str, str, Any]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        version = request.path.removeprefix("/apis/").removeprefix("/api/")
        if request.method == "GET" and version in NAMES:
            kinds = [{"name": name, "kind": kind, "namespaced": True} for kind, name in NAMES[version].items()]
            return web.json_response({"resources": kinds})
        if request.method == "GET" and request.path.endswith("/pods"):
            return web.json_response({"items": self.pods, "metadata": {}})
        if request.method == "GET":
            return web.json_response({"kind": "Status", "code": 404, "message": "none"}, status=404)
        body = await request.read()
        self.asked.append((request.method, request.path, json.loads(body) if body else None))
        if self.refused and request.path.endswith(self.refused):
            return web.json_response({"kind": "Status", "code": 422, "message": "no such field"}, status=422)
        return web.json_response({"kind": "Status", "status": "Success"})


async def played(
    cluster: Cluster, directory: Path, *steps: Any, namespace: str = "run-1", **replay: Any
) -> ReplayResult:
    (replayed,) = make(load(write(directory, *steps, **{"speed": 100, **replay})), {}).replays.values()
    async with listening(cluster.handle) as address, Client(Connection(address, "test", {}), patience=1.0) as client:
        within = Within(namespace, replayed.namespaces)
        replayer = Replayer(client, replayed, within, Records(Allocation()), Clock(), asyncio.Event())
        await replayer.prepare()
        await replayer.run()
        return replayer.result


STEPS = (
    create(0, "Deployment", "web", replicas=2),
    create(0, "Deployment", "api", replicas=1),
    change(10, "Deployment/web", replicas=5),
    {"at": 20, "do": "delete", "job": "Deployment/api"},
)


async def test_each_workload_s_steps_come_in_their_order_in_a_namespace_of_the_run(tmp_path: Path) -> None:
    cluster = Cluster()
    found = await played(cluster, tmp_path, *STEPS)
    base = "/apis/apps/v1/namespaces/run-1-shop/deployments"
    of_web = [(verb, path) for verb, path, body in cluster.asked if "web" in json.dumps([path, body])]
    of_api = [(verb, path) for verb, path, body in cluster.asked if "api" in (path.rpartition("/")[2], _name(body))]
    assert of_web == [("POST", base), ("PATCH", f"{base}/web")]
    assert of_api == [("POST", base), ("DELETE", f"{base}/api")]
    (patch,) = [body for verb, _, body in cluster.asked if verb == "PATCH"]
    assert patch == [{"op": "add", "path": "/spec/replicas", "value": 5}]
    assert (found.sent, found.refusals, len(found.late)) == (4, 0, 4)
    assert min(found.late) >= 0


def _name(body: Any) -> str:
    return body["metadata"]["name"] if isinstance(body, dict) and "metadata" in body else ""


async def test_two_replays_send_the_same_and_have_the_same_sum(tmp_path: Path) -> None:
    one, two = Cluster(), Cluster()
    first = await played(one, tmp_path, *STEPS)
    second = await played(two, tmp_path, *STEPS, namespace="run-2")
    assert sorted(map(json.dumps, (each[2] for each in one.asked))) == sorted(
        map(json.dumps, (each[2] for each in two.asked))
    )
    assert first.digest == second.digest
    other = await played(Cluster(), tmp_path, *STEPS[:2], change(10, "Deployment/web", replicas=6), STEPS[3])
    assert other.digest != first.digest


async def test_what_the_cluster_refuses_or_does_not_know_is_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    cluster = Cluster(refused="/web")
    unknown = create(1, "StatefulSet", "db", replicas=1)
    found = await played(cluster, tmp_path, *STEPS, unknown, change(2, "StatefulSet/db", replicas=2))
    assert found.unserved == {"StatefulSet of apps/v1": 1}
    assert (found.refusals, found.refused) == (1, ["PATCH web: no such field"])
    assert not any("statefulsets" in path for _, path, _ in cluster.asked)
    assert any(verb == "DELETE" for verb, _, _ in cluster.asked)


def pod(name: str, phase: str = "Running", owner: str = "ReplicaSet", **metadata: Any) -> dict[str, Any]:
    owners = [{"kind": owner}]
    told = {"name": name, "namespace": "run-1-shop", "creationTimestamp": "2026-11-22T09:00:00Z", "labels": {}}
    return {"metadata": {**told, "ownerReferences": owners, **metadata}, "status": {"phase": phase}}


async def test_an_eviction_is_of_the_oldest_pod_that_lives_and_a_drain_of_all_but_daemons(tmp_path: Path) -> None:
    pods = [
        pod("young", creationTimestamp="2026-11-22T10:00:00Z"),
        pod("over", "Succeeded"),
        pod("going", deletionTimestamp="2026-11-22T10:00:00Z"),
        pod("old"),
        pod("daemon", owner="DaemonSet", creationTimestamp="2026-11-22T11:00:00Z"),
    ]
    cluster = Cluster(pods)
    evict = {"at": 10, "do": "evict", "job": "Deployment/web"}
    found = await played(cluster, tmp_path, STEPS[0], evict)
    evicted = [path.split("/")[-2] for _, path, _ in cluster.asked if path.endswith("/eviction")]
    assert evicted == ["old"]
    cluster = Cluster(pods)
    await played(cluster, tmp_path, STEPS[0], {"at": 10, "do": "drain", "job": "n1"})
    assert [path.split("/")[-2] for _, path, _ in cluster.asked if path.endswith("/eviction")] == ["old", "young"]
    found = await played(Cluster(), tmp_path, STEPS[0], evict)
    assert found.nowhere == 1


async def test_a_pod_that_ended_by_itself_then_is_ended_after_the_same_time(tmp_path: Path) -> None:
    alone = create(0, "Pod", "alone", ran=1, restartPolicy="Never")
    steps = (alone, create(300, "Deployment", "web", replicas=1))
    (replayed,) = make(load(write(tmp_path, *steps, speed=100)), {}).replays.values()
    assert replayed.ends == {"recorded-1": 0.01}
    cluster, records = Cluster(), Records(Allocation())
    records.put(_view("recorded-1"), 0.1)
    async with listening(cluster.handle) as address, Client(Connection(address, "test", {}), patience=1.0) as client:
        replayer = Replayer(client, replayed, Within("run-1", ["shop"]), records, Clock(), asyncio.Event())
        await replayer.prepare()
        await replayer.run()
    assert [path.rpartition("/")[2] for verb, path, _ in cluster.asked if verb == "DELETE"] == ["alone"]


async def test_a_server_that_is_gone_when_a_pod_is_to_end_ends_the_replay(tmp_path: Path) -> None:
    """Without its ends, the rest of the day would be played on a fuller cluster than recorded."""
    alone = create(0, "Pod", "alone", ran=1, restartPolicy="Never")
    (replayed,) = make(load(write(tmp_path, alone, create(6000, "Pod", "late"), speed=100)), {}).replays.values()
    cluster, records = Cluster(), Records(Allocation())
    records.put(_view("recorded-1"), 0.1)

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE" and request.transport is not None:
            request.transport.abort()
        return await cluster.handle(request)

    async with listening(handle) as address, Client(Connection(address, "test", {}), patience=0.1) as client:
        replayer = Replayer(client, replayed, Within("run-1", ["shop"]), records, Clock(), asyncio.Event())
        await replayer.prepare()
        with pytest.raises(Unreachable):
            await asyncio.wait_for(replayer.run(), 10)


def _view(job: str) -> Any:
    from kumulus.extras.lab.measure.views import PodView
    from kumulus.extras.watch.live.amounts import Amounts

    return PodView("uid", "recorded", job, "n1", "Running", "", "", Amounts())
