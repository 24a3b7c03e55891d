"""A trace's users as queues: each job waits in its user's, and the run makes those that are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.lab.file.load import Loaded, loaded_from
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.plan.scheduling import queues, waiting

TRACE = "arrival,cpu,user\n0,1,6214e9\n1,1,Team_B\n2,1,\n3,1,6214e9\n"
QUEUE = "kueue.x-k8s.io/queue-name"


def played(directory: Path, scheduler: str, *, gang: bool = False, **trace: Any) -> Loaded:
    (directory / "t.csv").write_text(TRACE)
    columns = {"arrival": "arrival", "cpu": "cpu", "user": "user"}
    given = {"file": "t.csv", "columns": columns, **trace}
    workload = {"name": "t", "kind": "Job", "queue": "rest", "gang": gang, "arrival": {"trace": given}}
    file = {"name": "x", "scheduler": {"name": scheduler}, "workloads": [workload]}
    return loaded_from(file, directory, "x", "")


def made_for(loaded: Loaded, *there: str) -> list[str]:
    """The LocalQueues that a run makes."""
    made = queues(loaded.experiment.scheduler.name, waiting(loaded), set(there), {"cpu": "8"})
    return sorted(each["metadata"]["name"] for each in made if each["kind"] == "LocalQueue")


def waits_in(loaded: Loaded) -> list[str]:
    made = [each for job in make(loaded, {}).jobs for each in job.objects]
    return [each["metadata"]["labels"][QUEUE] for each in made if each["kind"] == "Job"]


@pytest.mark.parametrize("gang", [False, True])
def test_each_job_waits_in_the_queue_of_its_user(tmp_path: Path, gang: bool) -> None:
    assert waits_in(played(tmp_path, "kueue", gang=gang, userQueues=True)) == ["6214e9", "team-b", "rest", "6214e9"]


def test_without_it_all_wait_in_the_workloads_own(tmp_path: Path) -> None:
    assert waits_in(played(tmp_path, "kueue")) == ["rest"] * 4


def test_the_run_makes_the_queues_that_the_setup_has_not(tmp_path: Path) -> None:
    assert made_for(played(tmp_path, "kueue", userQueues=True), "team-b") == ["6214e9", "rest"]
    assert made_for(played(tmp_path, "kueue")) == ["rest"]


def test_a_scheduler_without_queues_takes_the_jobs_as_they_are(tmp_path: Path) -> None:
    for scheduler in ("default", "kube-scheduler"):
        loaded = played(tmp_path, scheduler, userQueues=True)
        assert made_for(loaded) == []
        assert all("queue" not in str(job.objects) for job in make(loaded, {}).jobs)
