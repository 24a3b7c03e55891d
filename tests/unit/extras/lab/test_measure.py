"""From what a watch tells to numbers."""

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.lab.cluster.components import SCHEDULER, Components, settings_of
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.measure import summary
from kumulus.extras.lab.measure.allocation import Allocation, GpuShare
from kumulus.extras.lab.measure.records import ExperimentRecords, victims
from kumulus.extras.lab.measure.sampler import MOST_SAMPLES, BindingCounts, Sampler, Series, bindings, events
from kumulus.extras.lab.measure.states import PREEMPTED
from kumulus.extras.lab.measure.statistics import Between, most_in_a_second, percentile, spread
from kumulus.extras.lab.measure.summary import by_reason, plain
from kumulus.extras.lab.measure.verdicts import verdicts
from kumulus.extras.lab.measure.views import NodeView, PodView, node_view, pod_view
from kumulus.extras.lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL
from kumulus.extras.lab.run.ending import Ending, Until, refused, starting, unseen
from kumulus.extras.watch.live.amounts import NOTHING, Amounts
from kumulus.kube import Client, Connection
from tests.support.apiserver import listening, ok, serving, status, text
from tests.support.clocks import SetClock
from tests.support.measuring import measures_of
from tests.support.messages import node_message, pod_message, quantities

GPUS = Amounts(gpus=8, cpu=2000, memory=10**9)


def pod(uid: str, job: str = "j", node: str = "", phase: str = "Pending", **fields: Any) -> PodView:
    defaults: dict[str, Any] = {"waits": "", "disrupted": "", "wants": GPUS}
    workload = fields.pop("workload", "w")
    return PodView(uid, workload, job, node, phase, **{**defaults, **fields})


def records(nodes: int = 4, workers: int = 2, jobs: int = 2) -> ExperimentRecords:
    allocation = Allocation()
    for number in range(nodes):
        zone = f"z{number % 2}"
        allocation.put_node(NodeView(f"n{number}", "a100", zone, Amounts(gpus=8, cpu=16_000, memory=64 * 10**9)))
    return ExperimentRecords(allocation, ((f"j{number}", "w", workers) for number in range(jobs)))


def test_pods_that_no_scheduler_looked_at_are_no_outcome() -> None:
    found = records()
    assert unseen(found, "default", {"mine"}) == ""
    for name in ("a", "b"):
        found.put(pod(name, "j0"), 1.0)
    assert unseen(found, "kube-scheduler", {"mine"}).startswith(
        "no scheduler looked at any of the 2 pods, which ask for schedulerName mine"
    )
    assert unseen(found, "yunikorn", {"yunikorn"}) == ""
    for waits in ("SchedulingGated: waits", "Unschedulable: no"):
        found.put(pod("b", "j0", waits=waits), 2.0)
        assert unseen(found, "default", {"default-scheduler"}) == ""


def test_a_pod_is_pending_then_bound_then_runs_then_ends() -> None:
    found = records()
    found.put(pod("a", "j0"), 1.0)
    assert (found.pending, found.untried, found.live) == (1, 1, 1)
    found.put(pod("a", "j0", waits="Unschedulable: no"), 2.0)
    assert (found.untried, dict(found.pending_by_reason())) == (0, {"Unschedulable: no": 1})
    found.put(pod("a", "j0", node="n0"), 3.0)
    assert (found.pending, found.counts["bound"], found.allocation.allocated) == (0, 1, GPUS)
    found.put(pod("a", "j0", node="n0", phase="Running"), 4.0)
    assert found.running == 1
    found.put(pod("a", "j0", node="n0", phase="Succeeded"), 9.0)
    assert (found.running, found.live, found.allocation.allocated.gpus) == (0, 0, 0)
    found.gone("a", 10.0)
    record = found.pods["a"]
    assert (record.created, record.bound, record.running, record.ended) == (1, 3, 4, 9)


