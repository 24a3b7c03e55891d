"""A clone's stack file with its nodes beside it: what it may be written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from kumulus.cli.errors import UserError
from kumulus.extras.capture.commands import clone, clone_file
from kumulus.kube import yaml_limits
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
    monkeypatch.setattr(nodes_file, "is_too_long", lambda _: True)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\n")
    return tmp_path / "Pulumi.mine.yaml"


def test_a_file_of_nodes_that_no_clone_has_written_is_kept(file: Path) -> None:
    nodes_path = file.with_name("mine.nodes.json")
    nodes_path.write_text("mine\n")
    with pytest.raises(UserError, match=r"^mine\.nodes\.json is already there, and not of this clone\n  Name another"):
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
    monkeypatch.setattr(yaml_limits, "MOST_VALUES", 60)
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
