"""What users had of a run: waits, slowdowns, shares, fairness; and GPU-hours used, idle and stranded."""

import random
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.lab.file.load import loaded_from
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.by_user import OTHERS, jain, users_of
from kumulus.extras.lab.measure.over_time import GpuHours
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.states import PodRecord
from kumulus.extras.lab.measure.statistics import only_known
from kumulus.extras.lab.measure.views import NodeView, PodView, pod_view
from kumulus.extras.lab.plan.asked import pods_planned, users_planned
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.report import compare, plots, spreads
from kumulus.extras.lab.report.making import _by_user
from kumulus.extras.lab.report.model import PolicyUsed, Report
from kumulus.extras.lab.report.text import lines
from kumulus.extras.watch.live.amounts import Amounts
from tests.support.clocks import SetClock
from tests.support.messages import pod_message, quantities
from tests.support.reports import report

TRACE = "submitted,cpu,memory,gpus,milli,vc\n0,4,8Gi,1,500,physics\n1,8,16Gi,2,1000,physics\n2,8,16Gi,2,1000,biology\n"


def pod(job: str, gpus: int, created: float, bound: float | None, ended: float | None, **fields: Any) -> PodRecord:
    """A pod that ran from its binding to its end."""
    record = PodRecord("w", job, Amounts(cpu=1000, gpus=gpus), created, bound=bound, running=bound, ended=ended)
    record.phase = "Succeeded" if ended is not None else "Pending"
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def records(*pods: PodRecord) -> ExperimentRecords:
    """The account of pods, as the watch reported them."""
    found = ExperimentRecords(Allocation(), dict.fromkeys((each.job, "w", 1) for each in pods))
    moments = sorted({at for each in pods for at in (each.created, each.bound, each.ended) if at is not None})
    for now in moments:
        for number, each in enumerate(pods):
            if each.created <= now:
                bound, ended = (at is not None and at <= now for at in (each.bound, each.ended))
                phase = each.phase if ended else "Running" if bound else "Pending"
                node = "n" if bound else ""
                view = PodView(str(number), "w", each.job, node, phase, "", "", each.wants, each.share)
                found.put(view, now)
    return found


def test_users_are_measured_by_what_they_waited_and_had() -> None:
    pods = [
        pod("a1", 2, 0.0, 0.0, 50.0),
        pod("a2", 2, 0.0, 50.0, 100.0),
        pod("b1", 4, 0.0, 90.0, None),
        pod("b2", 4, 0.0, None, None),
        pod("nobody", 1, 0.0, 0.0, 10.0),
    ]
    found = users_of(records(*pods), {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}, until=100.0)
    a, b = found.by_name["a"], found.by_name["b"]
    assert (found.of, a.pods, a.scheduled, b.scheduled) == ("gpus", 2, 2, 1)
    assert (sorted(a.waited.heard), b.waited.heard) == ([0.0, 50.0], [90.0])
    # The second waited as long as it ran.
    assert sorted(a.slowdown.heard) == [1.0, 2.0]
    assert (a.had, a.asked, b.had, b.asked) == (200.0, 300.0, 40.0, 800.0)
    measured = only_known(found.measures())
    assert measured["fairness.users"] == 2
    assert measured["fairness.jain"] == pytest.approx(jain([2 / 3, 1 / 20]))
    assert measured["fairness.jainShare"] == pytest.approx(jain([200, 40]))
    assert measured["slowdown.max"] == 2.0


def test_the_share_of_a_user_follows_what_pods_hold() -> None:
    found = users_of(
        records(pod("a", 2, 0.0, 0.0, 60.0), pod("b", 6, 0.0, 40.0, 80.0)), {"a": "a", "b": "b"}, until=100.0
    )
    shares = found.shares()
    at = {round(time): index for index, time in enumerate(shares["t"])}
    assert [(shares["a"][at[time]], shares["b"][at[time]]) for time in (10, 50, 70, 90)] == [
        (1.0, 0.0), (0.25, 0.75), (0.0, 1.0), (0.0, 0.0),
    ]  # fmt: skip


def test_users_past_the_ninth_are_drawn_as_one() -> None:
    pods = [pod(f"j{number}", 1 + number, 0.0, 0.0, 100.0) for number in range(12)]
    shares = users_of(records(*pods), {f"j{number}": f"u{number}" for number in range(12)}, until=100.0).shares()
    assert [*shares] == ["t", *(f"u{number}" for number in range(11, 2, -1)), OTHERS]
    assert shares[OTHERS][50] == pytest.approx((1 + 2 + 3) / 78, abs=1e-3)


