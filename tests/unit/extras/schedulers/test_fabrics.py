"""Volcano's HyperNodes: a tree over every pool, with tiers that agree, and little change in a resize."""

import json
from typing import Any

import pytest

from kumulus.extras.schedulers.fabrics import (
    Fabric,
    HyperNode,
    describe,
    fabrics_from,
    fabrics_problems,
    fabrics_to_plain,
    hyper_nodes,
    zone_nodes,
)
from kumulus.model.topology import Level, Topology


def fabric(pool: str = "a-z", replicas: int = 10, zone: str = "z", **sizes: int) -> Fabric:
    levels = tuple(Level(name, f"example.com/{name}", nodes) for name, nodes in sizes.items())
    return Fabric(pool, zone, replicas, Topology.of(levels))


def tree(*fabrics: Fabric) -> dict[str, tuple[int, str, tuple[str, ...]]]:
    return {node.name: (node.tier, node.tier_name, node.children) for node in hyper_nodes(fabrics).values()}


def test_racks_take_their_nodes_by_label_and_blocks_and_zones_name_what_is_below() -> None:
    made = hyper_nodes([fabric(rack=4, block=8)])
    assert [node.name for node in made.values()] == ["a-z-r0", "a-z-r1", "a-z-r2", "a-z-b0", "a-z-b1", "zone-z"]
    assert made["a-z-r1"].spec() == {
        "tier": 1,
        "tierName": "rack",
        "members": [{"type": "Node", "selector": {"labelMatch": {"matchLabels": {"example.com/rack": "a-z-r1"}}}}],
    }
    assert made["a-z-b0"].spec() == {
        "tier": 2,
        "tierName": "block",
        "members": [
            {"type": "HyperNode", "selector": {"exactMatch": {"name": "a-z-r0"}}},
            {"type": "HyperNode", "selector": {"exactMatch": {"name": "a-z-r1"}}},
        ],
    }
    assert made["a-z-b1"].children == ("a-z-r2",)
    assert (made["zone-z"].tier, made["zone-z"].children) == (3, ("a-z-b0", "a-z-b1"))


def test_every_node_below_the_top_has_one_parent_of_a_higher_tier() -> None:
    fabrics = [
        fabric("a-z", 100, nvlinkDomain=2, rack=4, leaf=8, block=16, spine=32),
        fabric("b-z", 50, rack=18, block=36),
        fabric("c-y", 7, "y", rack=4),
    ]
    made = hyper_nodes(fabrics)
    parents: dict[str, list[HyperNode]] = {name: [] for name in made}
    for node in made.values():
        for child in node.children:
            parents[child].append(node)
    for name, above in parents.items():
        assert len(above) == (0 if made[name].tier_name == "zone" else 1), name
        assert all(parent.tier > made[name].tier for parent in above)
    assert {node.tier for node in made.values() if node.tier_name == "rack"} == {2}


def test_pools_that_contradict_each_other_still_have_parents_of_higher_tiers() -> None:
    made = hyper_nodes([fabric("a-z", nvlinkDomain=2, rack=4), fabric("b-z", nvlinkDomain=8, rack=4)])
    for node in made.values():
        assert all(made[child].tier < node.tier for child in node.children)


def test_two_levels_of_one_size_are_one() -> None:
    assert [node.tier_name for node in hyper_nodes([fabric(replicas=4, rack=4, leaf=4)]).values()] == ["rack", "zone"]


def test_the_order_of_the_pools_does_not_matter() -> None:
    one, other = fabric("a-z", rack=4), fabric("b-z", rack=4)
    assert hyper_nodes([one, other]) == hyper_nodes([other, one])
    assert hyper_nodes([other, one])["zone-z"].children[0] == "a-z-r0"


def test_an_empty_pool_has_none() -> None:
    assert hyper_nodes([fabric(replicas=0, rack=4), fabric("b-z", 5)]) == {}


def test_a_resize_within_a_rack_changes_no_hypernode() -> None:
    before, after = hyper_nodes([fabric(replicas=9, rack=4)]), hyper_nodes([fabric(replicas=12, rack=4)])
    assert before == after
    assert describe(before, after) == ""


def test_a_preview_says_what_comes_and_goes() -> None:
    small, large = (
        hyper_nodes([fabric(replicas=8, rack=4, block=8)]),
        hyper_nodes([fabric(replicas=16, rack=4, block=8)]),
    )
    assert describe({}, small) == "+4 HyperNodes: +2 rack, +1 block, +1 zone"
    assert describe(small, large) == "7 HyperNodes (were 4), 1 changed: +2 rack, +1 block"
    assert describe(large, small) == "4 HyperNodes (were 7), 1 changed: −2 rack, −1 block"


def test_zones_of_pools_without_a_topology_select_their_nodes_by_label() -> None:
    made = zone_nodes(["z", "z", "Y", ""])
    assert {name: (node.tier, node.tier_name) for name, node in made.items()} == {
        "zone-y": (1, "zone"),
        "zone-z": (1, "zone"),
    }
    assert made["zone-y"].label == ("topology.kubernetes.io/zone", "Y")


def test_the_plain_form_goes_there_and_back() -> None:
    fabrics = [fabric(rack=4, block=8), fabric("b-y", 3, "y", rack=2)]
    assert fabrics_from(json.loads(json.dumps(fabrics_to_plain(fabrics)))) == fabrics


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        ([], [""]),
        ({"a": 3}, ["a"]),
        ({"a": {"replicas": -1, "topology": {}}}, ["a.replicas"]),
        ({"a": {"replicas": 1, "topology": {"rack": 3}, "zone": 1}}, ["a.topology.rack", "a.zone"]),
        ({"a": {"replicas": 1, "topology": {}, "x": 1}}, ["a.x"]),
    ],
)
def test_a_malformed_plain_form_is_told(raw: Any, paths: list[str]) -> None:
    assert [problem.path for problem in fabrics_problems((), raw)] == paths
