"""Groups of two captures: which are the same, and which nodes have changed theirs."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any

import yaml

from kumulus.extras.capture import writing
from kumulus.extras.capture.regrouping import moved, named_as_before, nodes, without


def captured(groups: Mapping[str, list[str]], **more: Any) -> str:
    """A stack file as a capture writes it."""
    file = StringIO()
    made = [
        {
            "name": name,
            "placement": [
                {"availabilityZone": "z", "replicas": len(listed), "nodes": [{"name": each} for each in listed]}
            ],
            "nodeTemplate": {"taints": [], "capacity": {"cpu": "4"}},
        }
        for name, listed in groups.items()
    ]
    writing._stack(file, {"nodeGroups": made, **more})
    return file.getvalue()


def test_what_is_read_of_a_file_is_what_a_capture_writes() -> None:
    assert nodes(captured({"a": ["n1", "n2"], "b": ["n3"]})) == {"n1": "a", "n2": "a", "n3": "b"}


def test_groups_keep_their_names_when_a_new_one_comes_between() -> None:
    before = captured({"web-1": ["n1", "n2", "n3"], "web-2": ["n4", "n5"]})
    now = captured({"web-1": ["n0"], "web-2": ["n1", "n2", "n3"], "web-3": ["n4", "n5"]})
    found = named_as_before(now, before)
    assert nodes(found) == {"n0": "web-1-2", **nodes(before)}
    assert moved(found, before) == set()
    assert named_as_before(found, found) == found


def test_a_group_that_is_split_keeps_its_name_where_most_nodes_are() -> None:
    before = captured({"web": ["n1", "n2", "n3"]})
    found = named_as_before(captured({"web-1": ["n1"], "web-2": ["n2", "n3", "n4"]}), before)
    assert nodes(found) == {"n1": "web-1", "n2": "web", "n3": "web", "n4": "web"}
    assert moved(found, before) == {"n1"}


def test_nodes_that_change_their_group_are_away_in_between() -> None:
    faults = [
        {"name": "not-ready", "kubelet": "notReady", "target": {"names": ["n1", "n2"]}},
        {"name": "silent", "kubelet": "silent", "target": {"names": ["n3"]}},
    ]
    text = captured({"a": ["n1", "n2"], "b": ["n3"]}, faults=faults)
    config = yaml.safe_load(text)["config"]
    left = without(config, {"n1", "n3"})["kumulus:cluster"]
    ((group,),) = ([each["name"] for each in left["nodeGroups"]],)
    assert (group, left["nodeGroups"][0]["placement"][0]["replicas"]) == ("a", 1)
    assert [(each["name"], each["target"]["names"]) for each in left["faults"]] == [("not-ready", ["n2"])]
    assert config == yaml.safe_load(text)["config"], "what is given is left as it is"
    assert "faults" not in without(config, {"n1", "n2", "n3"})["kumulus:cluster"]
