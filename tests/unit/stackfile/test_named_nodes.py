"""Nodes that a stack file names one by one: what they have of their own, and how mistakes are told."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kumulus.model.consequences import consequences
from kumulus.model.errors import SpecError
from kumulus.model.nodes import owned_fields
from kumulus.model.pool_form import pool_from_properties, pool_problems, pool_to_properties
from kumulus.model.pools import Pool, names_of
from kumulus.nodes.pools.single import Bodies
from kumulus.stackfile.clusters import load_stack
from kumulus.stackfile.expand import pools
from kumulus.stackfile.fault_targets import chosen
from kumulus.stackfile.faults import Target
from kumulus.stackfile.load import load
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.nodes_file import is_refused, needs_nodes_file, without_nodes, written

NODES = [{"name": "ip-10-0-3-17", "labels": {"example.com/rack": "r3"}}, {"name": "db.rack-7", "unschedulable": True}]
LISTED = [{"name": "ip-1", "labels": {"example.com/rack": "r1"}}, {"name": "ip-2"}]


def group(
    name: str = "a", zone: str = "z", replicas: int = 2, nodes: object = NODES, **metadata: Any
) -> dict[str, Any]:
    placement = {"availabilityZone": zone, "replicas": replicas, **({"nodes": nodes} if nodes is not None else {})}
    return {"name": name, "placement": [placement], "nodeTemplate": {"capacity": {"pods": 1}, "metadata": metadata}}


def made(*groups: dict[str, Any]) -> list[Pool]:
    return pools(ClusterSpec.checked({"nodeGroups": list(groups)}), "dev")


def told(*groups: dict[str, Any]) -> list[str]:
    with pytest.raises(SpecError) as caught:
        made(*groups)
    return [f"{each.path}: {each.message}; {each.remedy}" for each in caught.value.problems]


def test_nodes_have_the_names_and_labels_that_they_are_given() -> None:
    (pool,) = made(group(labels={"example.com/rack": "none", "team": "search"}))
    assert pool.node_names() == ["ip-10-0-3-17", "db.rack-7"]
    labels = owned_fields(pool, 0).labels
    assert labels["kubernetes.io/hostname"] == "ip-10-0-3-17"
    assert (labels["example.com/rack"], labels["team"]) == ("r3", "search")
    assert owned_fields(pool, 1).labels["example.com/rack"] == "none"


def test_a_posted_node_carries_its_own_record_and_cordon() -> None:
    (pool,) = made(group())
    first, second = (Bodies(pool).manifest(ordinal) for ordinal in (0, 1))
    assert first["metadata"]["name"] == "ip-10-0-3-17"
    assert "example.com/rack" in first["metadata"]["annotations"]["kumulus.io/applied"]
    assert "example.com/rack" not in second["metadata"]["annotations"]["kumulus.io/applied"]
    assert "unschedulable" not in first["spec"]
    assert second["spec"]["unschedulable"] is True


def test_without_defaults_nodes_have_only_the_labels_that_are_given() -> None:
    (pool,) = made(group(labels={"team": "search"}, defaults=False))
    assert pool.zone == ""
    ours = {key for key in owned_fields(pool, 1).labels if not key.startswith("kumulus.io/")}
    assert ours == {"team", "kubernetes.io/hostname"}


def test_the_plain_form_is_read_back_and_knows_the_names_of_nodes_that_are_missing_in_the_cluster() -> None:
    pool, counted = made(group(), group("b", nodes=None))
    assert pool_from_properties(pool_to_properties(pool)) == pool
    assert "nodes" not in pool_to_properties(counted)
    plain = {"name": "a-z", "replicas": 1, "nodes": NODES}
    assert pool_problems(plain) == []
    pool = pool_from_properties(plain)
    assert (pool.node_names(), pool.node_name(1)) == (["ip-10-0-3-17"], "db.rack-7")


def test_as_many_nodes_are_named_as_there_are() -> None:
    assert told(group(replicas=3)) == [
        "nodeGroups[0].placement[0].replicas: is 3, and 2 nodes are named; write 2, or name as many nodes"
    ]


def test_a_name_given_twice_is_told_in_one_list_and_across_groups() -> None:
    assert "is already node 0" in told(group(nodes=[{"name": "x"}, {"name": "x"}]))[0]
    across = told(group(replicas=1, nodes=[{"name": "x"}]), group("b", replicas=1, nodes=[{"name": "x"}]))
    assert across[0].startswith("nodeGroups[1].placement[0].nodes[0].name: ")
    assert "is already a node of nodeGroups[0].placement[0]" in across[0]


def test_a_name_that_another_pool_counts_up_to_is_refused() -> None:
    (said,) = told(group(replicas=1, nodes=[{"name": "b-z-1"}]), group("b", nodes=None))
    assert "the pool b-z calls a node" in said
    made(group(replicas=1, nodes=[{"name": "b-z-2"}]), group("b", nodes=None))
    made(group(replicas=1, nodes=[{"name": "b-z-01"}]), group("b", nodes=None))
    (long,) = told(group(replicas=1, nodes=[{"name": f"b-z-{'1' * 5000}"}]), group("b", nodes=None))
    assert "characters" in long


def test_a_long_pool_name_is_no_matter_where_nodes_have_their_own() -> None:
    long, nodes = "g" * 59, [{"name": f"n{n}"} for n in range(11)]
    made(group(long, replicas=11, nodes=nodes))
    assert "characters" in told(group(long, replicas=11, nodes=None))[0]


def test_a_fault_finds_its_nodes_by_their_names() -> None:
    found = made(group(), group("b", nodes=None))
    nodes, problems = chosen(Target(names=("db.rack-7", "b-z-1")), "f", found, ())
    assert (nodes, problems) == ({"a-z": frozenset({1}), "b-z": frozenset({1})}, [])
    assert names_of(nodes, {pool.name: pool for pool in found}) == {"db.rack-7", "b-z-1"}
    (pool,) = made(group(replicas=1, nodes=[{"name": "alpha"}]))
    assert chosen(Target(names=("alpha",)), "f", [pool], ())[0] == {"a-z": frozenset({0})}
    _, problems = chosen(Target(names=("db.rack-8",)), "f", found, ())
    assert problems[0].remedy == "write db.rack-7"
    assert chosen(Target(labels={"example.com/rack": "r3"}), "f", found, ())[0] == {"a-z": frozenset({0})}


def test_a_preview_tells_of_changed_names() -> None:
    (before,), (after,) = made(group()), made(group(nodes=[NODES[0], {"name": "other"}]))
    assert "named nodes" in consequences(before, after).describe()
    assert not consequences(before, before)
    (fewer,) = made(group(replicas=1, nodes=NODES[:1]))
    assert "named nodes" not in consequences(before, fewer).describe()


def cluster(*zones: str, **placement: Any) -> dict[str, Any]:
    places = [{"availabilityZone": zone, "replicas": 2, **placement} for zone in zones]
    template = {"capacity": {"cpu": "4", "pods": "110"}, "taints": []}
    return {"nodeGroups": [{"name": "web", "placement": places, "nodeTemplate": template}]}


def read(tmp_path: Path, file: object, stack: dict[str, Any], **more: Any) -> Any:
    (tmp_path / "nodes.json").write_text(file if isinstance(file, str) else json.dumps(file), errors="surrogateescape")
    return load({"cluster": stack, "nodes": "nodes.json", **more}, "dev", tmp_path)


def test_nodes_of_a_file_are_those_of_the_stack(tmp_path: Path) -> None:
    beside = read(tmp_path, {"web": {"a": LISTED}}, cluster("a"))
    within = load({"cluster": cluster("a", nodes=LISTED)}, "dev", tmp_path)
    assert beside.pools == within.pools
    assert beside.pools[0].node_names() == ["ip-1", "ip-2"]


def test_a_cluster_is_taken_apart_and_put_together_again(tmp_path: Path) -> None:
    whole = cluster("a", "b")
    for zone, place in zip("ab", whole["nodeGroups"][0]["placement"], strict=True):
        place["nodes"] = [{"name": f"{zone}-{index}"} for index in range(2)]
    given = copy.deepcopy(whole)
    left, lists = without_nodes(whole)
    assert whole == given, "what is given is left as it is"
    assert left == cluster("a", "b")
    assert read(tmp_path, written(lists), left).pools == load({"cluster": whole}, "dev", tmp_path).pools


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("{", "is no JSON"),
        ([], "write a mapping of groups to zones"),
        ({"web": []}, "web: is a list; write a mapping of groups to zones"),
        ("\udcff", 'nodes: "nodes.json" is not a text in UTF-8; write the place of a text file, not of a packed one'),
        ({"web": {"b": LISTED}}, "where the cluster has none"),
        ({"ml": {"a": LISTED}}, "where the cluster has none"),
        ({"web": {"a": [*LISTED, {"name": "ip-3"}]}}, "3 nodes are named"),
        ({"web": {"a": [{"name": "IP 1"}, {"name": "ip-2"}]}}, "nodes[0].name"),
    ],
)
def test_mistakes_of_the_file_are_told(tmp_path: Path, file: object, said: str) -> None:
    with pytest.raises(SpecError) as told:
        read(tmp_path, file, cluster("a"))
    assert said in str(told.value)


def test_the_file_has_to_be_there_and_for_nodes_of_a_stack_of_one_cluster_that_have_no_other(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="leave one of the two out") as caught:
        read(tmp_path, {"web": {"a": LISTED}}, cluster("a", nodes=LISTED))
    assert len(caught.value.problems) == 1
    malformed = {"nodeGroups": [{"name": "web", "placement": [{"availabilityZone": ["a"], "replicas": 0}]}]}
    with pytest.raises(SpecError, match="where the cluster has none"):
        read(tmp_path, {"web": {"a": LISTED}}, malformed)
    with pytest.raises(SpecError, match=r"gone\.json"):
        load({"cluster": cluster("a"), "nodes": "gone.json"}, "dev", tmp_path)
    with pytest.raises(SpecError, match="has no effect with clusters"):
        load_stack({"clusters": [{"name": "a", **cluster("a")}], "nodes": "nodes.json"}, "dev", tmp_path)


def test_what_an_environment_variable_takes_is_known() -> None:
    many = [{"name": f"ip-10-0-0-{index}.ec2.internal", "labels": {"rack": f"r{index}"}} for index in range(3000)]
    assert needs_nodes_file({"kumulus:cluster": cluster("a", nodes=many)})
    assert is_refused({"kumulus:cluster": cluster("a", nodes=many)})
    assert not needs_nodes_file({"kumulus:cluster": without_nodes(cluster("a", nodes=many))[0]})