def test_a_pod_that_has_succeeded_has_run_at_some_time_since_it_was_bound() -> None:
    """A client that was cut off may hear of its end alone."""
    found = records()
    found.put(pod("a", "j0", node="n0"), 3.0)
    found.put(pod("a", "j0", node="n0", phase="Succeeded"), 9.0, since=8.0)
    found.put(pod("b", "j0"), 3.0)
    found.put(pod("b", "j0", node="n0", phase="Succeeded"), 9.0, since=5.0)
    assert [found.pods[each].when("running") for each in "ab"] == [Between(3.0, 9.0), Between(5.0, 9.0)]
    assert (found.running, found.counts["ran"]) == (0, 2)
    found.put(pod("c", "j0", node="n0", phase="Failed"), 9.0)
    assert found.pods["c"].running is None


def test_a_pod_with_scheduling_gates_has_not_been_tried() -> None:
    found = records()
    for uid in "abc":
        found.put(pod(uid, "j0", waits="SchedulingGated: Scheduling is blocked"), 1.0)
    assert (found.untried, found.changed) == (3, 1.0)
    assert dict(found.pending_by_reason()) == {"SchedulingGated: Scheduling is blocked": 3}
    found.put(pod("a", "j0", waits="Unschedulable: no"), 2.0)
    found.put(pod("b", "j0", node="n0"), 3.0)
    found.gone("c", 4.0)
    assert found.untried == 0


def test_a_job_is_partly_admitted_between_its_first_and_its_last_worker() -> None:
    found = records()
    for uid, job in (("a", "j0"), ("b", "j0"), ("c", "j1"), ("d", "j1")):
        found.put(pod(uid, job), 0.0)
    seen = []
    for uid, job, node in (("a", "j0", "n0"), ("c", "j1", "n1"), ("b", "j0", "n2")):
        found.put(pod(uid, job, node), 1.0)
        seen.append(found.partly)
    assert seen == [1, 2, 1]
    assert found.partly_peak == 2
    assert [job.last is not None for job in found.jobs.values()] == [True, False]
    found.gone("b", 2.0)
    assert found.partly == 2, "a job that loses a worker is in part again"


def test_a_job_whose_workers_complete_one_by_one_is_admitted() -> None:
    found = records(jobs=1)
    found.put(pod("a", "j0", "n0", "Running"), 1.0)
    found.put(pod("a", "j0", "n0", "Succeeded"), 2.0)
    found.put(pod("b", "j0", "n0", "Running"), 3.0)
    assert found.jobs["j0"].last == 3.0


def test_a_job_that_is_scaled_down_to_the_pods_that_have_nodes_is_admitted_then() -> None:
    found = records(jobs=1, workers=3)
    for uid, node in (("a", "n0"), ("b", "n1"), ("c", "")):
        found.put(pod(uid, "j0", node), 1.0)
    found.resized("j0", 1, 2.0)
    assert (found.jobs["j0"].last, found.partly) == (2.0, 0)
    found.resized("j0", 2, 3.0)
    assert found.jobs["j0"].last == 2.0, "it was admitted before"
    found = records(jobs=1, workers=3)
    found.put(pod("a", "j0"), 1.0)
    found.resized("j0", 0, 2.0)
    assert found.jobs["j0"].last is None, "it has no pods to place"


def test_a_job_that_is_scaled_to_nothing_is_neither_whole_nor_in_part() -> None:
    found = records(jobs=1, workers=3)
    for uid in "ab":
        found.put(pod(uid, "j0", "n0"), 1.0)
    assert (found.jobs["j0"].partly, found.complete) == (True, False)
    found.resized("j0", 0, 2.0)
    found.gone("a", 3.0)
    assert (found.jobs["j0"].last, found.partly, found.jobs["j0"].partly, found.complete) == (None, 0, False, True)


def test_what_was_evicted_is_counted_by_who_did_it() -> None:
    found = records()
    found.put(pod("a", "j0", "n0", disrupted="PreemptionByScheduler"), 1.0)
    found.put(pod("a", "j0", "n0", disrupted="PreemptionByScheduler"), 1.5)
    found.put(pod("b", "j0", "n1", disrupted="DeletionByPodGC"), 2.0)
    assert (found.counts["preempted"], found.counts["disrupted"]) == (1, 1)


