"""Faults of an experiment's timeline, on an API server that keeps objects in memory."""

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledChanges
from kumulus.extras.lab.cluster.components import SCHEDULER, Components
from kumulus.extras.lab.cluster.creating import Creator, Kinds
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.file.model import SchedulerSpec
from kumulus.extras.lab.file.timeline import TimelineEvent
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.placement import PlacementRecorder
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.views import PodView
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.plan.pods import PlannedJob
from kumulus.extras.lab.run.ending import Ending
from kumulus.extras.lab.run.switch import OwnSwitch, SchedulerAction, require_built
from kumulus.extras.lab.run.timeline import Timeline
from kumulus.extras.lab.run.workloads import RepetitionWorkloads
from kumulus.extras.watch.live.amounts import NOTHING
from kumulus.extras.watch.live.node import NOWHERE
from kumulus.kube import Client, Connection
from tests.support.apiserver import listening
from tests.support.clocks import until
from tests.support.object_store import NODES, storing
from tests.unit.extras.lab.test_replaying import Cluster
from tests.unit.nodes.test_fault_operations import on, refusing, shown, twelve_nodes

FAULT = {
    "name": "xid",
    "target": {"nodeGroup": "a100"},
    "capacity": {"nvidia.com/gpu": "-1"},
    "taints": [{"key": "example.com/xid", "effect": "NoSchedule"}],
}
RESIZE = {"pool": "a100-use1", "replicas": 8}
WORKLOADS: list[dict[str, Any]] = [
    {"name": "a", "jobs": 40, "workers": 2, "arrival": {"rate": 20}},
    {"name": "b", "arrival": {"after": "500ms"}},
]


@pytest.mark.parametrize("event", [{"fault": FAULT}, {"resize": RESIZE}])
async def test_a_fault_that_some_nodes_refuse_ends_the_experiment_and_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: dict[str, Any]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with twelve_nodes() as (store, client):
        journal = Journal(JournaledChanges("one", "training", "uid", ""))
        timeline = Timeline(
            client, journal, [TimelineEvent.model_validate(event)], cast(Any, Unstopped()), lambda: 0.0, cast(Any, None)
        )
        store.refuse = refusing(2)
        with pytest.raises(LabError, match=r"fault .* has not begun everywhere: \d+ nodes left to do: .*403"):
            await timeline.begin()
        assert timeline.happened == []
        assert (shown(store), len(store.under(NODES))) != ([], 12)
        store.refuse = refusing(1000)
        await timeline.undo()
        assert (shown(store), len(store.under(NODES))) == ([], 12)
        assert journal.changes.empty


async def test_a_fault_that_every_node_takes_has_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with twelve_nodes() as (store, client):
        journal = Journal(JournaledChanges("one", "training", "uid", ""))
        events = [TimelineEvent.model_validate({"fault": FAULT})]
        timeline = Timeline(client, journal, events, cast(Any, Unstopped()), lambda: 0.0, cast(Any, None))
        await timeline.begin()
        assert [each.what.startswith("fault on 12 nodes") for each in timeline.happened] == [True]
        assert shown(store) == on(range(12))
        await timeline.undo()
        assert shown(store) == []


class Unstopped:
    """A scheduler that was never stopped."""

    async def restore(self) -> None:
        pass


def set_scheduler(switch: OwnSwitch, how: SchedulerAction) -> str:
    return asyncio.run(switch.set_scheduler(how))


def test_a_scheduler_that_is_stopped_can_be_stopped_and_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "logs").mkdir()
    journal, components = Journal(JournaledChanges("one", "training", "uid", "")), Components(tmp_path)
    with subprocess.Popen(["sleep", "60"]) as first:
        components.look({SCHEDULER: [first.pid]})
        switch = OwnSwitch(tmp_path, components, journal)
        for _ in range(2):
            assert set_scheduler(switch, "stop") == "scheduler stopped"
            assert (components.pids(SCHEDULER), switch.ended()) == ([], "")
    assert set_scheduler(switch, "restart") == "scheduler restarted"
    (second,) = components.pids(SCHEDULER)
    assert journal.changes.stopped is None
    assert set_scheduler(switch, "restart") == "scheduler restarted"
    (third,) = components.pids(SCHEDULER)
    assert len({first.pid, second, third}) == 3
    set_scheduler(switch, "stop")


