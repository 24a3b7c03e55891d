"""A project with its state and its cluster is moved, copied and restored: nothing of a cluster is lost by it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support import processes
from tests.support.project import Project, Result

pytestmark = pytest.mark.e2e

TEMPLATE = {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}}
GROUP = {"name": "g", "placement": [{"availabilityZone": "z", "replicas": 3}], "nodeTemplate": TEMPLATE}
COMMANDS = (("preview",), ("up", "--yes", "--skip-preview"), ("refresh", "--yes", "--skip-preview"))


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Project]:
    """A project that has its state and its clusters in its own folder, as a clone has, up."""
    project = Project(tmp_path)
    file = project.directory / "Pulumi.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "backend": {"url": "file://./.pulumi-state"}}))
    (project.directory / ".pulumi-state").mkdir()
    project.environment[processes.HOME_VARIABLE] = ".kumulus"
    project.home = project.directory / ".kumulus"
    project.write_stack({"nodeGroups": [GROUP]})
    try:
        project.up()
        # kube-controller-manager reads its certificates by their paths until it has begun; then nothing needs them.
        project.api().until("/api/v1/namespaces/default/serviceaccounts", lambda found: "default" in found)
        yield project
    finally:
        # What runs has the path that it was started by, or that of where the project went.
        for home in (
            tmp_path / "project" / ".kumulus",
            tmp_path / "moved" / ".kumulus",
            tmp_path / "copy" / ".kumulus",
        ):
            project.home = home
            project.close()


def at(project: Project, folder: Path) -> None:
    """Work in another folder."""
    project.directory, project.stacks = folder, folder / "stacks"


def refused(result: Result, words: str) -> None:
    assert result.code != 0
    assert words in result.text
    assert "nothing was changed" in result.text


def test_a_moved_project_says_where_it_was_and_moved_back_it_goes_on(whole: Project, tmp_path: Path) -> None:
    original, moved = whole.directory, tmp_path / "moved"
    nodes, running = whole.node_uids(), whole.processes()
    original.rename(moved)
    at(whole, moved)
    for command in COMMANDS:
        refused(whole.pulumi(*command), f"this project was at {original}")
    assert whole.processes() == running
    moved.rename(original)
    at(whole, original)
    whole.up()
    assert (whole.node_uids(), whole.processes()) == (nodes, running)
    whole.preview("--refresh", "--expect-no-changes")


def test_a_moved_project_is_made_anew_by_the_users_word_and_the_old_programs_end(
    whole: Project, tmp_path: Path
) -> None:
    original, moved = whole.directory, tmp_path / "moved"
    original.rename(moved)
    at(whole, moved)
    whole.write_stack({"nodeGroups": [GROUP]}, moveHere=True)
    brought_up = whole.up()
    assert "is made again here, without the pods, Jobs" in brought_up.text
    assert whole.processes() == {}
    assert not original.exists()
    whole.home = moved / ".kumulus"
    assert len(whole.node_uids()) == 3
    whole.destroy()
    assert whole.processes() == {}


@pytest.mark.parametrize("word", [False, True], ids=["", "moveHere"])
def test_a_copy_touches_nothing_of_the_originals_whatever_the_user_says(
    whole: Project, tmp_path: Path, word: bool
) -> None:
    original, copy = whole.directory, tmp_path / "copy"
    nodes, running = whole.node_uids(), whole.processes()
    shutil.copytree(original, copy, symlinks=True)
    at(whole, copy)
    whole.write_stack({"nodeGroups": [GROUP]}, moveHere=word)
    for command in (*COMMANDS, ("destroy", "--yes", "--skip-preview")):
        refused(whole.pulumi(*command), f"this project is a copy of the one at {original}")
        assert (whole.node_uids(), whole.processes()) == (nodes, running), command
    # As it says: a cluster of its own.
    for name in (".pulumi-state", ".kumulus"):
        shutil.rmtree(copy / name)
    (copy / ".pulumi-state").mkdir()
    whole.write_stack({"nodeGroups": [GROUP]})
    whole._known.clear()
    whole.up()
    whole.destroy()
    at(whole, original)
    whole.up()
    assert (whole.node_uids(), whole.processes()) == (nodes, running)
