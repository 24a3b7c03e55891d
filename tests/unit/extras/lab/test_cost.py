"""What a run's nodes cost: the sum over the meter's events is the integral, whatever happens in between."""

import random

import pytest

from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.listening import PricedNodes
from kumulus.extras.lab.measure.over_time import CostMeter, idle_share
from kumulus.extras.lab.measure.views import NodeView, in_cluster
from kumulus.extras.watch.live.amounts import NOTHING, Amounts
from kumulus.extras.watch.live.devices import DevicePool, PublishedSlice
from kumulus.model.fault_effects import OfferEffects
from kumulus.nodes.catalog.prices import catalog
from tests.support.clocks import SetClock
from tests.support.messages import node_message

HAS = Amounts(cpu=4000, memory=16 << 30)
GPU_NODE = Amounts(cpu=96_000, memory=1 << 40, gpus=8)


@pytest.fixture
def time() -> SetClock:
    return SetClock(100.0)


def test_a_node_costs_its_price_for_as_long_as_it_is_there(time: SetClock) -> None:
    meter = CostMeter(time)
    meter.put("a", 2.0, HAS, NOTHING)
    time.now += 1800
    meter.put("b", 1.0, HAS, NOTHING)
    time.now += 3600
    meter.take("a")
    time.now += 3600
    found = meter.measures()
    assert found["cost.total"] == pytest.approx(2.0 * 1.5 + 1.0 * 2)
    assert (found["cost.perHourPeak"], found["cost.perHourEnd"]) == (3.0, 1.0)
    # Nothing ran at all.
    assert found["cost.wastedShare"] == 1.0
    assert "cost.perGpuHour" not in found


def test_only_what_is_between_begin_and_end_counts(time: SetClock) -> None:
    meter = CostMeter(time)
    meter.put("a", 1.0, HAS, NOTHING)
    time.now += 3600
    meter.begin()
    time.now += 3600
    meter.end()
    time.now += 3600
    meter.put("b", 5.0, HAS, NOTHING)
    meter.take("a")
    found = meter.measures()
    assert found["cost.total"] == pytest.approx(1.0)
    assert found["cost.perHourPeak"] == 1.0


def test_the_idle_share_is_of_gpus_and_without_them_of_what_is_used_most() -> None:
    assert idle_share(GPU_NODE, Amounts(cpu=96_000, gpus=2)) == 0.75
    assert idle_share(HAS, Amounts(cpu=1000, memory=12 << 30)) == 0.25
    assert idle_share(HAS, Amounts(cpu=9000)) == 0.0
    assert idle_share(NOTHING, NOTHING) == 0.0


def test_a_gpu_hour_costs_what_the_fleet_costs_over_the_hours_that_pods_had(time: SetClock) -> None:
    allocation = Allocation(CostMeter(time))
    allocation.put_node(NodeView("a", "p", "z", GPU_NODE, 40.0))
    allocation.bind("a", Amounts(gpus=4))
    time.now += 3600
    allocation.release("a", Amounts(gpus=4))
    time.now += 3600
    found = allocation.meter.measures()
    assert found["cost.total"] == pytest.approx(80)
    assert found["cost.perGpuHour"] == pytest.approx(80 / 4)
    assert found["cost.wasted"] == pytest.approx(20 + 40)


def test_nodes_without_a_price_are_counted_and_cost_nothing(time: SetClock) -> None:
    meter = CostMeter(time)
    meter.put("a", 1.0, HAS, NOTHING)
    meter.put("b", None, HAS, NOTHING)
    meter.put("c", None, HAS, NOTHING)
    meter.take("c")
    time.now += 3600
    found = meter.measures()
    assert found["cost.total"] == pytest.approx(1.0)
    assert found["cost.unpricedNodes"] == 2


def test_of_nodes_that_all_lack_a_price_nothing_is_measured(time: SetClock) -> None:
    meter = CostMeter(time)
    meter.put("a", None, HAS, NOTHING)
    time.now += 10
    assert meter.measures() == {}


