"""What a change of a pool means, in one line."""

import math
from dataclasses import replace

import pytest

from kumulus.model.consequences import consequences
from kumulus.model.pools import INSTANCE_TYPE_LABEL, NodeInfo, Pool, Taint

CAPACITY = {"cpu": "96", "memory": "1360Gi", "ephemeral-storage": "3Ti", "pods": "110", "nvidia.com/gpu": "8"}
OLD = Pool("a100-use1", "a100", "use1", "", 5, {"team": "a"}, {}, (), CAPACITY, CAPACITY)


def told(old: Pool | None, new: Pool | None, pods: int = 0) -> str:
    return consequences(old, new, pods).describe().replace("\N{MINUS SIGN}", "-").replace("\N{RIGHTWARDS ARROW}", "->")


def with_capacity(**changes: str) -> Pool:
    resources = {**CAPACITY, **{name.replace("__", "/").replace("_", "."): amount for name, amount in changes.items()}}
    return replace(OLD, capacity=resources, allocatable=resources)


CHANGED = replace(
    OLD,
    labels={"team": "b", "tier": "x"},
    annotations={"note": "n"},
    taints=(Taint("x", "", "NoSchedule"),),
    node_info=NodeInfo("arm64"),
    declared_features=(),
)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (replace(OLD, replicas=8), "+3 nodes (5 -> 8): +24 nvidia.com/gpu, +288 cpu, +3.98 TiB memory"),
        (replace(OLD, replicas=2), "-3 nodes (5 -> 2): -24 nvidia.com/gpu, -288 cpu, -3.98 TiB memory"),
        (with_capacity(nvidia_com__gpu="7"), "5 nodes changed: -5 nvidia.com/gpu"),
        (with_capacity(pods="220"), "5 nodes changed: +550 pods"),
        (with_capacity(example_com__nic="2"), "5 nodes changed: +10 example.com/nic"),
        (replace(OLD, allocatable={**CAPACITY, "cpu": "95"}), "5 nodes changed: allocatable cpu"),
        (with_capacity(memory="1392640Mi"), "no change"),
        (
            CHANGED,
            "5 nodes changed: labels team, tier, annotations note, taints, nodeInfo architecture, declared features",
        ),
        (
            replace(with_capacity(cpu="100"), replicas=3, labels={"team": "b"}),
            "-2 nodes (5 -> 3), 3 nodes changed: -16 nvidia.com/gpu, -180 cpu, -2.66 TiB memory, labels team",
        ),
    ],
)
def test_a_change_is_told_in_a_line(new: Pool, said: str) -> None:
    assert told(OLD, new) == f"group a100, zone use1: {said}"
    assert bool(consequences(OLD, new)) is (said != "no change")


def test_shrinking_says_how_many_pods_would_go() -> None:
    assert told(OLD, replace(OLD, replicas=2), 12).endswith("-3.98 TiB memory; 12 running pods would go")
    assert told(OLD, replace(OLD, replicas=4), 1).endswith("-1.33 TiB memory; 1 running pod would go")


def test_signs_are_real_minus_signs() -> None:
    assert "\N{MINUS SIGN}3 nodes (5 \N{RIGHTWARDS ARROW} 2)" in consequences(OLD, replace(OLD, replicas=2)).describe()


def test_creating_and_deleting() -> None:
    assert told(None, replace(OLD, replicas=1)) == (
        "group a100, zone use1: +1 node (0 -> 1): +8 nvidia.com/gpu, +96 cpu, +1.33 TiB memory"
    )
    assert told(OLD, None).startswith("group a100, zone use1: -5 nodes (5 -> 0): -40 nvidia.com/gpu, -480 cpu")
    assert "+1,500 nodes (0 -> 1,500): +12,000 nvidia.com/gpu" in told(None, replace(OLD, replicas=1500))
    assert told(None, replace(OLD, zone="", group="system")).startswith("group system: +5 nodes")


def test_the_order_of_taints_means_nothing() -> None:
    one, other = Taint("x", "", "NoSchedule"), Taint("y", "", "NoSchedule")
    assert not consequences(replace(OLD, taints=(one, other)), replace(OLD, taints=(other, one)))


def test_nodes_that_are_new_are_not_counted_as_changed() -> None:
    new = replace(OLD, replicas=8, labels={"team": "b"})
    assert "+3 nodes (5 -> 8), 5 nodes changed: " in told(OLD, new)


def test_a_change_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="before"):
        consequences(None, None)


def test_what_a_resize_costs_is_told_where_the_price_is_known() -> None:
    def told_at(old: Pool | None, new: Pool | None, hourly: float | None) -> str:
        return consequences(old, new, hourly=lambda _: hourly).describe()

    assert told_at(OLD, replace(OLD, replicas=8), 40.55).endswith("+3.98 TiB memory, +$121.65/h")
    assert told_at(OLD, replace(OLD, replicas=2), 1000.0).endswith("TiB memory, \N{MINUS SIGN}$3,000.00/h")
    assert told_at(None, OLD, 2.5).endswith(", +$12.50/h")
    assert told_at(OLD, None, 2.5).endswith(", \N{MINUS SIGN}$12.50/h")
    for silent in (told_at(OLD, replace(OLD, replicas=8), None), told_at(OLD, replace(OLD, labels={}), 2.5)):
        assert "$" not in silent


def test_a_machine_whose_price_nobody_knows_says_so_where_it_comes_goes_or_changes() -> None:
    def told_at(old: Pool | None, new: Pool | None) -> str:
        return consequences(old, new, hourly=lambda _: math.nan).describe()

    other = replace(OLD, labels={INSTANCE_TYPE_LABEL: "other"})
    for old, new in ((None, OLD), (OLD, None), (OLD, replace(OLD, replicas=8)), (OLD, other)):
        assert "price not known" in told_at(old, new), (old, new)
    assert "price" not in told_at(OLD, replace(OLD, labels={"team": "a"}))
    assert "price" not in told_at(None, replace(OLD, replicas=0))


def test_another_machine_costs_the_difference() -> None:
    other = replace(OLD, labels={"kind": "cheap"})
    change = consequences(OLD, other, hourly=lambda pool: 1.0 if pool.labels.get("kind") else 3.0)
    assert "changed: \N{MINUS SIGN}$10.00/h, labels " in change.describe()
    # A pool that has no nodes yet costs nothing, whether its price is known or not.
    empty = replace(OLD, replicas=0)
    change = consequences(empty, other, hourly=lambda pool: 1.0 if pool.labels.get("kind") else None)
    assert ", +$5.00/h, labels " in change.describe()
