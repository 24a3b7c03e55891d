"""Nodes by name in a file beside the stack's: read as if they stood in it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kumulus.model.errors import SpecError
from kumulus.stackfile.load import load
from kumulus.stackfile.nodes_file import is_refused, is_too_long, without_nodes, written

NODES = [{"name": "ip-1", "labels": {"example.com/rack": "r1"}}, {"name": "ip-2"}]


def cluster(*zones: str, **placement: Any) -> dict[str, Any]:
    places = [{"availabilityZone": zone, "replicas": 2, **placement} for zone in zones]
    template = {"capacity": {"cpu": "4", "pods": "110"}, "taints": []}
    return {"nodeGroups": [{"name": "web", "placement": places, "nodeTemplate": template}]}


def read(tmp_path: Path, file: object, stack: dict[str, Any], **more: Any) -> Any:
    (tmp_path / "nodes.json").write_text(file if isinstance(file, str) else json.dumps(file), errors="surrogateescape")
    return load({"cluster": stack, "nodes": "nodes.json", **more}, "dev", tmp_path)


def test_nodes_of_a_file_are_those_of_the_stack(tmp_path: Path) -> None:
    beside = read(tmp_path, {"web": {"a": NODES}}, cluster("a"))
    within = load({"cluster": cluster("a", nodes=NODES)}, "dev", tmp_path)
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
        ("\udcff", "nodes: is not a text in UTF-8; write the place of a text file, not of a packed one"),
        ({"web": {"b": NODES}}, "where the cluster has none"),
        ({"ml": {"a": NODES}}, "where the cluster has none"),
        ({"web": {"a": [*NODES, {"name": "ip-3"}]}}, "3 nodes are named"),
        ({"web": {"a": [{"name": "IP 1"}, {"name": "ip-2"}]}}, "nodes[0].name"),
    ],
)
def test_mistakes_of_the_file_are_told(tmp_path: Path, file: object, said: str) -> None:
    with pytest.raises(SpecError) as told:
        read(tmp_path, file, cluster("a"))
    assert said in str(told.value)


def test_nodes_in_both_places_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="leave one of the two out"):
        read(tmp_path, {"web": {"a": NODES}}, cluster("a", nodes=NODES))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"gone\.json"):
        load({"cluster": cluster("a"), "nodes": "gone.json"}, "dev", tmp_path)


def test_it_is_for_a_stack_of_one_cluster(tmp_path: Path) -> None:
    from kumulus.stackfile.clusters import load_stack

    with pytest.raises(SpecError, match="has no effect with clusters"):
        load_stack({"clusters": [{"name": "a", **cluster("a")}], "nodes": "nodes.json"}, "dev", tmp_path)


def test_what_an_environment_variable_takes_is_known() -> None:
    many = [{"name": f"ip-10-0-0-{index}.ec2.internal", "labels": {"rack": f"r{index}"}} for index in range(3000)]
    assert is_too_long({"kumulus:cluster": cluster("a", nodes=many)})
    assert is_refused({"kumulus:cluster": cluster("a", nodes=many)})
    assert not is_too_long({"kumulus:cluster": without_nodes(cluster("a", nodes=many))[0]})