def test_the_cost_is_that_of_an_independent_sum_over_node_events(time: SetClock) -> None:
    """10,000 events of nodes and pods, and the same lifetimes added up one by one: within 0.1 %, in fact exactly."""
    source = random.Random(7)
    allocation = Allocation(CostMeter(time))
    born: dict[str, tuple[float, float]] = {}
    lives: list[tuple[float, float]] = []
    for number in range(10_000):
        time.now += source.expovariate(0.5)
        if born and source.random() < 0.45:
            name = source.choice(sorted(born))
            began, price = born.pop(name)
            lives.append((time.now - began, price))
            allocation.remove_node(name)
        else:
            price = round(source.uniform(0.05, 99.0), 6)
            born[f"n{number}"] = (time.now, price)
            allocation.put_node(NodeView(f"n{number}", "p", "z", HAS, price))
        # What pods do on the nodes makes no difference to what the nodes cost.
        if born:
            name = source.choice(sorted(born))
            allocation.bind(name, Amounts(cpu=100))
            if source.random() < 0.5:
                allocation.put_node(NodeView(name, "p", "z", HAS, born[name][1]))
    lives += [(time.now - began, price) for began, price in born.values()]
    independent = sum(seconds * price for seconds, price in lives) / 3600
    assert allocation.meter.measures()["cost.total"] == pytest.approx(independent, rel=1e-9)
    assert allocation.meter.hourly == pytest.approx(sum(price for _, price in born.values()), rel=1e-12)


def test_a_nodes_price_is_read_from_its_labels() -> None:
    from kumulus.extras.lab.measure.views import node_view

    labels = {"node.kubernetes.io/instance-type": "m5.xlarge", "topology.kubernetes.io/region": "us-east-1"}
    assert node_view(node_message(labels=labels), "l", catalog()).hourly == 0.192
    assert node_view(node_message(labels=labels), "l").hourly is None


def test_gpus_that_a_node_publishes_for_claims_are_its_own_among_clusters_that_have_nodes_of_its_name() -> None:
    allocation = Allocation()
    east, west = PricedNodes(allocation, "east"), PricedNodes(allocation, "west")
    for cluster, nodes, gpus in (("east", east, 16), ("west", west, 12)):
        nodes.put(in_cluster(cluster, "n0"), node_message(name="n0"), "l", catalog())
        nodes.publish("slice", PublishedSlice("n0", DevicePool("gpu.nvidia.com", "n0"), gpus))
    assert sum(share.capacity for share in allocation.by_cell().values()) == 28
    west.publish("slice", None)
    assert sum(share.capacity for share in allocation.by_cell().values()) == 24, "8 are its own resource"


def test_a_price_that_changes_under_way_counts_from_then_on_for_the_machines_that_it_is_of(time: SetClock) -> None:
    nodes = PricedNodes(Allocation(meter := CostMeter(time)))
    where = {"topology.kubernetes.io/region": "us-central1", "topology.kubernetes.io/zone": "us-central1-a"}
    four, eight = (catalog().of(kind, "us-central1") for kind in ("e2-standard-4", "e2-standard-8"))
    assert four is not None
    assert eight is not None
    for name, kind in (("a", "e2-standard-4"), ("b", "e2-standard-8")):
        labels = {**where, "node.kubernetes.io/instance-type": kind}
        nodes.put(name, node_message(name=name, labels=labels), "l", catalog())
    meter.begin()
    time.now += 3600
    nodes.reprice([OfferEffects(price_factor=3.0, instance_types=("e2-standard-4",), zones=("us-central1-a",))])
    time.now += 3600
    nodes.reprice([OfferEffects(price_factor=3.0, zones=("us-central1-b",)), OfferEffects(sold_out=True)])
    time.now += 3600
    found = meter.measures()
    assert found["cost.total"] == pytest.approx(5 * four.hourly + 3 * eight.hourly)
    assert found["cost.perHourPeak"] == pytest.approx(3 * four.hourly + eight.hourly)
    assert found["cost.perHourEnd"] == pytest.approx(four.hourly + eight.hourly)
    nodes.remove("a")
    nodes.reprice([])
    assert meter.hourly == pytest.approx(eight.hourly)
