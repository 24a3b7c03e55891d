"""The next Kubernetes version is taken in place, with all that is in the cluster; a replacement needs a word."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus import toolchain
from tests.support.pods import JOBS, PODS, is_ready, is_running, job, pod
from tests.support.project import CLUSTER, NODES, Project

pytestmark = pytest.mark.e2e

NEW, OLD = (f"v{version}" for version in toolchain.kubernetes_versions()[:2])
CLUSTER_SPEC: dict[str, Any] = {
    "nodeGroups": [
        {
            "name": "a100",
            "placement": [{"availabilityZone": "z", "replicas": 4}],
            "nodeTemplate": {"capacity": {"cpu": "96", "memory": "1360Gi", "pods": "110", "nvidia.com/gpu": "8"}},
        }
    ],
    "tenants": [{"name": "research", "quota": {"requests.nvidia.com/gpu": 16, "pods": 3}}],
}
RESEARCH = "/api/v1/namespaces/research/pods"


def is_built(version: str) -> bool:
    try:
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            toolchain.find(name, version)
    except toolchain.ToolchainError:
        return False
    return True


needs_both = pytest.mark.skipif(
    not is_built(OLD), reason=f"Kubernetes {OLD} is not built: ./kumulus tools --kubernetes"
)


def uids(project: Project) -> dict[str, str]:
    api = project.api()
    kinds = (NODES, PODS, JOBS, RESEARCH, "/api/v1/namespaces", "/api/v1/namespaces/research/resourcequotas")
    return {f"{kind}/{each['name']}": each["uid"] for kind in kinds for each in api.metadata(kind)}


@needs_both
def test_the_next_minor_version_keeps_pods_jobs_and_tenants(project: Project) -> None:
    project.install_plugins()
    project.write_stack({**CLUSTER_SPEC, "kubernetesVersion": OLD})
    project.up()
    api = project.api()
    assert api.get("/version")["gitVersion"] == OLD
    api.create(PODS, pod("service"))
    api.create(RESEARCH, pod("theirs"))
    api.create(JOBS, job("training", "a100-z-0", 2))
    api.until(PODS, lambda pods: len(pods) == 3 and all(map(is_running, pods.values())))
    before, identity = uids(project), project.identity()
    etcd = project.processes()["quickstart/etcd"]

    project.write_stack({**CLUSTER_SPEC, "kubernetesVersion": NEW})
    foreseen = project.foresee()
    [step] = foreseen.steps
    assert (step.op, step.type, step.changed) == ("update", CLUSTER, {"kubernetesVersion": "update"})
    assert "what is in the cluster stays" in foreseen.messages["quickstart-control-plane"]
    # Also where nobody sees that: nothing is lost.
    project.up()

    api = project.api()
    assert api.get("/version")["gitVersion"] == NEW
    assert project.identity() == identity
    assert uids(project) == before
    assert project.processes()["quickstart/etcd"] == etcd
    api.until(NODES, lambda nodes: all(map(is_ready, nodes.values())))
    api.create(PODS, pod("later"))
    api.until(PODS, lambda pods: is_running(pods["later"]))
    project.preview("--refresh", "--expect-no-changes")

    # The way back is none that Kubernetes has.
    project.write_stack({**CLUSTER_SPEC, "kubernetesVersion": OLD})
    [step] = [step for step in project.foresee().steps if step.type == CLUSTER]
    assert step.changed == {"kubernetesVersion": "update-replace"}
    project.destroy()
    assert project.processes() == {}


def test_a_replacement_that_no_preview_has_shown_needs_the_users_word(project: Project) -> None:
    group = CLUSTER_SPEC["nodeGroups"][0]
    project.write_stack({"nodeGroups": [group]})
    project.up()
    before, running, state = project.node_uids(), project.processes(), project.state()["resources"]
    changed = {"nodeGroups": [group], "kwok": {"featureGates": {"AllAlpha": False}}}
    project.write_stack(changed)
    # That of another command is not what this one's user has seen.
    project.preview()
    refused = project.pulumi("up", "--yes", "--skip-preview")
    assert refused.code != 0
    assert "cluster quickstart would be replaced (options.featureGates), without the pods, Jobs" in refused.text
    assert "pulumi config set kumulus:allowReplace true" in refused.text
    assert (project.node_uids(), project.processes()) == (before, running)
    kept = {each["urn"] for each in project.state()["resources"]}
    assert kept == {each["urn"] for each in state}, "the engine has forgotten nothing"

    project.up(shown=True)
    shown = project.node_uids()
    assert shown.keys() == before.keys()
    assert not set(shown.values()) & set(before.values())

    project.write_stack({"nodeGroups": [group]}, allowReplace=True)
    project.up()
    assert not set(project.node_uids().values()) & set(shown.values())
