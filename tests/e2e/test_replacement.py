"""A change that needs another control plane: it takes a preview or the user's word, and one up makes all again."""

import pytest

from tests.e2e.conftest import Fleet
from tests.support import versions
from tests.support.pods import PODS, is_ready, pod
from tests.support.project import NODES

pytestmark = pytest.mark.e2e


# The step from the default version to one before it is none that Kubernetes takes in place.
EARLIER = versions.on_offer()[1]


@versions.needs(EARLIER)
def test_another_control_plane_is_previewed_as_a_replacement_and_gets_all_pools(fleet: Fleet) -> None:
    project = fleet.project
    before, identity = project.node_uids(), project.identity()
    fleet.cluster["kubernetesVersion"] = EARLIER
    fleet.write()

    api = project.api()
    api.create("/api/v1/namespaces", {"metadata": {"name": "mine"}})
    for name in ("a", "b"):
        api.create(PODS, pod(name))

    foreseen = project.foresee()
    steps = foreseen.by_name
    assert {name for name, step in steps.items() if step.op != "replace"} == set()
    assert len(steps) == 10, "the cluster and its nine pools"
    assert steps["quickstart-control-plane"].changed.keys() == {"kubernetesVersion"}
    assert (
        "in addition to what the stack declares; it has 2 pods and 1 namespace"
        in foreseen.messages["quickstart-control-plane"]
    )
    # Its preview is not what the user of another command has seen.
    running, kept = project.processes(), {each["urn"] for each in project.state()["resources"]}
    refused = project.pulumi("up", "--yes", "--skip-preview")
    assert refused.code != 0
    assert "cluster quickstart would be replaced (kubernetesVersion), without the pods, Jobs" in refused.text
    assert "pulumi config set kumulus:allowReplace true" in refused.text
    assert (project.node_uids(), project.processes()) == (before, running)
    assert {each["urn"] for each in project.state()["resources"]} == kept, "the engine has forgotten nothing"

    project.write_stack(fleet.cluster, allowReplace=True)
    project.up()
    fleet.write()
    nodes = project.api().list(NODES)
    assert {node["metadata"]["name"] for node in nodes} == before.keys()
    assert all(map(is_ready, nodes))
    assert project.identity() != identity
    assert not set(before.values()) & {node["metadata"]["uid"] for node in nodes}
    assert project.api().get("/version")["gitVersion"] == EARLIER
    assert len(project.processes()) == 5
    project.preview("--refresh", "--expect-no-changes")


def test_another_runtime_is_previewed_as_a_replacement_of_the_same_cluster(fleet: Fleet) -> None:
    others = {key: value for key, value in fleet.cluster.items() if key != "kwok"}
    # Without KWOK's charts, whose repository a preview asks.
    fleet.project.write_stack({**others, "runtime": "kind", "kwokCharts": {"install": False}})
    steps = fleet.project.foresee().by_name
    fleet.write()
    assert {name for name, step in steps.items() if step.op != "replace"} == set()
    assert len(steps) == 10, "the cluster and its nine pools"
    assert steps["quickstart-control-plane"].changed["runtime"] == "update-replace"
