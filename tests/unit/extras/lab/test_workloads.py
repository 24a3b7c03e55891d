"""What a timeline does to workloads while their jobs still arrive."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import Changes
from kumulus.extras.lab.cluster.creating import Creator
from kumulus.extras.lab.cluster.kinds import Kinds
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.placement import Placement
from kumulus.extras.lab.measure.records import Records
from kumulus.extras.lab.measure.views import PodView
from kumulus.extras.lab.plan.jobs import PlannedJob
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.run.ending import Ending
from kumulus.extras.lab.run.workloads import Workloads
from kumulus.extras.watch.live.amounts import NOTHING
from kumulus.extras.watch.live.node import NOWHERE
from kumulus.kube import Client, Connection
from tests.support.apiserver import listening
from tests.unit.extras.lab.test_replaying import Cluster

WORKLOADS = [
    {"name": "a", "jobs": 40, "workers": 2, "arrival": {"rate": 20}},
    {"name": "b", "arrival": {"after": "500ms"}},
]


async def test_jobs_of_a_deleted_workload_do_not_arrive_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "e.yaml").write_text(json.dumps({"name": "e", "workloads": WORKLOADS}))
    plan, cluster, now, first = make(load(tmp_path / "e.yaml"), {}), Cluster(), Clock(), asyncio.Event()
    records = Records(Allocation(), ((job.name, job.workload, job.workers) for job in plan.jobs))
    ending = Ending(records, "scheduled", 5, plan.pods)
    created: list[str] = []

    def tell(job: PlannedJob) -> None:
        created.append(job.name)
        first.set()

    async with listening(cluster.handle) as address, Client(Connection(address, "test"), patience=1.0) as client:
        journal = Journal(Changes("one", "e", "uid", ""))
        creator = Creator(client, Kinds(client), journal, "run-1", now, asyncio.Event(), tell)
        placement = Placement({"namespace": "run-1"}, NOWHERE, now, {})
        workloads = Workloads(client, "run-1", plan, records, placement, ending, now, creator.cancel)
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
