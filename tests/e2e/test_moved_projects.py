"""A project with its state and its cluster is moved, copied and restored: nothing of a cluster is lost by it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import FAILED
from tests.support import processes
from tests.support.project import Project, Result, node_group

pytestmark = pytest.mark.e2e

COMMANDS = (("preview",), *((command, "--yes", "--skip-preview") for command in ("up", "refresh", "destroy")))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Project]]:
    """The project that these tests use one after the other, once there is one."""
    found: list[Project] = []
    yield found
    for project in found:
        close(project)


@pytest.fixture
def whole(
    kept: list[Project], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Project]:
    """A project that has its state and its clusters in its own folder, as a clone has: up, and anew after a failure."""
    project = kept[0] if kept else Project(tmp_path_factory.mktemp("whole"))
    original = project.pulumi_home.with_name("project")
    if not kept:
        kept.append(project)
        file = project.directory / "Pulumi.yaml"
        backend = {"backend": {"url": "file://./.pulumi-state"}}
        file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **backend}))
        (project.directory / ".pulumi-state").mkdir()
        project.environment[processes.HOME_VARIABLE] = ".kumulus"
    elif not original.exists():
        project.directory.rename(original)
    at(project, original)
    project.home = original / ".kumulus"
    project.write_stack({"nodeGroups": [node_group("g", 3)]})
    if not project.processes():
        project.up()
        # kube-controller-manager reads its certificates by their paths until it has begun; then nothing needs them.
        project.api().until("/api/v1/namespaces/default/serviceaccounts", lambda found: "default" in found)
    yield project
    if request.node.stash.get(FAILED, False):
        close(kept.pop())


def close(project: Project) -> None:
    # What runs has the path that it was started by, or that of where the project went.
    for folder in {project.pulumi_home.with_name("project"), project.directory}:
        project.home = folder / ".kumulus"
        project.close()


def at(project: Project, folder: Path) -> None:
    """Work in another folder."""
    project.directory, project.stacks = folder, folder / "stacks"


def refused(result: Result, words: str) -> None:
    assert result.code != 0
    assert words in result.text
    assert "nothing was changed" in result.text


def only_those(found: dict[str, list[int]], before: dict[str, list[int]]) -> bool:
    """Whether nothing has been started. Something may have ended by itself: etcd does when its files are not at their
    path, for which it looks every half minute."""
    return {pid for pids in found.values() for pid in pids} <= {pid for pids in before.values() for pid in pids}


class Life:
    """A project that is moved away, copied and restored from time to time, and goes on where it was."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.folder = project, folder
        self.original = project.directory

    def declare(self, replicas: int, **config: Any) -> None:
        self.project.write_stack({"nodeGroups": [node_group("g", replicas)]}, **config)

    def up(self, *arguments: str) -> dict[str, str]:
        """Bring it up; the nodes that are there, as the stack file has them."""
        self.project.up(*arguments)
        nodes = self.project.node_uids()
        wanted = yaml.safe_load(self.project.stack_file().read_text())["config"]["kumulus:cluster"]["nodeGroups"][0]
        assert len(nodes) == wanted["placement"][0]["replicas"]
        assert len(self.project.processes()) == 5
        return nodes

    def end_components(self) -> None:
        """What a restart of the machine leaves: files, and no process."""
        processes.kill(pid for pids in self.project.processes().values() for pid in pids)

    @contextmanager
    def moved(self) -> Iterator[None]:
        """Elsewhere for a while."""
        there = self.folder / "moved"
        self.original.rename(there)
        at(self.project, there)
        try:
            yield
        finally:
            assert not self.original.exists(), "nothing is made where it was"
            there.rename(self.original)
            at(self.project, self.original)

    @contextmanager
    def copied(self) -> Iterator[None]:
        """In a copy, which is thrown away."""
        copy = self.folder / "copy"
        shutil.copytree(self.original, copy, symlinks=True)
        at(self.project, copy)
        try:
            yield
        finally:
            shutil.rmtree(copy)
            at(self.project, self.original)

    def begun_alone(self) -> None:
        """A copy without the original's state and files: it has a cluster of its own."""
        for name in (".pulumi-state", ".kumulus"):
            shutil.rmtree(self.project.directory / name)
        (self.project.directory / ".pulumi-state").mkdir()
        running = self.project.processes()
        self.declare(1)
        self.project._known.clear()
        self.project.up()
        self.project.destroy()
        assert self.project.processes() == running

    def backed_up(self, name: str) -> Path:
        """A backup, taken while nothing runs: what is copied of a database at work is none."""
        backup = self.folder / name
        shutil.copytree(self.original, backup, symlinks=True)
        return backup

    def restored(self, backup: Path) -> None:
        """The backup in the project's place; what ran there runs on, in a folder that is gone."""
        shutil.rmtree(self.original)
        shutil.copytree(backup, self.original, symlinks=True)

    def refused(self, command: tuple[str, ...], words: str) -> None:
        """The command refuses, and touches nothing of what runs."""
        running = self.project.processes()
        refused(self.project.pulumi(*command), words)
        if self.original.exists():
            assert self.project.processes() == running
        else:
            assert only_those(self.project.processes(), running)


