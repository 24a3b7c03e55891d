"""Preemption costs what it costs: a job that begins anew has waited and taken longer, and what it had done is lost."""

from typing import Any

import pytest

from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.by_user import slowdowns, users_of, waited
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.states import PREEMPTED
from kumulus.extras.lab.measure.statistics import Between, Measured
from kumulus.extras.lab.measure.verdicts import verdicts
from kumulus.extras.lab.measure.views import PodView, pod_view
from kumulus.extras.lab.report import compare
from kumulus.extras.lab.report.text import lines
from kumulus.extras.watch.live.amounts import Amounts
from tests.support.measuring import measures_of
from tests.support.messages import pod_message
from tests.support.reports import report

GPUS = Amounts(gpus=8)


class Account:
    """An account of pods, which a test puts into their states; each is of the only job unless it says otherwise."""

    def __init__(self, workers: int = 1, **jobs: int) -> None:
        self.records = ExperimentRecords(
            Allocation(), [("j", "w", workers), *((name, "w", size) for name, size in jobs.items())]
        )

    def pod(self, uid: str, job: str = "j", **times: float) -> None:
        """A pod that is created, bound and starts to run at once, and succeeds, fails, is gone or preempted, then."""
        view = PodView(uid, "w", job, "", "Pending", "", "", GPUS)
        running = view._replace(node="n", phase="Running")
        states = {
            "created": view,
            "bound": running,
            "succeeded": running._replace(phase="Succeeded"),
            "failed": running._replace(phase="Failed"),
            "ended": running._replace(phase="Deleted"),
            "preempted": running._replace(disrupted=PREEMPTED),
            "disrupted": running._replace(disrupted="DeletionByTaintManager"),
        }
        for state, at in times.items():
            if state in states:
                self.records.put(states[state], at)
            if state in ("gone", "preempted", "disrupted"):
                self.records.gone(uid, at)

    def measures(self, lasted: float = 200.0) -> dict[str, Measured]:
        found = measures_of(self.records, lasted)
        return found | users_of(self.records, {}, lasted).measures()


def preempted() -> Account:
    """116 s in the system for 60 s of work: it waits for 1 s, runs for 50 s in vain, and waits for 5 s once more."""
    found = Account()
    found.pod("a", created=0.0, bound=1.0, preempted=51.0)
    found.pod("b", created=51.0, bound=56.0, succeeded=116.0)
    return found


def test_a_preempted_job_took_from_its_first_pod_to_its_last_for_the_work_that_was_not_in_vain() -> None:
    account = preempted()
    found = account.measures()
    assert found["slowdown.max"] == pytest.approx(116 / 60)
    assert found["jobTimeToSchedule.max"] == 56
    assert found["timeToSchedule.max"] == 5, "a pod's own"
    user = users_of(account.records, {"j": "me"}, 200.0).by_name["me"]
    assert user.waited.heard == [56.0]
    assert user.slowdown.heard == [pytest.approx(116 / 60)]


def test_what_a_pod_had_done_is_lost_when_it_is_deleted_or_fails_and_it_is_said_why() -> None:
    account = Account(workers=9)
    account.pod("a", created=0.0, bound=1.0, preempted=51.0)
    account.pod("b", created=0.0, bound=10.0, disrupted=20.0)
    account.pod("c", created=0.0, bound=10.0, failed=15.0)
    account.pod("d", created=0.0, bound=10.0, gone=12.0)
    account.pod("e", created=0.0, gone=99.0)
    account.pod("f", created=0.0, bound=1.0, succeeded=90.0)
    account.pod("g", created=0.0, bound=1.0)
    found = account.measures()
    assert {name: value for name, value in found.items() if name.startswith("work.")} == {
        "work.lost": 8 * (50 + 10 + 5 + 2),
        "work.lostPreempted": 8 * 50,
        "work.lostDisrupted": 8 * 10,
        "work.lostFailed": 8 * 5,
        "work.lostDeleted": 8 * 2,
    }


def test_a_pod_that_is_ended_because_it_is_deleted_has_not_failed() -> None:
    """A kubelet ends its containers, and says so, before the pod is gone."""
    account = Account()
    account.pod("a", created=0.0, bound=1.0, ended=11.0, gone=12.0)
    found = account.measures()
    assert (found["pods.failed"], found["work.lostFailed"], found["work.lostDeleted"]) == (0, 0, 80)
    assert pod_view(pod_message(phase="Failed")).phase == "Failed"
    deleted = pod_message(phase="Failed", metadata={"deletionTimestamp": {"seconds": 1}})
    assert pod_view(deleted).phase == "Deleted"