def test_a_scheduler_that_is_not_built_is_refused_before_anything_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_built(SchedulerSpec(), tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LabError, match=r"is missing\n  To get it: .* tools --with volcano"):
        require_built(SchedulerSpec(name="volcano"), tmp_path)
    with pytest.raises(LabError, match="mine does not exist"):
        require_built(SchedulerSpec(name="kube-scheduler", binary="mine"), tmp_path)


async def test_a_cluster_without_groups_of_groups_is_told_how_to_get_them() -> None:
    said = "knows no CompositePodGroup of scheduling.k8s.io/v1alpha3; write kwok: {workloads: native} in the stack file"
    async with storing() as store, store.client() as client:
        with pytest.raises(LabError, match=re.escape(said)):
            await Kinds(client).path("scheduling.k8s.io/v1alpha3", "CompositePodGroup", "run-1")


async def test_jobs_of_a_deleted_workload_do_not_arrive_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "e.yaml").write_text(json.dumps({"name": "e", "workloads": WORKLOADS}))
    plan, cluster, now, first = make(load(tmp_path / "e.yaml"), {}), Cluster(), Clock(), asyncio.Event()
    records = ExperimentRecords(Allocation(), ((job.name, job.workload, job.workers) for job in plan.jobs))
    ending = Ending(records, "scheduled", 5, plan.pods)
    created: list[str] = []

    def tell(job: PlannedJob) -> None:
        created.append(job.name)
        first.set()

    async with listening(cluster.handle) as address, Client(Connection(address, "test"), patience=1.0) as client:
        journal = Journal(JournaledChanges("one", "e", "uid", ""))
        creator = Creator(client, Kinds(client), journal, "run-1", now, asyncio.Event(), tell)
        placement = PlacementRecorder({"namespace": "run-1"}, NOWHERE, now, {})
        workloads = RepetitionWorkloads(client, "run-1", plan, records, placement, ending, now, creator.cancel)
        creating = asyncio.create_task(creator.jobs(plan.jobs, 4))
        await first.wait()
        before = len(created)
        await workloads.delete("a")
        await creating
    assert created[-1] == "b-1"
    assert before <= len(created) - 1 < 10
    complete = [records.complete]
    records.put(PodView("u", "b", "b-1", "n", "Running", "", "", NOTHING), 1.0)
    assert [*complete, records.complete] == [False, True], "the pod of b was still to come"
    assert ending.reason(1.0) == "all pods are scheduled"


async def test_what_comes_once_others_are_placed_is_created_so_long_after_that(tmp_path: Path) -> None:
    once = [{**WORKLOADS[1], "arrival": {"once": "scheduled", "after": "300ms"}}, {**WORKLOADS[0], "name": "first"}]
    (tmp_path / "e.yaml").write_text(json.dumps({"name": "e", "workloads": once}))
    plan, now, created = make(load(tmp_path / "e.yaml"), {}), Clock(), list[str]()
    assert (plan.jobs[-1].name, plan.jobs[-2].at > plan.jobs[-1].at) == ("b-1", True)
    async with listening(Cluster().handle) as address, Client(Connection(address, "test"), patience=1.0) as client:
        journal, stop = Journal(JournaledChanges("one", "e", "uid", "")), asyncio.Event()
        creator = Creator(client, Kinds(client), journal, "run-1", now, stop, lambda job: created.append(job.name))
        creating = asyncio.create_task(creator.jobs(plan.jobs, 4))
        await until(lambda: len(created) == 40)
        await asyncio.sleep(0.3)
        assert "b-1" not in created
        creator.placed_at = placed = now()
        await creating
    assert (created[-1], now() - placed >= 0.3) == ("b-1", True)