def test_parts_of_gpus_count_as_parts() -> None:
    pods = [pod("a", 0, 0.0, 0.0, 10.0, share=250), pod("b", 1, 0.0, 0.0, 10.0)]
    found = users_of(records(*pods), {"a": "a", "b": "b"}, 10.0)
    assert (found.by_name["a"].had, found.by_name["b"].had) == (2.5, 10.0)


def test_without_gpus_shares_are_of_cpus_and_what_ends_at_once_is_not_slowed_down_without_bound() -> None:
    found = users_of(records(pod("a", 0, 0.0, 5.0, 5.001)), {"a": "a"}, 10.0)
    assert found.of == "cpus"
    assert found.by_name["a"].slowdown.heard == [pytest.approx(5.001)]
    assert "fairness.jain" not in found.measures()


def test_jains_index_is_one_for_equals_and_the_reciprocal_for_one_who_has_it_all() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([0.0, 0.0]) == 1.0


def test_a_job_is_of_the_traces_user_or_else_of_its_queue(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    columns = {"arrival": "submitted", "cpu": "cpu", "memory": "memory", "gpus": "gpus", "gpuMilli": "milli"}
    traced = {"name": "t", "kind": "Pod", "arrival": {"trace": {"file": "t.csv", "columns": {**columns, "user": "vc"}}}}
    queued = {"name": "q", "kind": "Job", "jobs": 1, "workers": 3, "queue": "team", "requests": {"nvidia.com/gpu": "1"}}
    raw = {"name": "x", "policy": "FGD", "workloads": [traced, queued, {"name": "n", "jobs": 1}]}
    loaded = loaded_from(raw, tmp_path, "x", "")
    plan = make(loaded, {})
    users = users_planned(plan, loaded.experiment)
    assert users == {"t-1": "physics", "t-2": "physics", "t-3": "biology", "q-1": "team"}
    asked = pods_planned(plan, loaded.experiment.productLabel)
    assert sorted((each.gpus, each.gpu_milli) for each in asked if each.gpus) == [
        (1, 500), (1, 1000), (1, 1000), (1, 1000), (2, 1000), (2, 1000),
    ]  # fmt: skip


def test_what_a_pod_asks_of_one_gpu_is_seen() -> None:
    requests = {"kumulus.io/gpu-milli": quantities(cpu="250")["cpu"]}
    share = pod_message("a", containers=[{"resources": {"requests": requests}}])
    assert pod_view(share).share == 250
    assert pod_view(pod_message("b")).share == 0


NODE = Amounts(cpu=8000, gpus=4)
WANTS_TWO = Pod("p", 4000, 0, 2, 1000)


def hours(time: SetClock, *pods: Pod) -> GpuHours:
    found = GpuHours(time)
    found.expect(pods or (WANTS_TWO,))
    found.begin()
    return found


def test_free_gpus_are_stranded_where_no_typical_pod_fits() -> None:
    time = SetClock(0.0)
    found = hours(time)
    found.put("a", "a100", NODE, Amounts(), 0)
    time.now = 3600
    # One GPU is free: too few. Then two are, without the CPUs for them.
    found.put("a", "a100", NODE, Amounts(cpu=1000, gpus=3), 0)
    time.now = 7200
    found.put("a", "a100", NODE, Amounts(cpu=6000, gpus=2), 0)
    time.now = 10_800
    assert found.measures() == {"gpuHours.used": 5.0, "gpuHours.idle": 7.0, "gpuHours.stranded": 3.0}


def test_a_model_that_no_typical_pod_may_run_on_strands_its_gpus() -> None:
    time = SetClock(0.0)
    found = hours(time, Pod("p", 1000, 0, 1, 1000, frozenset({"h100"})))
    found.put("a", "a100", NODE, Amounts(), 0)
    found.put("b", "h100", NODE, Amounts(), 0)
    time.now = 3600
    assert found.measures()["gpuHours.stranded"] == 4.0


def test_parts_of_gpus_are_used_and_a_small_rest_serves_only_pods_that_want_little() -> None:
    time = SetClock(0.0)
    few, large = hours(time, Pod("p", 1000, 0, 1, 300)), hours(time)
    for each in (few, large):
        each.put("a", "a100", NODE, Amounts(gpus=3), 700)
    time.now = 3600
    assert few.measures() == pytest.approx({"gpuHours.used": 3.7, "gpuHours.idle": 0.3, "gpuHours.stranded": 0.0})
    assert large.measures()["gpuHours.stranded"] == pytest.approx(0.3)


def test_the_sum_over_changes_is_the_integral() -> None:
    draw, time = random.Random(7), SetClock(0.0)
    found = hours(time)
    allocation = Allocation(hours=found)
    nodes = [f"n{number}" for number in range(5)]
    for name in nodes:
        allocation.put_node(NodeView(name, "a100", "z", NODE))
    allocation.begin()
    held: list[tuple[str, Amounts, int]] = []
    used = 0.0
    for _ in range(500):
        if held and draw.random() < 0.5:
            allocation.release(*held.pop(draw.randrange(len(held))))
        else:
            name = draw.choice(nodes)
            there = sum(each[1].gpus * 1000 + each[2] for each in held if each[0] == name)
            gpus, share = draw.choice([(1, 0), (2, 0), (0, 250)])
            if there + gpus * 1000 + share <= 4000:
                held.append((name, Amounts(cpu=10, gpus=gpus), share))
                allocation.bind(*held[-1])
        seconds = draw.random() * 100
        time.now += seconds
        used += seconds * sum(each[1].gpus + each[2] / 1000 for each in held) / 3600
    allocation.end()
    total = time.now * 20 / 3600
    time.now += 1000
    assert found.measures()["gpuHours.used"] == pytest.approx(used)
    assert found.measures()["gpuHours.idle"] == pytest.approx(total - used)


def test_users_are_in_the_text_the_comparison_and_the_pictures(tmp_path: Path) -> None:
    pods = [pod("a", 2, 0.0, 5.0, 65.0), pod("b", 6, 0.0, 40.0, 80.0)]
    made = report(measures=[{"gpuHours.used": 1.0, "gpuHours.idle": 2.0, "slowdown.p50": 2.0}])
    made.results.tests[0].details.users = _by_user(
        users_of(records(*pods), {"a": "physics", "b": "biology <&>"}, until=100.0)
    )
    text = "\n".join(lines(made))
    assert "physics" in text
    assert "gpuHours.idle       2.00 GPU-h" in text
    rows = {row[0]: row[1] for row in compare.table([made])}
    assert (rows["physics: wait p50"], rows["physics: slowdown p50"]) == ("5.00 s", "1.08")
    assert rows["biology <&>: share"] == "66.7 %"
    assert {path.name for path in plots.write(made, tmp_path)} >= {"users-1.svg", "users-1.png"}
    assert "biology &lt;" in (tmp_path / "users-1.svg").read_text()


def test_each_measure_has_a_picture_with_the_spread_of_all_seeds(tmp_path: Path) -> None:
    one, two = report(measures=[{"slowdown.p50": 2.0}]), report(measures=[{"slowdown.p50": 3.0}, {"slowdown.p50": 9.0}])
    found = spreads.write([one, two], tmp_path / "pictures")
    assert [path.name for path in found] == ["slowdown.p50.svg"]
    # One line for the three of them: they differ by seed alone.
    assert "(n = 3)" in found[0].read_text()


def test_what_came_of_the_demand_is_one_line_for_all_seeds(tmp_path: Path) -> None:
    def placed(*allocated: float) -> Report:
        made = report(measures=[{}] * len(allocated))
        for test, at_most in zip(made.results.tests, allocated, strict=True):
            curve = {str(percent): min(percent, at_most) for percent in range(1, 131)}
            test.details.policy = PolicyUsed(
                allocated_percent=curve,
                fragmented_percent_of_all_gpus=dict.fromkeys(curve, 5.0),
                fragmented_percent_of_idle_gpus={},
            )
        return made

    fgd = placed(95.0)
    used = fgd.results.tests[0].details.policy
    assert used is not None
    used.policy, used.ties = "FGD", "name"
    [found] = spreads.write_by_demand([placed(90.0, 92.0), placed(91.0), fgd], tmp_path)
    drawn = found.read_text()
    assert "default (n = 3)" in drawn
    assert "FGD, ties by name (n = 1)" in drawn
    assert spreads.write_by_demand([report()], tmp_path) == []
    # Both axes begin at 60, unless a run would then be out of the picture.
    ticks = drawn.count(">20</text>")
    [found] = spreads.write_by_demand([placed(90.0), placed(40.0)], tmp_path)
    assert found.read_text().count(">20</text>") == ticks + 2
