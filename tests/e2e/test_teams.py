"""Two teams' stacks, side by side on one machine."""

from __future__ import annotations

import pytest

from tests.support import processes
from tests.support.pods import is_ready
from tests.support.project import NODES, Project

pytestmark = pytest.mark.e2e


def test_two_stacks_come_up_at_once_and_change_and_go_independently(project: Project) -> None:
    cluster = project.copy_stack("team-a")
    project.copy_stack("team-b")
    commands = [project.start("up", "--yes", "--skip-preview", stack=stack) for stack in ("team-a", "team-b")]
    for command in commands:
        result = command.result()
        assert result.code == 0, result.text
    for stack, count in (("team-a", 8), ("team-b", 8)):
        nodes = project.api(stack).list(NODES)
        assert len(nodes) == count
        assert all(map(is_ready, nodes))
        assert {node["metadata"]["labels"]["kumulus.io/cluster"] for node in nodes} == {stack}
    running = project.processes()
    assert {name.partition("/")[0] for name in running} == {"team-a", "team-b"}
    assert {len(pids) for pids in running.values()} == {1}
    other = project.node_uids("team-b")

    cluster["nodeGroups"][0]["placement"][0]["replicas"] = 6
    project.write_stack(cluster, stack="team-a")
    project.up(stack="team-a")
    assert len(project.node_uids("team-a")) == 10
    assert project.node_uids("team-b") == other

    project.destroy(stack="team-a")
    assert not project.cluster("team-a").exists()
    assert project.node_uids("team-b") == other
    assert {name.partition("/")[0] for name in project.processes()} == {"team-b"}
    assert project.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", stack="team-b").code == 0

    project.destroy(stack="team-b")
    assert project.processes() == {}
    assert not project.home.exists()
    assert processes.helpers(project.home) == {}
