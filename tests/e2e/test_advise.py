"""`kumulus advise` on real clusters: the pods of one are its workload, and the fleet advised holds it for real."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.pods import PODS, TOLERATE_ALL
from tests.support.project import Project

pytestmark = pytest.mark.e2e
ZONES = ("--types", "e2-standard-4,e2-standard-8", "--zones", "us-central1-a")


def deployment(name: str, replicas: int, cpu: str, memory: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def advise(project: Project, *arguments: str) -> tuple[int, str]:
    done = project.kumulus("advise", *arguments)
    return done.returncode, f"{done.stdout}\n{done.stderr}"


def answered(said: str) -> dict[str, int]:
    """How many nodes of each type the answer has: all of it is YAML up to where a stack is brought up."""
    groups = yaml.safe_load(said[said.index("nodeGroups:") :].split("\n\n", maxsplit=1)[0])["nodeGroups"]
    return {group["instanceType"]: sum(place["replicas"] for place in group["placement"]) for group in groups}


def write(project: Project, *documents: dict[str, Any]) -> Path:
    file = project.directory / "workload.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return file


def test_the_fleet_advised_runs_the_workload_and_nothing_of_it_stays(project: Project) -> None:
    project.install_plugins()
    file = write(project, deployment("web", 10, "500m", "1Gi"), deployment("cache", 3, "3", "20Gi"))
    code, said = advise(project, str(file), *ZONES, "--verify")
    assert code == 0, said
    assert "pods scheduled      13 of 13, 0 pending" in said, said
    assert "reached pods.pending exactly 0" in said, said
    assert project.processes() == {}
    assert list(project.stacks.iterdir()) == []


def test_a_fleet_on_which_a_pod_stays_pending_is_no_success(project: Project) -> None:
    project.install_plugins()
    unschedulable = deployment("gone", 1, "1", "1Gi")
    # What the advice leaves to the scheduler and names: here a rule that no fleet can keep.
    unschedulable["spec"]["template"]["spec"]["affinity"] = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    code, said = advise(project, str(write(project, unschedulable)), *ZONES, "--verify")
    assert "left to the scheduler: podAffinity" in said, said
    assert code == 1, said
    assert project.processes() == {}
    assert list(project.stacks.iterdir()) == []


def test_the_pods_of_a_cluster_are_advised_on_where_no_file_is_named(project: Project) -> None:
    project.install_plugins()
    template = {"capacity": {"cpu": "96", "memory": "384Gi", "pods": "110"}, "taints": []}
    placement = [{"availabilityZone": "us-central1-a", "replicas": 1}]
    project.write_stack({"nodeGroups": [{"name": "g", "placement": placement, "nodeTemplate": template}]}, stack="dev")
    project.up()
    asked = {"requests": {"cpu": "3", "memory": "2Gi"}}
    for index in range(4):
        container = {"name": "main", "image": "none", "resources": asked}
        spec = {"containers": [container], "tolerations": TOLERATE_ALL}
        project.api().create(
            PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{index}"}, "spec": spec}
        )
    code, said = advise(project, "--pods-of", "dev", "--types", "e2-standard-4", "--zones", "us-central1-a")
    assert code == 0, said
    assert "# 4 pods on 4 nodes of 1 type" in said
    assert answered(said) == {"e2-standard-4": 4}
    # With a file beside, both are counted.
    file = write(project, deployment("web", 2, "3", "2Gi"))
    code, said = advise(project, str(file), "--pods-of", "dev", "--types", "e2-standard-4", "--zones", "us-central1-a")
    assert answered(said) == {"e2-standard-4": 6}, said
