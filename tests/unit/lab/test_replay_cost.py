"""What pods cost, then and now: whose share of which node, and what is said where that is not known."""

from __future__ import annotations

import pytest

from kumulus.cluster.live.amounts import Amounts
from kumulus.lab.measure.views import NodeView
from kumulus.lab.report.model import Of, QueueBeside, ReplayBeside
from kumulus.lab.report.replay_cost import Costs, priced
from kumulus.lab.report.replayed import _cannot_cost, lines

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
