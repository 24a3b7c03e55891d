"""A state that was lost: `pulumi import` finds the cluster and its pools again, and nothing is left to change."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import NODES, ROOT, Project, node_group

pytestmark = pytest.mark.e2e

PROGRAM = ROOT / "examples" / "languages" / "python"
IDENTITY = "kumulus:index:StackIdentity"
# The cluster's own name stays with it; without one it would be called as the stack.
CLUSTER = {"name": "mine", "nodeGroups": [node_group("g", 2)]}


def resource(token: str, name: str, parent: str = "", **further: Any) -> dict[str, Any]:
    return {"type": f"kumulus:index:{token}", "name": name, **({"parent": parent} if parent else {}), **further}


def test_a_cluster_and_its_pools_are_imported_with_nothing_left_to_change(tmp_path: Path) -> None:
    project = Project(tmp_path, PROGRAM)
    try:
        project.write_config({}, stack="dev")
        project.up()
        nodes, identity = project.node_uids("fleet"), project.identity("fleet")
        assert project.pulumi("stack", "rm", "--force", "--yes", "--preserve-config").code == 0
        assert project._spawn("stack", "init", "dev", "--no-select", variables={}).result().code == 0
        known = project.api("fleet").get("/api/v1/nodes/general-use1-0")["metadata"]["labels"]["kumulus.io/stack-id"]
        wanted = [
            resource("StackIdentity", "stack-identity", id=known),
            resource("KwokCluster", "fleet", component=True),
            resource("Cluster", "fleet-control-plane", "fleet", id="fleet"),
            resource("Lifetime", "fleet-lifetime", "fleet", id=identity),
            resource("KwokNodeGroup", "training", component=True),
            resource("KwokNodeGroup", "general", component=True),
            # By name, and by the directory of its cluster.
            resource("NodePool", "training-use1", "training", id="fleet/training-use1"),
            resource("NodePool", "training-use2", "training", id=f"{project.cluster('fleet')}/training-use2"),
            resource("NodePool", "general-use1", "general", id="fleet/general-use1"),
        ]
        (tmp_path / "import.json").write_text(json.dumps({"resources": wanted}))
        flags = ("--yes", "--protect=false", "--generate-code=false", "--skip-preview")
        imported = project.pulumi("import", "--file", str(tmp_path / "import.json"), *flags)
        assert imported.code == 0, imported.text
        assert "was made by" not in imported.text
        recorded = {each["urn"].split("::")[-1]: each for each in project.state()["resources"]}
        assert recorded["fleet-control-plane"]["id"] == "fleet"
        assert recorded["training-use2"]["id"] == "fleet/training-use2"
        assert recorded["training-use2"]["inputs"]["replicas"] == 4
        assert recorded["stack-identity"]["outputs"]["stackId"] == known
        project.preview("--expect-no-changes")
        project.preview("--expect-no-changes", "--refresh")
        project.up()
        assert (project.node_uids("fleet"), project.identity("fleet")) == (nodes, identity)
        project.destroy()
        assert project.processes() == {}
    finally:
        project.close()


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