@pytest.fixture
def life(whole: Project, tmp_path: Path) -> Life:
    return Life(whole, tmp_path)


PREVIEW, UP, REFRESH, DESTROY = COMMANDS


@pytest.mark.timeout(1200)
def test_at_any_point_of_its_life_a_moved_or_copied_project_refuses_and_back_again_goes_on(life: Life) -> None:
    nodes = life.project.node_uids()
    was, copied = (f"this project {words} {life.original}" for words in ("was at", "is a copy of the one at"))
    # 1: up, and nothing to do.
    with life.moved():
        for command in (PREVIEW, UP, REFRESH):
            life.refused(command, was)
    assert life.up() == nodes
    life.project.preview("--refresh", "--expect-no-changes")
    # 2: with a change in its file that is not made yet.
    life.declare(4)
    with life.copied():
        life.refused(DESTROY, copied)
        life.refused(UP, copied)
        life.declare(4, moveHere=True)
        for command in COMMANDS:
            life.refused(command, copied)
        life.begun_alone()
    assert life.project.node_uids() == nodes
    grown = life.up()
    assert nodes.items() <= grown.items()
    # 3: after a restart of the machine.
    life.end_components()
    with life.moved():
        life.refused(UP, was)
        assert life.project.processes() == {}
    with life.copied():
        life.refused(REFRESH, copied)
    assert life.up() == grown
    # 4: killed amid an update, whose lock is there.
    life.declare(40)
    under_way = life.project.start(*UP)
    plugin = under_way.await_plugin()
    assert plugin is not None
    processes.kill([under_way.process.pid, plugin])
    under_way.result()
    with life.moved():
        life.refused(PREVIEW, was)
    assert life.project.pulumi("cancel", "--yes").code == 0
    assert grown.items() <= life.up().items()
    # 5: by the user's word it is made anew where it is, and the old programs end.
    with life.moved():
        life.declare(2, moveHere=True)
        brought_up = life.project.up()
        assert "is made again here, without the pods, Jobs" in brought_up.text
        assert life.project.processes() == {}
        life.project.home = life.project.directory / ".kumulus"
        assert len(life.project.node_uids()) == 2
        life.project.destroy()
        assert life.project.processes() == {}
    # 6: destroyed, it is free to go, and begins anew wherever it is.
    life.project.home = life.original / ".kumulus"
    life.declare(3)
    life.up()


@pytest.mark.timeout(1200)
def test_at_any_point_of_its_life_a_project_that_is_restored_from_a_backup_goes_on_as_it_was_then(life: Life) -> None:
    nodes = life.project.node_uids()
    life.end_components()
    three = life.backed_up("three")
    # 1: after a restart of the machine.
    life.restored(three)
    assert life.up() == nodes
    # 2: while the cluster runs, which works in a folder that is gone.
    life.restored(three)
    assert life.up("--refresh") == nodes
    # 3: after an update, which the backup does not know.
    life.declare(5)
    grown = life.up()
    life.end_components()
    five = life.backed_up("five")
    life.restored(three)
    assert life.up() == nodes
    # 4: back to the later one, while the earlier one runs.
    life.restored(five)
    assert life.up("--refresh") == grown
    # 5: after the cluster has been destroyed, which the backup does not know either.
    life.project.destroy()
    assert life.project.processes() == {}
    life.restored(three)
    assert life.up() == nodes
    life.project.destroy()
    assert life.project.processes() == {}
