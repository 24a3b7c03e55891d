"""Playing a recording: what is asked of the API server, in which order, and what is counted of it."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.file.recording import PodThen, RecordedStep, Recording
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.states import PREEMPTED, PodRecord
from kumulus.extras.lab.measure.views import NodeView
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.plan.replayed import Replayed
from kumulus.extras.lab.report.model import Of, QueueComparison, ReplayComparison
from kumulus.extras.lab.report.replayed import Costs, _cannot_cost, compared
from kumulus.extras.lab.report.text import of_replay
from kumulus.extras.lab.run.replaying import Replayer, ReplayResult, Within
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.kube import Client, Connection, Unreachable
from tests.support.apiserver import listening
from tests.unit.extras.lab.test_replay import change, create, write

NAMES = {"apps/v1": {"Deployment": "deployments"}, "v1": {"Pod": "pods"}, "batch/v1": {"Job": "jobs"}}
STEPS = (
    create(0, "Deployment", "web", replicas=2),
    create(0, "Deployment", "api", replicas=1),
    change(10, "Deployment/web", replicas=5),
    {"at": 20, "do": "delete", "job": "Deployment/api"},
)
GIB = 1 << 30
NODES = {
    "cpu": NodeView("cpu", "", "z", Amounts(cpu=8000, memory=32 * GIB), 2.0),
    "gpu": NodeView("gpu", "h100", "z", Amounts(cpu=96_000, memory=1000 * GIB, gpus=8), 80.0),
    "free": NodeView("free", "", "z", Amounts(cpu=8000, memory=32 * GIB)),
}


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
        replayer = Replayer(client, replayed, within, ExperimentRecords(Allocation()), Clock(), asyncio.Event())
        await replayer.prepare()
        await replayer.run()
        return replayer.result


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
    cluster, records = Cluster(), ExperimentRecords(Allocation())
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
    cluster, records = Cluster(), ExperimentRecords(Allocation())
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


def test_a_pod_costs_its_share_of_its_node_for_as_long_as_it_has_it() -> None:
    costs = Costs(NODES)
    # A quarter of the CPUs but half of the memory, for half an hour of a node of two dollars.
    costs.add("a", "cpu", Amounts(cpu=2000, memory=16 * GIB), 1800.0)
    costs.add("b", "gpu", Amounts(cpu=1000, gpus=2), 3600.0)
    assert costs.of("a") == pytest.approx(0.5)
    assert costs.of("b") == pytest.approx(20.0)
    assert costs.of("") == pytest.approx(20.5)
    assert costs.of("nobody's") == 0.0


@pytest.mark.parametrize("node", ["free", "gone", ""])
def test_what_is_not_known_of_one_pod_is_not_known_of_its_queue(node: str) -> None:
    costs = Costs(NODES)
    costs.add("a", node, Amounts(cpu=2000), 1800.0)
    costs.add("b", "cpu", Amounts(cpu=8000), 3600.0)
    assert (costs.of("a"), costs.of("b"), costs.of("")) == (None, 2.0, None)
    assert list(_cannot_cost(True, costs, Costs(NODES))) == [
        "cost then: pods on nodes that are not known here, or have no price (1)"
    ]


def of(cost: float | None) -> Of:
    return Of(
        pods=1, scheduled=1, preempted=0, waited={"p50": 1.0}, cpu_peak=1, memory_peak_gib=0, gpus_peak=0, cost=cost
    )


def shown(then: float | None, now: float | None) -> list[str]:
    both = QueueComparison(then=of(then), now=of(now))
    found = ReplayComparison(
        speed=1,
        since=0,
        until=1,
        all=both,
        queues={"research": both},
        sent=0,
        late={},
        requests="",
        refused=0,
        refusals=[],
        cannot=[],
    )
    return list(of_replay(found))


def test_the_report_shows_cost_by_queue_where_any_is_known() -> None:
    head, everybody, research, *_ = shown(None, 3.5)
    assert "cost $" in head
    assert everybody.endswith("- → 3.50")
    assert research.endswith("- → 3.50")
    assert "cost" not in "".join(shown(None, None))


def test_what_was_there_at_the_beginning_of_the_part_is_counted_then_and_now() -> None:
    """Two pods are there before the part and stay, one has ended, one comes in it, one after it; 10 CPUs of 32 each."""

    def then(at: float, bound: float, ended: float | None) -> PodThen:
        return PodThen("shop", at, bound, ended, False, 10_000, 0, 0, "n0")

    recording = Recording([RecordedStep(10_000.0, "delete", "Job/x")])
    recording.pods = [
        then(0, 1, None),
        then(0, 7300, 9000),
        then(0, 1, 7200),
        then(8000, 8001, 9000),
        then(9900, 9901, None),
    ]
    replay = Replayed((), (), {f"day-{n}": "shop" for n in range(3)}, {}, recording, 1.0, 7200.0, 9800.0, 0)
    allocation = Allocation()
    allocation.put_node(NodeView("n0", "", "z", Amounts(cpu=32_000, memory=GIB), 3.2))
    records = ExperimentRecords(allocation)
    for number, (at, ended) in enumerate([(0.0, None), (0.0, 1800.0), (800.0, 1800.0)]):
        wants = Amounts(cpu=10_000)
        records.pods[str(number)] = PodRecord("day", f"day-{number}", wants, at, at + 1, at + 1, ended, "n0")
    outcome: Any = SimpleNamespace(records=records, replay_results={"day": ReplayResult()}, lasted=2600.0)
    found = compared(replay, "day", outcome).all
    assert (found.then.pods, found.then.scheduled, found.then.cpu_peak) == (3, 3, 30)
    assert (found.now.pods, found.now.scheduled, found.now.cpu_peak) == (3, 3, 30)
    # The waits of pods from before the part are none of its own.
    assert (found.then.waited["min"], found.then.waited["max"]) == (1, 1)
    # A dollar an hour each: from the part's beginning at the earliest, to its end at the latest.
    assert found.then.cost == pytest.approx((2600 + 1700 + 999) / 3600, abs=1e-6)
    assert found.now.cost == pytest.approx((2599 + 1799 + 999) / 3600, abs=1e-6)


@pytest.mark.parametrize(("until", "scheduled"), [(100.0, 2), (50.0, 1)])
def test_pods_get_nodes_after_the_last_request_of_a_day_then_and_now_but_not_after_a_part(
    until: float, scheduled: int
) -> None:
    recording = Recording([RecordedStep(100.0, "delete", "Job/x")])
    recording.pods = [
        PodThen("shop", 10, 11, 120, True, 1000, 0, 0, "n0"),
        PodThen("shop", 40, 101, None, False, 1000, 0, 0, "n0"),
    ]
    replay = Replayed((), (), {"day-1": "shop"}, {}, recording, 1.0, 0.0, until, 0)
    records = ExperimentRecords(Allocation())
    for number, (at, bound, ended) in enumerate([(10, 11, 120), (40, 101, None)]):
        record = PodRecord("day", "day-1", Amounts(cpu=1000), at, bound, bound, ended, "n0")
        record.disrupted = "" if number else PREEMPTED
        records.pods[str(number)] = record
    outcome: Any = SimpleNamespace(records=records, replay_results={"day": ReplayResult()}, lasted=200.0)
    found = compared(replay, "day", outcome).all
    for side in (found.then, found.now):
        assert (side.pods, side.scheduled, side.waited["min"], side.preempted) == (2, scheduled, 1, scheduled - 1)
    assert found.then.waited == found.now.waited


def test_a_pod_that_had_a_node_when_it_was_first_seen_is_scheduled_and_its_wait_not_known() -> None:
    """As what is there when a recording of KWOK begins, or came and got a node between two captures."""
    recording = Recording([RecordedStep(100.0, "delete", "Job/x")])
    recording.pods = [
        PodThen("shop", at, bound, None, False, 1000, 0, 0, "n0") for at, bound in ((0, 0), (5, 5), (5, 9))
    ]
    replay = Replayed((), (), {}, {}, recording, 1.0, 0.0, 100.0, 0)
    outcome: Any = SimpleNamespace(
        records=ExperimentRecords(Allocation()), replay_results={"day": ReplayResult()}, lasted=100.0
    )
    found = compared(replay, "day", outcome)
    assert (found.all.then.scheduled, found.all.then.cpu_peak) == (3, 3)
    assert (found.all.then.waited["min"], found.all.then.waited["max"]) == (4, 4)
    assert found.cannot[0] == "how long pods waited then that had a node when they were first seen (2)"
    assert found.cannot[-1] == "cost: no node has a price"
