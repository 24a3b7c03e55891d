"""Mistakes of every kind: one clear message, no traceback, and nothing that the next up or destroy cannot handle."""

from typing import Any

import pytest

from tests.support.pods import is_ready
from tests.support.project import NODES, Project, Result, node_group

pytestmark = pytest.mark.e2e

GOOD: dict[str, Any] = {"nodeGroups": [node_group("a100", 2, "use1", gpus=8)]}


@pytest.fixture(scope="module")
def stack(module_project: Project) -> Project:
    """A project whose stack is tried with one mistake after the other."""
    module_project.stack = "dev"
    return module_project


def refused(result: Result) -> str:
    """What was said by a command that has to be refused in words a user can use."""
    assert result.code not in (0, None), result.text
    assert "Traceback" not in result.text
    assert "KeyboardInterrupt" not in result.text
    assert "unexpected" not in result.text.lower(), "defects of the plugin itself are reported so"
    assert "unhandled error" not in result.text, "nothing is said beside what is wrong"
    return result.text


def calm(project: Project) -> None:
    """Nothing of a cluster is left, and destroy takes what there is in the state."""
    assert project.processes() == {}
    assert not project.cluster().exists()
    assert "Traceback" not in project.destroy().text


def good(project: Project) -> None:
    """A good stack file comes up after whatever there was."""
    project.write_stack(GOOD)
    project.up()
    nodes = project.api().list(NODES)
    assert len(nodes) == 2
    assert all(map(is_ready, nodes))


def test_all_mistakes_in_a_cluster_are_told_at_once_each_with_its_path(stack: Project) -> None:
    places = [("use1", -1), ("use2", 10**12)]
    good = GOOD["nodeGroups"][0]
    mistaken = {
        "nodeGroup": [],
        "nodeGroups": [
            {**good, "placement": [{"availabilityZone": zone, "replicas": count} for zone, count in places]},
            {**good, "name": "B_1"},
            {**good, "name": "c", "nodeTemplate": {"capacity": {"cpu": "8", "memory": "32Gb"}}},
            {**good, "name": "d-use1", "placement": [{"availabilityZone": "x", "replicas": 1}]},
            {**good, "name": "d", "placement": [{"availabilityZone": "use1-x", "replicas": 1}]},
        ],
        "clusterAddons": [{"name": "Mine", "chart": "./charts/mine"}],
    }
    stack.write_stack(mistaken)
    said = refused(stack.pulumi("up", "--yes", "--skip-preview"))
    for told in (
        "problems in stacks/Pulumi.dev.yaml",
        "nodeGroup: is not a known key; write nodeGroups",
        "nodeGroups[0].placement[0].replicas: is -1, less than 0; write a number of nodes",
        "nodeGroups[0].placement[1].replicas: is 1000000000000, more nodes than one placement can have",
        'nodeGroups[1].name: "B_1" is not a DNS-1123 name; write b-1',
        'nodeGroups[2].nodeTemplate.capacity.memory: "32Gb" has a B at its end',
        "nodeGroups[4].placement[0]: makes the same node names as nodeGroups[3].placement[0]",
        'clusterAddons[0].name: "Mine"',
    ):
        assert told in said
    calm(stack)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(
            {"clusterAddons": [{"name": "mine", "namespace": "mine", "chart": "./charts/mine"}]},
            "clusterAddons[0].chart: the chart",
            id="missing-chart",
        ),
        pytest.param(
            {"kubernetesVersion": "1.2.3"},
            "Kubernetes v1.2.3 is not among the pinned versions; write one of",
            id="kubernetes-version",
        ),
    ],
)
def test_what_cannot_be_had_is_told(stack: Project, change: dict[str, Any], told: str) -> None:
    stack.write_stack({**GOOD, **change})
    assert told in refused(stack.pulumi("up", "--yes", "--skip-preview"))
    calm(stack)


def test_a_kemu_file_that_cannot_be_read_is_told(stack: Project) -> None:
    """The other reasons: tests/unit/stackfile/test_load.py."""
    (stack.directory / "kemu.yaml").write_text("kind: ClusterConfig\nspec: [}\n")
    stack.write_stack(clusterConfig="kemu.yaml")
    said = refused(stack.pulumi("up", "--yes", "--skip-preview"))
    assert "line 2, column" in said
    assert "kemu.yaml" in said
    calm(stack)


def test_a_good_file_comes_up_after_all_these_and_the_next_mistake_leaves_it_alone(stack: Project) -> None:
    good(stack)
    before = stack.node_uids()
    group = GOOD["nodeGroups"][0]
    stack.write_stack({"nodeGroups": [{**group, "placement": [{"availabilityZone": "use1", "replicas": "many"}]}]})
    assert "nodeGroups[0].placement[0].replicas" in refused(stack.pulumi("up", "--yes", "--skip-preview"))
    assert stack.node_uids() == before
    stack.destroy()
    assert not stack.home.exists()
