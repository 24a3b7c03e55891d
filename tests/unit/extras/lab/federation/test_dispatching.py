"""From what a hub's Workloads and the workers' pods say to where each Job was, and how long it took."""

from typing import Any

from kumulus.extras.lab.federation.dispatching import Dispatching
from kumulus.extras.lab.measure.states import PodRecord
from kumulus.extras.lab.measure.views import PodView
from kumulus.extras.lab.plan.pods import PlannedJob
from kumulus.extras.watch.live.amounts import NOTHING
from kumulus.kube.watch import Kind, WatchEvent

SPACE = "experiment-x-1"


def planned(number: int, workers: int = 2) -> PlannedJob:
    name = f"work-{number}"
    job = {"kind": "Job", "metadata": {"name": name}, "spec": {"parallelism": workers}}
    return PlannedJob(name, "work", 0.0, workers, (job,))


def made(jobs: int = 2) -> Dispatching:
    found = Dispatching("hub", ["east", "west"], [planned(number) for number in range(jobs)], SPACE)
    for number in range(jobs):
        found.created(planned(number), 1.0)
    return found


def workload(number: int, cluster: str = "", *, finished: str = "", kind: Kind = "MODIFIED") -> WatchEvent[Any]:
    conditions = [{"type": "Finished", "status": "True", "reason": finished}] if finished else []
    item = {
        "metadata": {"ownerReferences": [{"kind": "Job", "name": f"work-{number}"}]},
        "status": {"clusterName": cluster, "conditions": conditions},
    }
    return WatchEvent(kind, f"{SPACE}/job-work-{number}-abc", item)


def pod(number: int, phase: str = "Running", uid: str = "one") -> PodView:
    return PodView(f"p{number}", "work", f"work-{number}", "n", phase, "", "", NOTHING, owner=(f"work-{number}", uid))


def record(number: int, **fields: Any) -> PodRecord:
    return PodRecord("work", f"work-{number}", NOTHING, 1.5, owner=f"work-{number}", **fields)


def test_a_job_waits_then_is_on_a_worker_then_has_completed() -> None:
    found = made()
    assert found.sampled() == {"jobs waiting": 2, "jobs on east": 0, "jobs on west": 0, "jobs completed": 0}
    found.workload(workload(0, "east"), 3.0)
    assert found.sampled() == {"jobs waiting": 1, "jobs on east": 1, "jobs on west": 0, "jobs completed": 0}
    found.workload(workload(0, "east", finished="Succeeded"), 9.0)
    found.workload(workload(0, kind="DELETED"), 10.0)
    assert found.sampled() == {"jobs waiting": 1, "jobs on east": 0, "jobs on west": 0, "jobs completed": 1}
    measures = found.measures([], 0)
    assert (measures["jobs.dispatched"], measures["jobs.completed"], measures["jobs.requeued"]) == (1, 1, 0)
    assert measures["jobTimeToDispatch.max"] == 2.0
    assert measures["dispatch.rate"] == 0.5
    assert found.unfinished == 1


def test_a_job_that_another_worker_gets_was_requeued_and_is_dispatched_when_it_first_was() -> None:
    found = made(1)
    for at, cluster in ((3.0, "east"), (20.0, ""), (21.0, "west")):
        found.workload(workload(0, cluster), at)
    measures = found.measures([], 0)
    assert (measures["jobs.requeued"], measures["jobTimeToDispatch.max"]) == (1, 2.0)
    assert found.sampled()["jobs on west"] == 1
    assert found.sampled()["jobs on east"] == 0


def test_a_job_whose_pods_have_begun_on_two_workers_or_twice_on_one_has_run_twice() -> None:
    found = made(4)
    for cluster, view in (
        ("east", pod(0)),
        ("east", pod(0, "Succeeded")),
        ("east", pod(1)),
        ("west", pod(1)),
        ("east", pod(2, uid="first")),
        ("east", pod(2, uid="second")),
        ("west", pod(3, "Pending")),
        ("east", pod(3)),
    ):
        found.pod(cluster, view)
    assert found.twice() == {"work-1": ["east", "west"], "work-2": ["east", "east"]}
    assert found.measures([], 0)["jobs.runTwice"] == 2


