"""What pods cost, then and now: whose share of which node, and what is said where that is not known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kumulus.extras.lab.file.recording import PodThen, RecordedStep, Recording
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.records import Records
from kumulus.extras.lab.measure.states import PREEMPTED, PodRecord
from kumulus.extras.lab.measure.views import NodeView
from kumulus.extras.lab.plan.replayed import Replayed
from kumulus.extras.lab.report.model import Of, QueueBeside, ReplayBeside
from kumulus.extras.lab.report.replayed import Costs, _cannot_cost, compared, lines, priced
from kumulus.extras.lab.run.replaying import ReplayResult
from kumulus.extras.watch.live.amounts import Amounts

GIB = 1 << 30
NODES = {
    "cpu": NodeView("cpu", "", "z", Amounts(cpu=8000, memory=32 * GIB), 2.0),
    "gpu": NodeView("gpu", "h100", "z", Amounts(cpu=96_000, memory=1000 * GIB, gpus=8), 80.0),
    "free": NodeView("free", "", "z", Amounts(cpu=8000, memory=32 * GIB)),
}


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


def test_without_prices_it_is_said() -> None:
    assert priced(NODES)
    assert not priced({"free": NODES["free"]})
    assert list(_cannot_cost(False, Costs({}), Costs({}))) == ["cost: no node has a price"]


def of(cost: float | None) -> Of:
    return Of(
        pods=1, scheduled=1, preempted=0, waited={"p50": 1.0}, cpu_peak=1, memory_peak_gib=0, gpus_peak=0, cost=cost
    )


def shown(then: float | None, now: float | None) -> list[str]:
    both = QueueBeside(then=of(then), now=of(now))
    found = ReplayBeside(
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
    return list(lines(found))


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
    records = Records(allocation)
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
    records = Records(Allocation())
    for number, (at, bound, ended) in enumerate([(10, 11, 120), (40, 101, None)]):
        record = PodRecord("day", "day-1", Amounts(cpu=1000), at, bound, bound, ended, "n0")
        record.disrupted = "" if number else PREEMPTED
        records.pods[str(number)] = record
    outcome: Any = SimpleNamespace(records=records, replay_results={"day": ReplayResult()}, lasted=200.0)
    found = compared(replay, "day", outcome).all
    for side in (found.then, found.now):
        assert (side.pods, side.scheduled, side.waited["min"], side.preempted) == (2, scheduled, 1, scheduled - 1)
    assert found.then.waited == found.now.waited
