"""A control plane that was killed, removed or has to be another: one ``up`` makes all well.

Another one takes a preview or the user's word.
"""

import os
import shutil
import signal
from contextlib import suppress

import pytest

from tests.e2e.conftest import Fleet
from tests.support import processes, versions
from tests.support.pods import PODS, is_ready, is_running, pod
from tests.support.project import CLUSTER, NODES

pytestmark = pytest.mark.e2e

COMPONENTS = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}
# The step from the default version to one before it is none that Kubernetes takes in place.
EARLIER = versions.on_offer()[1]


def kill_all(fleet: Fleet) -> None:
    processes.kill(pid for pids in fleet.project.processes().values() for pid in pids)


def running(fleet: Fleet) -> dict[str, int]:
    """How many processes each component has."""
    return {name.partition("/")[2]: len(pids) for name, pids in fleet.project.processes().items()}


def works(fleet: Fleet, name: str) -> bool:
    """Whether a new pod is placed and run: the scheduler and KWOK do their work, at once."""
    api = fleet.project.api()
    api.create(PODS, pod(name))
    seen = api.until(PODS, lambda pods: is_running(pods[name]), fieldSelector=f"metadata.name={name}")
    return is_running(seen[name])


def test_a_plain_up_ends_only_with_a_cluster_that_answers(fleet: Fleet) -> None:
    project = fleet.project
    before, identity = project.node_uids(), project.identity()
    kill_all(fleet)
    previewed = project.foresee()
    [step] = previewed.steps
    assert (step.op, step.type, step.changed) == ("update", CLUSTER, {"status": "update"})
    for name in COMPONENTS:
        assert f"{name} is stopped and will be started" in previewed.messages["quickstart-control-plane"]
    project.up()
    assert running(fleet) == dict.fromkeys(COMPONENTS, 1)
    assert (project.identity(), project.node_uids()) == (identity, before)
    assert works(fleet, "after-all-were-killed")
    project.preview("--expect-no-changes")


def test_a_plain_up_starts_a_kwok_controller_anew_that_a_signal_has_stopped(fleet: Fleet) -> None:
    project = fleet.project
    [pid] = project.processes()["quickstart/kwok-controller"]
    os.kill(pid, signal.SIGSTOP)
    brought_up = project.up()
    assert "was stopped by a signal" in brought_up.text
    assert project.processes()["quickstart/kwok-controller"] != [pid]
    assert works(fleet, "after-a-signal")


def test_a_folder_that_was_restored_under_running_programs_is_what_runs_afterwards(fleet: Fleet) -> None:
    """They would go on with files that nobody can see any more, and lose what they write."""
    project = fleet.project
    before, identity = project.node_uids(), project.identity()
    kill_all(fleet)
    copy = project.cluster().with_name("copy")
    shutil.copytree(project.cluster(), copy, symlinks=True)
    project.up()
    old = project.processes()
    project.cluster().rename(project.cluster().with_name("away"))
    copy.rename(project.cluster())
    project.up()
    assert not {pid for pids in old.values() for pid in pids} & {p for ids in project.processes().values() for p in ids}
    assert (project.identity(), project.node_uids()) == (identity, before)
    assert works(fleet, "after-a-restore")
    shutil.rmtree(project.cluster().with_name("away"))


def test_a_cluster_whose_note_alone_is_gone_stays_and_is_given_one(fleet: Fleet) -> None:
    project = fleet.project
    before, identity, note = project.node_uids(), project.identity(), project.cluster() / "kumulus.json"
    note.unlink()
    [step] = project.foresee().steps
    assert (step.op, step.type, step.changed) == ("update", CLUSTER, {"configuration": "update"})
    project.up()
    assert note.exists()
    assert (project.identity(), project.node_uids()) == (identity, before)
    project.preview("--expect-no-changes")


def test_a_cluster_removed_behind_pulumis_back_is_made_again_and_its_processes_are_ended(fleet: Fleet) -> None:
    project = fleet.project
    before, identity = project.node_uids(), project.identity()
    shutil.rmtree(project.cluster())

    project.up("--refresh")
    nodes = project.api().list(NODES)
    assert {node["metadata"]["name"] for node in nodes} == before.keys()
    assert all(map(is_ready, nodes))
    assert project.identity() != identity
    assert running(fleet) == dict.fromkeys(COMPONENTS, 1)
    project.preview("--refresh", "--expect-no-changes")


def test_a_destroy_killed_amid_the_clusters_end_leaves_nothing_that_the_next_up_trusts(fleet: Fleet) -> None:
    """Nodes and cluster are still recorded in part; without a refresh, too, the next up makes all of it again."""
    project = fleet.project
    names = set(project.node_uids())
    for _ in range(5):
        command = project.start("destroy", "--yes", "--skip-preview")
        plugin = command.await_plugin()
        processes.await_that(lambda: len(project.processes()) < len(COMPONENTS), 60, "a component ends", 0.001)
        assert plugin is not None
        with suppress(ProcessLookupError):
            os.kill(plugin, signal.SIGKILL)
        if command.result().code:
            break
        # The destroy was quicker than the kill.
        project.up()
    else:
        pytest.fail("five destroys were each quicker than their kill, so that nothing is known of a killed one")
    [step] = [step for step in project.foresee().steps if step.type == CLUSTER]
    assert step.changed == {"status": "update-replace"}
    project.up()
    assert running(fleet) == dict.fromkeys(COMPONENTS, 1)
    assert set(project.node_uids()) == names
    project.preview("--refresh", "--expect-no-changes")


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