def group(status: str = "", minimum: int = 1) -> dict[str, Any]:
    """A PodGroup of a gang, whose condition says whether it is placed; by default it says nothing."""
    conditions = [{"type": "PodGroupInitiallyScheduled", "status": status}] if status else []
    return {"spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}, "status": {"conditions": conditions}}


def test_groups_are_counted_by_their_conditions_and_by_the_pods_that_name_them() -> None:
    found = records()

    def put(name: str, now: float, status: str = "") -> None:
        found.groups.put(name, group(status, 2), now, now)

    assert found.groups.measures(found.pods.values()) == {}
    for name in ("a/whole", "a/partly", "a/waits", "a/strangers"):
        put(name, 1.0)
        for number in range(2):
            found.put(pod(f"{name}-{number}", group=name, workload="" if name == "a/strangers" else "w"), 1.0)
    put("a/waits", 2.0, "False")
    put("a/whole", 3.0, "True")
    put("a/partly", 5.0, "True")
    for name in ("whole", "partly"):
        for number in range(2):
            found.put(pod(f"a/{name}-{number}", node="n0", group=f"a/{name}"), 5.0)
    victim = pod("a/partly-1", node="n0", group="a/partly", disrupted="PreemptionByScheduler")
    found.put(victim, 6.0)
    found.gone("a/partly-1", 7.0)
    # What has been placed once stays so, whatever becomes of its pods.
    put("a/partly", 8.0, "True")
    measured = found.groups.measures(found.pods.values())
    assert {name: value for name, value in measured.items() if name.startswith("groups.")} == {
        "groups.total": 3,
        "groups.admitted": 2,
        "groups.partlyPlaced": 1,
        "groups.preempted": 1,
    }
    assert (measured["groupTimeToPlacement.min"], measured["groupTimeToPlacement.max"]) == (2.0, 4.0)
    assert victims(found.pods.values()) == {"a/partly": 1}


def test_groups_of_jobs_that_are_no_gangs_are_not_measured() -> None:
    """Kubernetes makes one for each Job, and says that it is placed as soon as one of its pods is."""
    found = records()
    basic = {**group("True"), "spec": {"schedulingPolicy": {"basic": {}}}}
    for name, made in (("job", basic), ("gang", group("True"))):
        found.put(pod(name, node="n0", group=f"a/{name}"), 1.0)
        found.groups.put(f"a/{name}", made, 1.0, 1.0)
        assert found.groups.measures(found.pods.values()).get("groups.total") == (1 if name == "gang" else None)


def test_groups_of_which_the_scheduler_says_nothing_are_not_measured() -> None:
    """As of Volcano: the Jobs' own groups are there, and it places pods by those that it knows."""
    found = records()
    found.groups.put("a/g", group(), 1.0, 1.0)
    found.put(pod("g", group="a/g"), 1.0)
    assert found.groups.measures(found.pods.values())["groups.admitted"] == 0
    found.put(pod("g", node="n0", group="a/g"), 2.0)
    assert found.groups.measures(found.pods.values()) == {}
    found.groups.put("a/g", group("False"), 3.0, 3.0)
    assert found.groups.measures(found.pods.values())["groups.total"] == 1


@pytest.mark.parametrize(("counted", "evaluated"), [([3, 10], 7), ([3], None), ([], None), ([10, 3], None)], ids=str)
async def test_placements_are_counted_over_the_measurement_unless_the_scheduler_was_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: list[int], evaluated: int | None
) -> None:
    found = records()
    found.groups.put("a/g", group(), 1.0, 1.0)
    found.put(pod("g", group="a/g"), 1.0)
    components = Components(tmp_path)
    sampler = Sampler(found, components, None, lambda: 1.0)
    name = "scheduler_placement_evaluations_total"

    async def metrics(_: str) -> str:
        infeasible = counted.pop(0) - 1
        return f'{name}{{profile="p",result="feasible"}} 1\n{name}{{profile="p",result="infeasible"}} {infeasible}\n'

    monkeypatch.setattr(components, "metrics", metrics)
    while counted:
        await sampler.count_placements()
    measured = summary.measures(found, sampler, 1.0, 1.0)
    assert measured.get("placements.evaluated") == evaluated


