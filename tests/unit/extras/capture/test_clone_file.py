"""A clone's stack file with its nodes beside it: what it may be written over."""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli.errors import UserError
from kumulus.extras.capture import writing
from kumulus.extras.capture.commands import clone, clone_file
from kumulus.extras.capture.commands.catching_up import moved, named_as_before, nodes, without
from kumulus.extras.capture.fit import cost
from kumulus.kube import safe_yaml
from kumulus.nodes.catalog.prices import catalog, with_own
from kumulus.stackfile import nodes_file

CAPTURE = """config:
  kumulus:cluster:
    nodeGroups:
    - name: a100
      zones: {z: {nodes: [{name: one}]}}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a stack's file in a project where every clone has its nodes beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nodes_file, "needs_nodes_file", lambda _: True)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\n")
    return tmp_path / "Pulumi.mine.yaml"


def test_a_file_of_nodes_that_no_clone_has_written_is_kept(file: Path) -> None:
    nodes_path = file.with_name("mine.nodes.json")
    nodes_path.write_text("mine\n")
    with pytest.raises(
        UserError, match=r"^mine\.nodes\.json is already there, and was not written by this clone\n  Name another"
    ):
        clone_file.write(file, CAPTURE)
    assert (nodes_path.read_text(), file.exists()) == ("mine\n", False)


def test_a_clone_that_was_killed_before_its_stack_file_was_written_goes_on(file: Path) -> None:
    clone_file.write(file, CAPTURE)
    file.unlink()
    clone_file.write(file, CAPTURE)
    assert clone_file.read(file) == clone_file.config_of(CAPTURE)


def test_a_clone_that_has_changed_replaces_its_nodes(file: Path) -> None:
    clone_file.write(file, CAPTURE)
    clone_file.write(file, CAPTURE.replace("one", "two"))
    assert clone_file.read(file) == clone_file.config_of(CAPTURE.replace("one", "two"))


def capture(folder: Path, names: list[str]) -> Path:
    """A capture with nodes of those names."""
    nodes = "".join(f"          - {{name: {each}}}\n" for each in names)
    placement = f"      - availabilityZone: z\n        replicas: {len(names)}\n        nodes:\n{nodes}"
    group = f"    - name: a100\n      placement:\n{placement}      nodeTemplate: {{capacity: {{cpu: 1, pods: 9}}}}\n"
    (folder / "stack.yaml").write_text(f"config:\n  kumulus:cluster:\n    nodeGroups:\n{group}")
    return folder


def test_a_capture_with_more_nodes_than_a_stack_file_may_have_values_is_cloned_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"n{number}" for number in range(30)]
    monkeypatch.setattr(safe_yaml, "MOST_VALUES", 60)
    clone._declare(capture(file.parent, names), "mine")
    written = file.read_bytes()
    clone._declare(capture(file.parent, names), "mine")
    assert file.read_bytes() == written
    with pytest.raises(UserError, match=r"^Pulumi\.mine\.yaml is another stack's, or has been changed since it was "):
        clone._declare(capture(file.parent, names[1:]), "mine")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"config: [", "cannot be read: while parsing"),
        (b"\xff", "cannot be read: 'utf-8' codec"),
        (b"- a", "does not describe a cluster\n"),
        (b"config: {kumulus:cluster: {nodeGroups: 5}}", "nodeGroups: is 5, not a list"),
    ],
)
def test_what_is_no_captures_stack_file_is_refused_and_nothing_is_written(file: Path, text: bytes, what: str) -> None:
    source = file.parent / "stack.yaml"
    source.write_bytes(text)
    with pytest.raises(UserError) as caught:
        clone._declare(file.parent, "mine")
    assert str(source) in str(caught.value)
    assert what in str(caught.value)
    assert not file.exists()


@pytest.mark.parametrize("name", ["a/b", "a b", "é", "x" * 101])
def test_a_name_that_pulumi_does_not_take_is_refused_before_anything_is_written(file: Path, name: str) -> None:
    source = capture(file.parent, ["n0"])
    before = sorted(file.parent.rglob("*"))
    with pytest.raises(UserError, match=r"cannot be a stack's name: .*\n  Name another with -s$"):
        clone._declare(source, name)
    assert sorted(file.parent.rglob("*")) == before


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


def test_a_clone_s_file_may_name_prices(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.mine.yaml"
    capture = "config:\n  kumulus:cluster:\n    nodeGroups: []\n"
    file.write_text(capture + "  kumulus:prices: prices.yaml\n")
    clone_file.require(file, [clone_file.config_of(capture)], tmp_path)


def test_nodes_that_would_help_are_priced_as_the_stack_says(tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text("regions: {r: {onDemand: {one: 2.5}}}\n")
    labels = {"node.kubernetes.io/instance-type": "one", "topology.kubernetes.io/region": "r"}
    assert cost({"metadata": {"labels": labels}}, 2, with_own(own)) == " (+$5.00/h)"
    assert cost({"metadata": {"labels": labels}}, 2, catalog()) == " (price not known)"
