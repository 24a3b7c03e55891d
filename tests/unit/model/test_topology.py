"""Where nodes stand: pure functions of their ordinals, nested, stable in every resize; and how mistakes are told."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kumulus.model.consequences import consequences
from kumulus.model.nodes import owned_fields
from kumulus.model.pool_form import pool_from_properties, pool_problems, pool_to_properties
from kumulus.model.pools import Pool
from kumulus.model.topology import LEVELS, Topology, topology_from, topology_problems
from kumulus.stackfile.expand import pools
from kumulus.stackfile.group_topology import PRESETS
from kumulus.stackfile.model import ClusterSpec
from tests.support.said import problems_of

FULL = {
    "nodesPerRack": 4,
    "racksPerBlock": 4,
    "nodesPerNvlinkDomain": 2,
    "racksPerLeaf": 2,
    "leavesPerSpine": 4,
}


def pool(topology: dict[str, Any] | None, replicas: int = 100, **group: Any) -> Pool:
    made = {
        "name": "a",
        "placement": [{"availabilityZone": "z", "replicas": replicas}],
        "nodeTemplate": {"capacity": {"pods": 1}},
        "topology": topology,
        **group,
    }
    return pools(ClusterSpec.checked({"nodeGroups": [made]}), "dev")[0]


def told(topology: object, replicas: int = 100, **group: Any) -> dict[str, str]:
    found = problems_of(pool, topology, replicas, under="nodeGroups[0].", **group)
    return {path.removeprefix("topology."): words for path, words in found.items()}


def places(made: Pool, ordinal: int) -> dict[str, str]:
    """A node's place by the last part of the label's key."""
    assert made.topology
    keys = {level.label for level in made.topology.levels}
    labels = owned_fields(made, ordinal).labels
    return {key.rpartition("/")[2]: labels[key] for key in keys}


def test_a_node_carries_its_place_on_every_level() -> None:
    made = pool(FULL)
    assert places(made, 0) == {
        "nvlink-domain": "a-z-nvl0",
        "rack": "a-z-r0",
        "leaf": "a-z-leaf0",
        "block": "a-z-b0",
        "spine": "a-z-spine0",
    }
    assert places(made, 35) == {
        "nvlink-domain": "a-z-nvl17",
        "rack": "a-z-r8",
        "leaf": "a-z-leaf4",
        "block": "a-z-b2",
        "spine": "a-z-spine1",
    }


def test_racks_alone_are_enough() -> None:
    assert places(pool({"nodesPerRack": 16}), 16) == {"rack": "a-z-r1"}


def test_a_group_without_a_topology_has_no_such_labels() -> None:
    made = pool(None)
    assert made.topology is None
    assert not [key for key in owned_fields(made, 0).labels if "topology.kumulus.io" in key]


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_have_a_key_of_its_own_for_every_level(preset: str) -> None:
    made = pool({**FULL, "preset": preset}).topology
    assert made
    assert {level.name: level.label for level in made.levels} == dict(PRESETS[preset])
    assert set(PRESETS[preset]) == set(LEVELS)
    assert len(set(PRESETS[preset].values())) == len(LEVELS)


def test_nodes_of_kais_preset_say_their_zone_by_its_key_too_and_others_do_not() -> None:
    zones = {
        preset: pool({**FULL, "preset": preset}).labels.get("cloud.provider.com/topology-zone") for preset in PRESETS
    }
    assert zones == {**dict.fromkeys(PRESETS), "kai": "z"}
    bare = {"capacity": {"pods": 1}, "metadata": {"defaults": False}}
    assert pool({**FULL, "preset": "kai"}, nodeTemplate=bare).labels["cloud.provider.com/topology-zone"] == "z"


def test_the_stacks_own_keys_win_over_a_presets() -> None:
    made = pool({**FULL, "preset": "kueue", "labels": {"rack": "example.com/rack"}}).topology
    assert made
    keys = {level.name: level.label for level in made.levels}
    assert (keys["rack"], keys["block"]) == ("example.com/rack", "cloud.provider.com/topology-block")


@st.composite
def topologies(draw: st.DrawFn) -> dict[str, Any]:
    """Topologies whose sizes nest, with any of the levels left out."""
    rack = draw(st.integers(1, 20))
    made: dict[str, Any] = {"nodesPerRack": rack}
    if draw(st.booleans()):
        made["nodesPerNvlinkDomain"] = draw(st.sampled_from([size for size in range(1, rack + 1) if rack % size == 0]))
    leaf = draw(st.integers(1, 4))
    if draw(st.booleans()):
        made["racksPerLeaf"] = leaf
        if draw(st.booleans()):
            made["leavesPerSpine"] = draw(st.sampled_from([2, 4]))
        if draw(st.booleans()):
            made["racksPerBlock"] = leaf * made.get("leavesPerSpine", 1) * draw(st.integers(1, 3))
    return made


@given(topologies(), st.integers(1, 300), st.integers(1, 300))
def test_a_resize_never_moves_a_node(topology: dict[str, Any], before: int, after: int) -> None:
    one, other = pool(topology, before), pool(topology, after)
    for ordinal in range(min(before, after)):
        assert owned_fields(one, ordinal) == owned_fields(other, ordinal)


@given(topologies(), st.integers(1, 300))
def test_domains_are_filled_in_order_and_stand_in_one_larger_domain_each(topology: dict[str, Any], nodes: int) -> None:
    made = pool(topology, nodes).topology
    assert made
    for inner, outer in zip(made.levels, made.levels[1:], strict=False):
        above = {inner.place(ordinal): set() for ordinal in range(nodes)}  # type: dict[str, set[str]]
        for ordinal in range(nodes):
            above[inner.place(ordinal)].add(outer.place(ordinal))
        assert all(len(places) == 1 for places in above.values())
    for level in made.levels:
        members = [list(level.ordinals(index, nodes)) for index in range(level.count(nodes))]
        assert [ordinal for each in members for ordinal in each] == list(range(nodes))
        assert all(len(each) == level.nodes for each in members[:-1])
        assert all(level.place(ordinal) == level.place(each[0]) for each in members for ordinal in each)


def test_the_plain_form_goes_there_and_back_and_does_not_grow_with_the_pool() -> None:
    made = pool(FULL, 100_000)
    plain = json.dumps(pool_to_properties(made))
    assert pool_from_properties(json.loads(plain)) == made
    assert len(json.dumps(pool_to_properties(made)["topology"])) < 400
    assert "topology" not in pool_to_properties(pool(None))


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (3, "topology"),
        ({"rak": {"label": "a", "nodes": 1}}, "topology.rak"),
        ({"rack": []}, "topology.rack"),
        ({"rack": {"label": "a", "nodes": 0}}, "topology.rack.nodes"),
        ({"rack": {"label": "a b", "nodes": 1}}, "topology.rack.label"),
        ({"rack": {"label": 1, "nodes": 1}}, "topology.rack.label"),
        ({"rack": {"label": "a", "nodes": 1, "x": 1}}, "topology.rack.x"),
    ],
)
def test_a_malformed_plain_form_is_told(raw: object, path: str) -> None:
    problems = pool_problems({"name": "p", "replicas": 1, "topology": raw})
    assert [problem.path for problem in problems] == [path]
    assert problems[0].remedy


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=4),
        lambda inner: st.dictionaries(st.sampled_from([*LEVELS, "label", "nodes", "x"]), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_plain_form_is_a_topology_or_told(raw: object) -> None:
    if not topology_problems((), raw):
        made = topology_from(raw)
        assert made is None or isinstance(made, Topology)


@pytest.mark.parametrize(
    ("topology", "path", "message"),
    [
        ({}, "nodesPerRack", "is missing; write nodesPerRack: 16"),
        ({"nodesPerRack": 0}, "nodesPerRack", "is 0, less than 1; write a whole number from 1 to 100,000"),
        ({"nodesPerRack": -4}, "nodesPerRack", "is -4, less than 1"),
        ({"nodesPerRack": 2.5}, "nodesPerRack", "not whole"),
        ({"nodesPerRack": "16"}, "nodesPerRack", 'is "16"'),
        ({"nodesPerRack": 4, "racksPerBlok": 2}, "racksPerBlok", "is not a known key; write racksPerBlock"),
        ({"nodesPerRack": 4, "preset": "kuue"}, "preset", 'is "kuue"; write kueue'),
        ({"nodesPerRack": 4, "blocks": 2}, "racksPerBlock", "is missing, so the size of a block is not known"),
        ({"nodesPerRack": 4, "leavesPerSpine": 2}, "racksPerLeaf", "is missing, so the size of a leaf switch"),
        ({"nodesPerRack": 4, "nodesPerNvlinkDomain": 3}, "nodesPerNvlinkDomain", "NVLink domains of 3 nodes and racks"),
        (
            {"nodesPerRack": 4, "racksPerBlock": 3, "racksPerLeaf": 2},
            "racksPerBlock",
            "leaf switches of 8 nodes and bl",
        ),
        ({"nodesPerRack": 4, "labels": {"rak": "a"}}, "labels.rak", "is not a known key; write rack"),
        ({"nodesPerRack": 4, "labels": {"rack": "a b/c"}}, "labels.rack", "has a prefix that is not a DNS-1123 name"),
        ({"nodesPerRack": 4, "labels": {"rack": 7}}, "labels.rack", "is 7, not a text"),
        ({"nodesPerRack": 4, "labels": []}, "labels", "is a list"),
        ({"nodesPerRack": 4, "labels": {"rack": "kubernetes.io/hostname"}}, "labels.rack", "that Kumulus sets itself"),
        ({"nodesPerRack": 4, "labels": {"rack": "kumulus.io/pool"}}, "labels.rack", "that Kumulus sets itself"),
        ({"nodesPerRack": 4, "labels": {"leaf": "a"}}, "labels.leaf", "has no effect, as the topology has no leaf"),
        (
            {"nodesPerRack": 4, "racksPerBlock": 2, "labels": {"rack": "a.io/x", "block": "a.io/x"}},
            "labels.block",
            '"a.io/x" is the label of racks too; write another key',
        ),
        (
            {"nodesPerRack": 4, "racksPerBlock": 2, "preset": "kueue", "labels": {"rack": PRESETS["kueue"]["block"]}},
            "labels.rack",
            "is the label of blocks too",
        ),
        ([], "topology", "is a list, not a mapping"),
    ],
)
def test_mistakes_are_told_with_path_and_remedy(topology: object, path: str, message: str) -> None:
    problems = told(topology)
    assert list(problems) == [path]
    assert message in problems[path]
    assert not problems[path].endswith("; ")


def test_more_nodes_than_places_are_told_at_the_zone_that_has_them() -> None:
    problems = told({"nodesPerRack": 4, "racksPerBlock": 4, "blocks": 2}, 33)
    assert problems == {
        "placement[0].replicas": "is 33, but blocks × racksPerBlock × nodesPerRack = 2 × 4 × 4 are 32 places; "
        "write 32 or fewer, or topology.blocks: 3"
    }
    assert pool({"nodesPerRack": 4, "racksPerBlock": 4, "blocks": 2}, 32).replicas == 32


def test_without_a_number_of_blocks_there_is_always_another_one() -> None:
    assert places(pool({"nodesPerRack": 4, "racksPerBlock": 4}, 100_000), 99_999)["block"] == "a-z-b6249"


def test_a_label_that_the_template_sets_too_is_told() -> None:
    template = {"capacity": {"pods": 1}, "metadata": {"labels": {"example.com/rack": "x"}}}
    problems = told({"nodesPerRack": 4, "labels": {"rack": "example.com/rack"}}, nodeTemplate=template)
    assert list(problems) == ['nodeTemplate.metadata.labels["example.com/rack"]']
    assert "write another key as topology.labels.rack" in next(iter(problems.values()))


def test_a_place_whose_name_fits_no_label_is_told() -> None:
    problems = told(FULL, 1, name="a" * 50, placement=[{"availabilityZone": "zone-12", "replicas": 1}])
    assert list(problems) == ["placement[0]"]
    assert "of 65 characters, at most 63 are allowed; write a shorter group or zone name" in problems["placement[0]"]


def test_a_preview_counts_the_nodes_that_change_their_place() -> None:
    def described(old: dict[str, Any] | None, new: dict[str, Any] | None) -> str:
        return consequences(pool(old), pool(new)).describe()

    assert described({"nodesPerRack": 16}, {"nodesPerRack": 32}) == "group a, zone z: 84 nodes changed: topology rack"
    assert described(None, {"nodesPerRack": 4}) == "group a, zone z: 100 nodes changed: topology rack"
    assert described({"nodesPerRack": 4}, None) == "group a, zone z: 100 nodes changed: topology rack"
    assert described({"nodesPerRack": 128}, {"nodesPerRack": 256}) == "group a, zone z: no change"
    assert described({**FULL, "preset": "kueue"}, {**FULL, "preset": "kai"}).endswith("topology nvlinkDomain")