def test_a_group_whose_placement_was_not_heard_of_at_once_has_no_time() -> None:
    found = records()
    found.groups.put("a/g", group(), 1.0, 1.0)
    found.put(pod("g", group="a/g"), 1.0)
    found.groups.put("a/g", group("True"), 9.0, 2.0)
    assert found.groups.measures(found.pods.values())["groupTimeToPlacement.max"] == (1.0, 8.0)


def test_a_pod_of_no_workload_takes_its_place_and_is_not_counted() -> None:
    found = records()
    for _ in range(2):
        found.put(pod("x", "", "n0", "Running", workload=""), 1.0)
    assert (found.counts["created"], found.allocation.allocated) == (0, GPUS)
    found.put(pod("y", "", "n1", "Running", workload=""), 1.0)
    found.put(pod("y", "", "n1", "Succeeded", workload=""), 2.0)
    found.gone("x", 3.0)
    found.gone("y", 3.0)
    assert found.allocation.allocated == NOTHING


def test_allocation_is_the_sum_over_nodes_whatever_the_order_of_events() -> None:
    source, allocation = random.Random(5), Allocation()
    there: dict[str, int] = {}
    used: dict[str, list[int]] = {f"n{number}": [] for number in range(6)}
    for _ in range(500):
        name = f"n{source.randrange(6)}"
        match source.randrange(4):
            case 0:
                there[name] = source.choice((4, 8))
                allocation.put_node(NodeView(name, "p", "z", Amounts(gpus=there[name])))
            case 1:
                there.pop(name, None)
                allocation.remove_node(name)
            case 2 if sum(used[name]) < 4:
                used[name].append(1)
                allocation.bind(name, Amounts(gpus=1))
            case 3 if used[name]:
                allocation.release(name, Amounts(gpus=used[name].pop()))
        taken = sum(sum(used[node]) for node in there)
        free = {node: there[node] - sum(used[node]) for node in there}
        scattered = sum(left for node, left in free.items() if used[node] and left > 0)
        assert allocation.capacity.gpus == sum(there.values())
        assert allocation.allocated.gpus == taken
        assert allocation.fragmentation == pytest.approx(scattered / sum(free.values()) if sum(free.values()) else 0)
        assert allocation.cells.get(("p", "z"), GpuShare()).allocated == taken


@pytest.mark.parametrize(
    ("until", "state", "over"),
    [
        ("scheduled", {"bound": 4}, "all pods are scheduled"),
        ("scheduled", {"bound": 3}, ""),
        ("scheduled", {"bound": 3, "tried": 1}, "1 pod fits nowhere"),
        ("scheduled", {"bound": 3, "tried": 1, "quiet": 1}, ""),
        ("scheduled", {"bound": 3, "quiet": 40}, "nothing happens any more; 1 pods are left pending"),
        ("scheduled", {"created": 3, "bound": 3, "quiet": 10}, ""),
        ("scheduled", {"created": 3, "bound": 3, "quiet": 40}, "nothing happens any more; 1 pods are missing"),
        ("running", {"bound": 4}, ""),
        ("running", {"bound": 4, "phase": "Running"}, "all pods are running"),
        ("completed", {"bound": 4, "phase": "Running"}, ""),
        ("completed", {"bound": 4, "phase": "Running", "quiet": 400}, ""),
        ("completed", {"bound": 4, "phase": "Succeeded"}, "all pods are completed"),
        ("completed", {"bound": 3, "tried": 1, "phase": "Running", "quiet": 400}, ""),
        ("completed", {"bound": 3, "tried": 1, "phase": "Succeeded"}, "1 pod fits nowhere"),
        ("steady", {"bound": 4, "quiet": 4}, ""),
        ("steady", {"bound": 4, "quiet": 6}, "no pod and no node has changed for 5 s"),
        ("steady", {"bound": 4, "quiet": 6, "nodes": 3}, ""),
        ("steady", {"created": 5, "bound": 5, "quiet": 29}, ""),
        ("steady", {"created": 3, "bound": 3, "quiet": 29}, ""),
        ("steady", {"created": 3, "bound": 3, "quiet": 31}, "no pod and no node has changed for 31 s"),
        ("steady", {"bound": 3, "quiet": 6}, "no pod and no node has changed for 5 s; 1 pods are pending"),
    ],
)
def test_a_repetition_is_over_when_nothing_more_can_happen(until: Until, state: dict[str, Any], over: str) -> None:
    found = records()
    for number in range(state.get("created", 4)):
        bound = number < state["bound"]
        waits = "Unschedulable: no" if not bound and state.get("tried") else ""
        phase = state.get("phase", "Pending") if bound else "Pending"
        found.put(pod(f"p{number}", f"j{number // 2}", f"n{number}" if bound else "", phase, waits=waits), 1.0)
    found.nodes_changed = float(state.get("nodes", 0.0))
    assert Ending(found, until, settle=5, expected=4).reason(1.0 + state.get("quiet", 6)) == over