def test_a_job_is_lost_that_no_worker_has_and_that_does_not_wait() -> None:
    found = made(6)
    found.workload(workload(0, "east", finished="Succeeded"), 2.0)
    found.workload(workload(1, "east"), 2.0)
    found.workload(workload(2, "east"), 2.0)
    found.workload(workload(3, "west"), 2.0)
    found.workload(workload(4, finished="Failed"), 2.0)
    pods = [record(1), record(2, ended=3.0)]
    assert found.lost(pods, 20.0) == ["work-4"], "a worker has half a minute to make pods"
    assert found.lost(pods, 60.0) == ["work-2", "work-3", "work-4"]
    assert found.lost(pods, 60.0, ["west"]) == ["work-2", "work-4"], "what cannot be seen is not lost"
    found.workload(workload(5, kind="DELETED"), 61.0)
    assert "work-5" in found.lost(pods, 62.0)
    found.workload(workload(5, kind="ADDED"), 63.0)
    assert "work-5" not in found.lost(pods, 64.0)
    found.deleted(planned(2))
    assert "work-2" not in found.lost(pods, 64.0)


def test_a_job_whose_pod_has_just_ended_is_not_lost() -> None:
    """Its worker may create another one, or the hub has not learnt yet that it is over."""
    found = made(3)
    for number in range(3):
        found.workload(workload(number, "east"), 2.0)
    pods = [record(0, ended=95.0, phase="Succeeded"), record(1, ended=95.0, phase="Failed"), record(2, ended=50.0)]
    assert found.lost(pods, 100.0) == ["work-2"]
    assert found.lost(pods, 125.0) == ["work-0", "work-1", "work-2"]


def test_a_job_has_all_of_its_pods_when_as_many_as_it_has_are_there() -> None:
    found = made(2)
    pods = [record(0, bound=2.0, running=3.0), record(0, bound=5.0, running=7.0), record(1, bound=2.0)]
    measures = found.measures(pods, 0)
    assert (measures["jobTimeToNodes.max"], measures["jobTimeToRun.max"]) == (4.0, 6.0)


def test_a_job_with_fewer_completions_than_its_parallelism_has_that_many_pods() -> None:
    spec = {"parallelism": 4, "completions": 2}
    job = PlannedJob("work-0", "work", 0.0, 2, ({"kind": "Job", "metadata": {"name": "work-0"}, "spec": spec},))
    found = Dispatching("hub", ["east", "west"], [job], SPACE)
    found.created(job, 1.0)
    pods = [record(0, cluster="east", bound=bound, running=bound + 1) for bound in (2.0, 4.0)]
    assert found.measures(pods, lost=0)["jobTimeToNodes.max"] == 3.0


def test_pods_of_an_earlier_attempt_or_of_another_worker_make_no_job_whole() -> None:
    found = made(3)

    def attempt(number: int, cluster: str, *bound: float, ended: float | None = None) -> list[PodRecord]:
        return [record(number, bound=at, running=at + 1, ended=ended, cluster=cluster) for at in bound]

    pods = attempt(0, "east", 2, ended=20) + attempt(0, "west", 30, 40)
    # Never whole: one pod at a time, on one worker and then on the other.
    pods += attempt(1, "east", 2, ended=20) + attempt(1, "east", 20, ended=25) + attempt(1, "west", 22)
    # A pod that has completed is one of those that the job has.
    pods += [record(2, bound=3, running=4, ended=5, phase="Succeeded"), *attempt(2, "", 8)]
    measures = found.measures(pods, 0)
    assert (measures["jobTimeToNodes.min"], measures["jobTimeToNodes.max"]) == (7, 39)
    assert (measures["jobTimeToRun.min"], measures["jobTimeToRun.max"]) == (8, 40)


def test_workloads_of_other_namespaces_and_jobs_are_not_counted() -> None:
    found = made(1)
    stranger = workload(0, "east")
    found.workload(WatchEvent("ADDED", "default/job-work-0-abc", stranger.item), 2.0)
    found.workload(workload(7, "east"), 2.0)
    found.pod("east", pod(7))
    assert found.dispatched == 0


def test_it_is_said_when_the_hub_reaches_a_worker_no_more_and_again() -> None:
    found = made()

    def reach(name: str, status: str) -> tuple[str, bool] | None:
        item = {"status": {"conditions": [{"type": "Active", "status": status}]}}
        return found.reach(WatchEvent("MODIFIED", name, item))

    said = [reach("east", "True"), reach("east", "True"), reach("east", "False"), reach("east", "True")]
    assert said == [None, None, ("east", False), ("east", True)]
    assert reach("elsewhere", "False") is None
