"""A clone's stack file with its nodes beside it: what it may be written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from kumulus.cli import clone_file
from kumulus.cli.errors import UserError
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
    beside = file.with_name("mine.nodes.json")
    beside.write_text("mine\n")
    with pytest.raises(UserError, match=r"^mine\.nodes\.json is already there, and not of this clone\n  Name another"):
        clone_file.write(file, CAPTURE)
    assert (beside.read_text(), file.exists()) == ("mine\n", False)


def test_a_clone_that_was_killed_before_its_stack_file_was_written_goes_on(file: Path) -> None:
    clone_file.write(file, CAPTURE)
    file.unlink()
    clone_file.write(file, CAPTURE)
    assert clone_file.read(file) == clone_file.config_of(CAPTURE)


def test_a_clone_that_has_changed_replaces_its_nodes(file: Path) -> None:
    clone_file.write(file, CAPTURE)
    clone_file.write(file, CAPTURE.replace("one", "two"))
    assert clone_file.read(file) == clone_file.config_of(CAPTURE.replace("one", "two"))