@pytest.mark.parametrize(
    ("until", "phases", "over"),
    [
        ("completed", "SS", ""),
        ("completed", "SSSR", ""),
        ("completed", "SSSSSS", "all pods are completed"),
        ("completed", "SSPP", "2 pods fit nowhere"),
        ("completed", "PP", "2 pods fit nowhere"),
        ("running", "RR", "all pods are running"),
        ("scheduled", "RR", "all pods are scheduled"),
    ],
)
def test_pods_that_follow_as_others_complete_are_waited_for(until: Until, phases: str, over: str) -> None:
    """A Job with six completions has two pods at a time."""
    found = records(workers=2, jobs=1)
    for number, phase in enumerate(phases):
        name, word = f"p{number}", {"S": "Succeeded", "R": "Running", "P": "Pending"}[phase]
        node, waits = ("n0", "") if phase != "P" else ("", "Unschedulable: no")
        found.put(pod(name, "j0", node, word, waits=waits), 1.0)
    assert Ending(found, until, settle=5, expected=2, later=4).reason(7.0) == over


@pytest.mark.parametrize(("bound", "takes", "asks"), [(4, 9, []), (3, 0.5, [6]), (3, 9, [6, 20])])
async def test_that_nothing_was_heard_ends_it_only_if_the_server_answers_at_once(
    bound: int, takes: float, asks: list[float]
) -> None:
    found, asked, clock = records(), [], SetClock(6.0)
    for number in range(4):
        node, waits = (f"n{number}", "") if number < bound else ("", "Unschedulable: no")
        found.put(pod(f"p{number}", f"j{number // 2}", node, waits=waits), 1.0)
    ending = Ending(found, "scheduled", settle=5, expected=4)

    async def ask() -> None:
        asked.append(clock.now)
        clock.now += takes if len(asked) == 1 else 0

    while not await ending.over(clock, ask):
        clock.now += 5
    assert asked == asks


async def test_why_pods_are_missing_is_what_their_controller_heard_last() -> None:
    events = [
        {"message": text, "lastTimestamp": at} for at, text in (("10:02", "quota"), ("10:03", "again"), (None, "x"))
    ]
    async with serving() as server:
        server.answers = [ok({"items": events}), ok({"items": []}), status(403, "Forbidden", "no")]
        async with server.client() as client:
            assert [await refused(client, "run") for _ in range(3)] == ["again", "", ""]
    assert server.seen[0].query == {"fieldSelector": "reason=FailedCreate"}
    assert Ending(records(), "completed", settle=5, expected=2).lacking
    assert not Ending(records(), "completed", settle=5, expected=0).lacking


def test_a_job_that_a_queue_has_admitted_is_starting_until_all_of_its_pods_have_been_there() -> None:
    found = records(workers=2, jobs=2)
    assert not starting(found, set())
    assert not starting(found, {"another's"})
    for number in range(2):
        assert starting(found, {"j0"})
        found.put(pod(f"p{number}", "j0", "n0"), 1.0)
    found.gone("p1", 2.0)
    assert not starting(found, {"j0"})
    assert starting(found, {"j0", "j1"})
    found.resized("j1", 0, 3.0)
    assert not starting(found, {"j0", "j1"})


