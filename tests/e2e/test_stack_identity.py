"""A stack's identity stays when the stack is renamed, exported and imported, and so does all that carries it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import NODES, Project

pytestmark = pytest.mark.e2e

IDENTITY = "kumulus:index:StackIdentity"
GROUP = {
    "name": "g",
    "placement": [{"availabilityZone": "z", "replicas": 2}],
    "nodeTemplate": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
}
# The cluster's own name stays with it; without one it would be called as the stack.
CLUSTER = {"name": "mine", "nodeGroups": [GROUP]}


def identity(project: Project) -> str:
    [found] = [each["outputs"]["stackId"] for each in project.state()["resources"] if each["type"] == IDENTITY]
    return str(found)


def seen(project: Project) -> tuple[dict[str, str], dict[str, list[int]], set[str]]:
    """What is there: nodes by UID, processes, and whose the nodes say that they are."""
    owners = {node["metadata"]["labels"]["kumulus.io/stack-id"] for node in project.api("mine").list(NODES)}
    return project.node_uids("mine"), project.processes(), owners


def test_a_stack_that_is_renamed_or_imported_keeps_its_identity_and_its_cluster(
    project: Project, tmp_path: Path
) -> None:
    project.write_stack(CLUSTER, stack="first")
    project.up()
    drawn, before = identity(project), seen(project)
    assert before[2] == {drawn}

    renamed = project.pulumi("stack", "rename", "second")
    assert renamed.code == 0, renamed.text
    project.known("second")
    project.write_stack(CLUSTER, stack="second")
    project.up()
    assert (identity(project), seen(project)) == (drawn, before)

    exported = tmp_path / "state.json"
    assert project.pulumi("stack", "export", "--file", str(exported)).code == 0
    assert project.pulumi("stack", "rm", "--force", "--yes", "--preserve-config").code == 0
    project._known.discard("second")
    imported = project.pulumi("stack", "import", "--file", str(exported))
    assert imported.code == 0, imported.text
    project.preview("--expect-no-changes")
    assert (identity(project), seen(project)) == (drawn, before)
    project.destroy()
    assert project.processes() == {}

    # Whatever comes then is another stack, also by the same name.
    project.up()
    assert identity(project) != drawn
    project.destroy()
