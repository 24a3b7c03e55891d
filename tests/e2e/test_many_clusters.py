"""Several clusters in one stack: each is changed, replaced and removed without the others noticing."""

from typing import Any

import pytest

from tests.support import processes
from tests.support.pods import is_ready
from tests.support.project import NODES, Project, node_group

pytestmark = pytest.mark.e2e

GROUP = node_group("gpu", 3)


def config(*clusters: dict[str, Any]) -> dict[str, Any]:
    return {"kumulus:defaults": {"nodeGroups": [GROUP]}, "kumulus:clusters": list(clusters), "kumulus:hub": "a"}


def seen(project: Project, name: str) -> tuple[str, dict[str, str], dict[str, list[int]]]:
    """What another's change must not touch: the cluster's identity, its nodes and its processes."""
    own = {key: pids for key, pids in project.processes().items() if key.startswith(f"{name}/")}
    return project.identity(name), project.node_uids(name), own


def test_each_is_changed_replaced_and_removed_without_the_others_noticing(project: Project) -> None:
    project.write_config(config({"name": "a"}, {"name": "b", "count": 2}), stack="many")
    project.up()
    names = ["many-a", "many-b-0", "many-b-1"]
    for name in names:
        nodes = project.api(name).list(NODES)
        assert len(nodes) == 3
        assert all(map(is_ready, nodes))
        assert {node["metadata"]["labels"]["kumulus.io/cluster"] for node in nodes} == {name}
    assert len({project.identity(name) for name in names}) == 3
    outputs = project.outputs()
    assert (outputs["hub"], outputs["nodeCount"]) == ("a", 9)
    assert outputs["clusters"]["b-1"]["kubeconfig"] == str(project.kubeconfig("many-b-1"))
    before = {name: seen(project, name) for name in names}

    # One is resized, another replaced.
    larger = node_group("gpu", 5)
    other = {"kwok": {"etcdFsync": False}}
    project.write_config(config({"name": "a", "nodeGroups": [larger]}, {"name": "b", "count": 2}))
    project.up()
    assert len(project.node_uids("many-a")) == 5
    assert before["many-a"][1].items() <= project.node_uids("many-a").items()
    project.write_config(config({"name": "a", "nodeGroups": [larger], **other}, {"name": "b", "count": 2}))
    project.up(shown=True)
    assert project.identity("many-a") != before["many-a"][0]
    assert {name: seen(project, name) for name in names[1:]} == {name: before[name] for name in names[1:]}

    # One is removed.
    project.write_config(config({"name": "a", **other}, {"name": "b", "count": 1}))
    project.up()
    assert not project.cluster("many-b-1").exists()
    assert seen(project, "many-b-0") == before["many-b-0"]
    assert {name.partition("/")[0] for name in project.processes()} == {"many-a", "many-b-0"}

    project.destroy()
    assert project.processes() == {}
    assert not project.home.exists()
    assert processes.helpers(project.home) == {}


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