@pytest.mark.parametrize(
    ("bare", "over"), [(True, "all pods are scheduled"), (False, "nothing happens any more; 1 pods are missing")]
)
def test_a_preempted_pod_that_no_controller_makes_again_is_not_waited_for(bare: bool, over: str) -> None:
    found = records()
    for name in ("a", "b"):
        found.put(pod(name, "j0", "n0", bare=bare), 1.0)
    found.put(pod("a", "j0", "n0", bare=bare, disrupted=PREEMPTED), 2.0)
    found.gone("a", 3.0)
    assert Ending(found, "scheduled", settle=5, expected=2).reason(40.0) == over


def test_of_a_deleted_job_nothing_follows() -> None:
    found = records(workers=2, jobs=1)
    ending = Ending(found, "completed", settle=5, expected=2, later=4)
    ending.expect(-2, -4)
    assert ending.reason(7.0) == "all pods are completed"


def test_what_was_there_before_the_clock_starts_is_no_change() -> None:
    found = records(jobs=0)
    found.nodes_changed = 30.0
    found.begin()
    assert Ending(found, "steady", settle=5, expected=0).reason(6.0) == "no pod and no node has changed for 5 s"


def test_what_is_there_before_others_come_is_left_out_of_times_and_rates_of_scheduling_and_counted_otherwise() -> None:
    found = ExperimentRecords(records().allocation, [("j0", "filler", 1), ("j1", "w", 2)], {"filler"})
    times = {"f": ("filler", "j0", 9.0), "a": ("w", "j1", 10.0), "b": ("w", "j1", 11.0)}
    for name, (workload, job, at) in times.items():
        found.put(pod(name, job, workload=workload), 0.0)
        found.put(pod(name, job, "n0", workload=workload), at)
    measures = measures_of(found, 12.0)
    assert [measures[f"scheduling.{each}"] for each in ("duration", "rate")] == [1, 1]
    assert [measures[f"{each}.min"] for each in ("timeToSchedule", "jobTimeToSchedule")] == [10, 11]
    assert (measures["pods.scheduled"], measures["jobs.admitted"]) == (3, 2)


def test_reasons_are_told_apart_by_their_words_and_not_by_their_numbers() -> None:
    one = (
        "Unschedulable: 0/2550 nodes are available: 1000 node(s) didn't match Pod's node affinity/selector, "
        "50 Insufficient nvidia.com/gpu, 1500 node(s) didn't match pod affinity rules. no new claims to deallocate, "
        "preemption: 0/2550 nodes are available: 2550 Preemption is not helpful for scheduling."
    )
    other = one.replace("1500", "1499").replace("50 Insuf", "51 Insuf")
    assert plain(one) == plain(other)
    assert plain(one) == (
        "Unschedulable: Insufficient nvidia.com/gpu, node(s) didn't match Pod's node affinity/selector, "
        "node(s) didn't match pod affinity rules"
    )
    assert by_reason({one: 3, other: 4, "SchedulingGated: x": 1}) == {plain(one): 7, "SchedulingGated: x": 1}


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(1, 201)]
    assert [percentile(values, part) for part in (50, 90, 99, 100)] == [100, 180, 198, 200]
    assert spread([3.0]) == {"min": 3, "mean": 3, "p50": 3, "p90": 3, "p99": 3, "max": 3}
    assert spread([]) == {}


def test_the_peak_rate_is_the_most_in_any_second() -> None:
    assert most_in_a_second([0.0, 0.9, 1.0, 1.8, 5.0]) == 3
    assert most_in_a_second([]) == 0