def test_without_gpus_no_gpu_seconds_are_lost() -> None:
    records = ExperimentRecords(Allocation())
    records.put(PodView("a", "w", "j", "n", "Running", "", "", Amounts(cpu=1000)), 1.0)
    assert not [name for name in measures_of(records, 5.0) if name.startswith("work.")]


def test_of_work_whose_loss_was_heard_of_late_it_is_said_between_what_it_lies() -> None:
    records = ExperimentRecords(Allocation())
    records.put(PodView("a", "w", "j", "n", "Running", "", "", GPUS), 10.0)
    records.gone("a", 110.0, since=60.0)
    assert measures_of(records, 200.0)["work.lost"] == Between(400.0, 800.0)


@pytest.mark.parametrize(
    ("workers", "bound", "slowdown"),
    [
        (2, [0.0, 0.0], 1.0),
        # One waits for the other to end, though it might have run beside it.
        (2, [0.0, 60.0], 2.0),
        # The third completion of a Job with two at a time follows the first two.
        (2, [0.0, 0.0, 60.0], 1.0),
        (2, [0.0, 0.0, 120.0], 1.5),
        (1, [0.0, 60.0, 120.0], 1.0),
    ],
)
def test_a_job_takes_as_long_as_its_pods_take_as_many_at_a_time_as_it_has_workers(
    workers: int, bound: list[float], slowdown: float
) -> None:
    account = Account(workers)
    for number, at in enumerate(bound):
        account.pod(str(number), created=0.0, bound=at, succeeded=at + 60)
    assert slowdowns(account.records) == {"j": Between(slowdown, slowdown)}


def test_only_a_job_that_completed_has_a_slowdown() -> None:
    account = Account(workers=2, never=1, again=1)
    account.pod("a", created=0.0, bound=0.0, succeeded=10.0)
    account.pod("b", job="never", created=0.0, bound=0.0, failed=10.0)
    account.pod("c", job="again", created=0.0, bound=0.0, preempted=10.0)
    account.pod("d", job="again", created=10.0)
    assert slowdowns(account.records) == {}
    account.pod("e", created=0.0, bound=5.0, succeeded=20.0)
    assert slowdowns(account.records).keys() == {"j"}


def test_a_job_that_has_lost_a_worker_waits_until_it_has_another_one() -> None:
    account = Account(workers=2)
    account.pod("a", created=0.0, bound=1.0)
    account.pod("b", created=0.0, bound=2.0)
    job = account.records.jobs["j"]
    assert waited(job) == Between(2.0, 2.0)
    account.pod("b", preempted=30.0)
    assert (job.admitted, waited(job)) == (True, None)
    account.pod("c", created=30.0, bound=40.0)
    assert waited(job) == Between(40.0, 40.0)
    # Whose workers the timeline takes away, it has not lost.
    account.records.resized("j", 1, 50.0)
    account.pod("c", gone=51.0)
    assert waited(job) == Between(40.0, 40.0)


def test_a_job_of_unknown_size_waits_for_one_in_place_of_each_worker_that_it_has_lost() -> None:
    account = Account(workers=0)
    account.pod("a", created=0.0, bound=1.0)
    account.pod("a", preempted=10.0)
    account.pod("b", created=10.0, bound=25.0)
    job = account.records.jobs["j"]
    assert (job.partly, waited(job)) == (False, Between(25.0, 25.0))


def test_lost_work_is_a_threshold_a_line_of_the_text_and_a_row_of_a_comparison() -> None:
    expect: list[Any] = [{"measure": "work.lost", "atMost": 100}, {"measure": "work.lostFailed", "equals": 0}]
    experiment = ExperimentSpec.checked({"name": "t", "workloads": [{"name": "w"}], "expect": expect})
    account = preempted()
    judged = verdicts(experiment.expect, account.measures(), account.records)
    assert [(each.what, each.holds, each.found) for each in judged] == [
        ("work.lost at most 100 GPU-s", False, "400 GPU-s"),
        ("work.lostFailed exactly 0 GPU-s", True, "0 GPU-s"),
    ]
    made, none = report(measures=[{"work.lost": 400.0}]), report(measures=[{"work.lost": 0.0}])
    assert "  work.lost           400 GPU-s" in list(lines(made))
    assert not [line for line in lines(none) if "work.lost" in line]
    rows = {row[0]: row[1:] for row in compare.table([made, none])}
    assert rows["work.lost"] == ["400 GPU-s", "0 GPU-s"]
