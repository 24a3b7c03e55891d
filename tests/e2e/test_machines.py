"""A cluster belongs to a machine: from another one nothing of it is touched, and it can be moved by the user's word."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import charts
from tests.support.pods import pod
from tests.support.project import Project, Result, node_group

pytestmark = pytest.mark.e2e

GROUP = node_group("g", 3)
COMMANDS = (("preview",), ("up", "--yes", "--skip-preview"), ("refresh", "--yes", "--skip-preview"))


@contextmanager
def another_machine(project: Project, *, files: bool = False) -> Iterator[dict[str, Any]]:
    """The variables with which commands work on another machine, where the cluster's files are not, or came along.

    Nothing but the identity drawn for this user tells the two apart; what proves that a folder is the cluster's is out
    of the way meanwhile. The rest of its files stays: its programs run, and read them.
    """
    hidden = [project.cluster() / name for name in ("kumulus.json", "kubeconfig.yaml")]
    for file in [] if files else hidden:
        file.rename(file.with_suffix(".away"))
    try:
        yield {"XDG_STATE_HOME": str(project.directory.parent / "other-machine")}
    finally:
        for file in [] if files else hidden:
            file.with_suffix(".away").rename(file)


@pytest.fixture
def project(module_project: Project) -> Project:
    """The stack of one group, up, as the test before has left it or anew."""
    module_project.write_stack({"nodeGroups": [GROUP]})
    module_project.up()
    return module_project


def recorded(project: Project) -> dict[str, Any]:
    """The state's resources, by name."""
    return {each["urn"]: each.get("outputs") for each in project.state()["resources"]}


def refused(result: Result) -> None:
    assert result.code != 0
    assert f"another machine named {socket.gethostname()}" in result.text
    assert "nothing was changed. Work on it there" in result.text
    assert "pulumi config set kumulus:moveHere true" in result.text
    assert "Traceback" not in result.text


def test_on_another_machine_every_command_refuses_and_touches_nothing(project: Project) -> None:
    before, nodes, running = recorded(project), project.node_uids(), project.processes()
    with another_machine(project) as there:
        for command in COMMANDS:
            refused(project.pulumi(*command, **there))
            assert recorded(project) == before, command
        refused(project.pulumi("destroy", "--yes", **there))
        assert recorded(project) == before
        assert not project.kubeconfig().exists()
    assert project.processes() == running
    assert project.node_uids() == nodes
    project.preview("--refresh", "--expect-no-changes")


def test_a_refused_destroy_forgets_nothing_and_what_one_without_its_check_forgot_is_found_again(
    project: Project,
) -> None:
    project.install_plugins()
    cluster = {
        "nodeGroups": [
            {**node_group("g", 3, gpus=1), "gpuProduct": "NVIDIA-A100-SXM4-80GB", "resourceSlices": {}},
        ],
        "tenants": [{"name": "research", "quota": {"pods": 3}}],
        "faults": [{"name": "worn", "conditions": {"Worn": {"reason": "Odd"}}, "target": {"count": 1}}],
        "clusterAddons": [{"name": "sample", "namespace": "in-sample", "chart": "./charts/sample"}],
    }
    charts.write_chart(project.directory / "charts" / "sample", "0.1.0")
    project.write_stack(cluster)
    project.up()
    project.api().create("/api/v1/namespaces/research/pods", pod("theirs"))
    before, there = recorded(project), everything(project)
    with another_machine(project) as elsewhere:
        refused(project.pulumi("destroy", "--yes", "--skip-preview", **elsewhere))
        assert recorded(project).keys() == before.keys()
        # As after an edit of the state.
        [check] = [urn for urn in before if "DestroyCheck::" in urn]
        assert project.pulumi("state", "delete", check, "--yes").code == 0
        refused(project.pulumi("destroy", "--yes", "--skip-preview", **elsewhere))
    lost = before.keys() - recorded(project).keys() - {check}
    assert {urn.split("::")[2].rsplit("$", 1)[-1] for urn in lost} >= {"kumulus:index:NodePool", "kumulus:index:Fault"}
    assert everything(project) == there
    assert "release in-sample/sample is this stack's and has left its state; it was taken up" in project.up().text
    assert recorded(project).keys() == before.keys()
    assert everything(project) == there
    project.preview("--refresh", "--expect-no-changes")


def test_where_its_files_came_along_it_is_taken_up_with_all_that_is_in_it(project: Project) -> None:
    nodes, identity = project.node_uids(), project.identity()
    with another_machine(project, files=True) as there:
        refused_there = project.pulumi("preview", **there)
        assert "starts it here with all that is in it" in refused_there.text
        project.write_stack({"nodeGroups": [GROUP]}, moveHere=True)
        taken = project.pulumi("up", "--yes", **there)
        assert taken.code == 0, taken.text
        assert "replaced" not in taken.text
        assert (project.identity(), project.node_uids()) == (identity, nodes)
        machines = [found["machine"] for found in recorded(project).values() if found and "machine" in found]
        assert len(machines) == 2
        assert machines[0] == machines[1]
        destroyed = project.pulumi("destroy", "--yes", "--skip-preview", **there)
        assert destroyed.code == 0, destroyed.text
    assert project.processes() == {}


def test_by_the_users_word_it_is_made_anew_here_and_the_other_is_left(project: Project, tmp_path: Path) -> None:
    nodes, running = project.node_uids(), project.processes()
    project.write_stack({"nodeGroups": [GROUP]}, moveHere=True)
    with another_machine(project) as there:
        there["KUMULUS_HOME"] = str(tmp_path / "home-there")
        previewed = project.pulumi("preview", **there)
        assert previewed.code == 0, previewed.text
        assert "is made again here, without the pods, Jobs" in previewed.text
        moved = project.pulumi("up", "--yes", "--skip-preview", **there)
        assert moved.code == 0, moved.text
        again = project.pulumi("preview", "--expect-no-changes", **there)
        assert again.code == 0, again.text
        assert "pulumi config rm kumulus:moveHere" in again.text
        refresh = project.pulumi("refresh", "--yes", "--skip-preview", **there)
        assert refresh.code == 0, refresh.text
    assert project.processes() == running
    assert project.node_uids() == nodes
    # Back on the first machine the stack's cluster is on the other one.
    project.write_stack({"nodeGroups": [GROUP]})
    refused(project.pulumi("preview"))
    with another_machine(project) as there:
        destroyed = project.pulumi("destroy", "--yes", "--skip-preview", **there)
        assert destroyed.code == 0, destroyed.text
    assert project.processes() == running
    assert not (tmp_path / "home-there").exists()


def everything(project: Project) -> dict[str, str]:
    """The UIDs of what the stack has in its cluster, and of what others have put there."""
    paths = (
        "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/namespaces/research/pods",
        "/api/v1/namespaces/research/resourcequotas", "/api/v1/namespaces/research/secrets",
        "/api/v1/namespaces/research/serviceaccounts", "/api/v1/namespaces/in-sample/services",
        "/apis/apps/v1/namespaces/in-sample/deployments", "/apis/resource.k8s.io/v1/resourceslices",
        "/apis/resource.k8s.io/v1/deviceclasses",
    )  # fmt: skip
    api = project.api()
    return {f"{path}/{each['name']}": each["uid"] for path in paths for each in api.metadata(path)}