def test_a_long_series_is_thinned_and_its_columns_stay_of_one_length() -> None:
    series = Series()
    for number in range(MOST_SAMPLES + 1):
        series.add({"t": number, **({"late": 5.0} if number > 10 else {})})
    assert series.every == 2
    assert {len(values) for values in series.columns.values()} == {MOST_SAMPLES // 2 + 1}
    assert series.columns["t"][:3] == [0, 2, 4]
    assert series.columns["late"][5:7] == [0.0, 5.0]


def test_of_a_pod_that_little_is_looked_at() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    labels = {WORKLOAD_LABEL: "train", JOB_LABEL: "train-3"}
    wants = {"resources": {"requests": quantities(gpu="8")}}
    message = pod_message(containers=[wants], conditions=[condition], metadata={"uid": "u", "labels": labels})
    expected = PodView("u", "train", "train-3", "", "Pending", "Unschedulable: 0/1 nodes", "", Amounts(gpus=8, pods=1))
    assert pod_view(message) == expected._replace(bare=True)
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    bound = pod_view(pod_message(node="n1", conditions=[{"type": "PodScheduled", "status": "True"}, evicted]))
    assert (bound.node, bound.waits, bound.disrupted) == ("n1", "", "PreemptionByScheduler")


@pytest.mark.parametrize(
    ("requests", "share"),
    [
        ({"kumulus.io/gpu-milli": "250"}, 250),
        # As the API server writes 1000.
        ({"kumulus.io/gpu-milli": "1k"}, 1000),
        ({"kumulus.io/gpu-milli": "2500"}, 2500),
        ({"kumulus.io/gpu-milli": "1k", "gpu": "1"}, 0),
    ],
)
def test_parts_of_a_gpu_are_read_as_the_api_server_writes_them(requests: dict[str, str], share: int) -> None:
    assert pod_view(pod_message(containers=[{"resources": {"requests": quantities(**requests)}}])).share == share


def test_a_nodes_product_is_its_label_or_what_the_views_call_it() -> None:
    label = "example.com/gpu"
    assert node_view(node_message(labels={"kumulus.io/group": "g"}), label).product == "g"
    assert node_view(node_message(labels={"nvidia.com/gpu.product": "H100"}), label).product == "H100"
    assert node_view(node_message(labels={label: "x", "nvidia.com/gpu.product": "H100"}), label).product == "x"
    assert node_view(node_message(capacity=quantities(cpu="1")), label) == NodeView("n", "other", "-", Amounts(1000))


def test_the_api_servers_counter_is_read_from_its_metrics() -> None:
    labels = 'component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="binding"'
    metrics = (
        f'apiserver_request_total{{code="201",{labels},verb="POST",version="v1"}} 2550\n'
        f'apiserver_request_total{{code="409",{labels},verb="POST",version="v1"}} 3\n'
        'apiserver_request_total{code="201",resource="pods",subresource="",verb="POST"} 9\n'
    )
    assert bindings(metrics) == 2550


def test_the_events_that_were_written_are_counted_whoever_writes_them_and_however() -> None:
    def line(code: int, group: str, verb: str, count: int, resource: str = "events") -> str:
        labels = f'dry_run="",group="{group}",resource="{resource}",scope="resource",subresource="",verb="{verb}"'
        return f'apiserver_request_total{{code="{code}",component="apiserver",{labels},version="v1"}} {count}\n'

    written = line(201, "events.k8s.io", "POST", 2000) + line(200, "events.k8s.io", "PATCH", 300)
    written += line(201, "", "POST", 40) + line(201, "", "APPLY", 5)
    others = line(403, "", "POST", 7) + line(200, "", "LIST", 8) + line(200, "", "WATCH", 9)
    assert events(written + others + line(201, "", "POST", 11, "pods")) == 2345


@pytest.mark.parametrize(
    ("counted", "found"),
    [
        ([(10, 0, 4), (60, 50, 64)], {"bindings.counted": 50, "events.written": 60, "bindings.difference": 0}),
        ([(10, 0), (110, 50)], {"bindings.counted": 100, "events.written": 0, "bindings.difference": 0.5}),
        ([(10, 0), (10, 0)], {"bindings.counted": 0, "events.written": 0}),
        ([(0, 0, 9), (0, 0, 3)], {}),
        ([(10, 0), (60, 50), (3, 53)], {}),
        ([(10, 0), (5, 40), (60, 95)], {}),
        ([(10, 0)], {}),
    ],
)
def test_a_count_that_began_anew_with_the_api_server_measures_nothing(
    counted: list[tuple[int, ...]], found: dict[str, float]
) -> None:
    samples = [BindingCounts(float(at), *each) for at, each in enumerate(counted)]
    assert summary._counter(samples) == found


async def test_the_first_count_is_of_the_start_of_the_clock(tmp_path: Path) -> None:
    """The clock counts from earlier on before the run starts."""
    counted = 'apiserver_request_total{code="201",resource="pods",subresource="binding",verb="POST"} 7\n'
    counted += 'apiserver_request_total{code="201",resource="events",subresource="",verb="POST"} 3\n'
    async with listening(text(200, counted)) as address, Client(Connection(address, "test"), patience=1) as client:
        sampler = Sampler(records(), Components(tmp_path), client, lambda: 30.0)
        await sampler.start()
        await sampler.count()
    assert sampler.counted == [BindingCounts(0, 7, 0, 3), BindingCounts(30, 7, 0, 3)]


def test_what_is_used_after_the_last_sample_is_of_no_measure(tmp_path: Path) -> None:
    components = Components(tmp_path)
    components.look({SCHEDULER: [os.getpid()]})
    sampler = Sampler(records(), components, None, lambda: 1.0)
    sampler.began = components.usage()
    burn(0.1)
    sampler.sample()
    sampled = sampler.series.columns[f"cpu {SCHEDULER}"][-1]
    burn(0.1)
    measures = summary._usage(sampler)
    assert 0 < sampled == pytest.approx(measures["cpu.scheduler"], abs=1e-4)
    assert measures["cpu.controlPlane"] == measures["cpu.scheduler"] < measures["cpu.client"]


def burn(seconds: float) -> None:
    """Use so much CPU time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_the_limits_of_a_component_are_its_flags() -> None:
    command = ["kube-scheduler", "--kube-api-qps=5000", "--kube-api-burst=10000", "--v=2", "--leader-elect=false"]
    assert settings_of(command) == {"kube-api-qps": "5000", "kube-api-burst": "10000", "leader-elect": "false"}


def test_expectations_are_judged_on_measures_and_on_nodes() -> None:
    expect = [
        {"measure": "allocation.gpu", "atLeast": "99%"},
        {"measure": "makespan", "atMost": "10s", "atLeast": "1s"},
        {"workload": "w", "nodes": ["n1", "n0"]},
    ]
    experiment = ExperimentSpec.checked({"name": "t", "workloads": [{"name": "w"}], "expect": expect})
    found = records()
    found.put(pod("a", "j0", "n0"), 1.0)
    judged = verdicts(experiment.expect, {"allocation.gpu": 0.985}, found)
    assert [(each.what, each.holds, each.found) for each in judged] == [
        ("allocation.gpu at least 99.0 %", False, "98.5 %"),
        ("makespan at most 10.00 s", False, "not measured"),
        ("makespan at least 1.00 s", False, "not measured"),
        ("w on n0, n1", False, "n0"),
    ]
    found.put(pod("b", "j0", "n1"), 1.0)
    assert verdicts(experiment.expect[2:], {}, found)[0].holds


def test_nodes_are_counted_by_type_as_they_come_and_go() -> None:
    allocation = Allocation()
    node = NodeView("a", "p", "z", Amounts(cpu=1000), 1.0, "e2-standard-4")
    allocation.put_node(node)
    allocation.begin()
    allocation.put_node(node)
    assert (allocation.nodes_came, allocation.nodes_gone) == (0, 0)
    allocation.put_node(node._replace(name="b", kind="e2-standard-4 spot"))
    allocation.remove_node("a")
    allocation.remove_node("a")
    assert (allocation.nodes_came, allocation.nodes_gone) == (1, 1)
    assert allocation.kinds == {"e2-standard-4": 0, "e2-standard-4 spot": 1}
    allocation.end()
    allocation.remove_node("b")
    assert allocation.nodes_gone == 1


def test_a_nodes_kind_is_its_type_and_whether_it_is_a_spot_machine() -> None:
    label, labels = "nvidia.com/gpu.product", {"node.kubernetes.io/instance-type": "e2-standard-4"}
    assert node_view(node_message(labels=labels), label).kind == "e2-standard-4"
    spot = {**labels, "karpenter.sh/capacity-type": "spot"}
    assert node_view(node_message(labels=spot), label).kind == "e2-standard-4 spot"
    assert node_view(node_message(), label).kind == ""
