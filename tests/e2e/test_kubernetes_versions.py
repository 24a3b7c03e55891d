"""The next Kubernetes version is taken in place, with all that is in the cluster."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from tests.support import versions
from tests.support.pods import JOBS, PODS, is_ready, is_running, job, pod
from tests.support.project import CLUSTER, NODES, POOL, Project, node_group

pytestmark = pytest.mark.e2e

NEWEST, *_ = VERSIONS = versions.on_offer()
BEFORE = VERSIONS[1]
CLUSTER_SPEC: dict[str, Any] = {
    "nodeGroups": [
        node_group("a100", 4, cpu="96", memory="1360Gi", gpus=8),
        {
            "name": "h100",
            "instanceType": "a3-highgpu-8g",
            "placement": [{"availabilityZone": "z", "replicas": 1}],
            "resourceSlices": {"extendedResource": False},
        },
    ],
    "tenants": [{"name": "research", "quota": {"requests.nvidia.com/gpu": 16, "pods": 3}}],
    "faults": [{"name": "tired", "kind": "not-ready", "target": {"names": ["a100-z-3"]}}],
}
RESEARCH = "/api/v1/namespaces/research/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
WORKLOADS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads"


def uids(project: Project) -> dict[str, str]:
    api = project.api()
    kinds = (NODES, PODS, JOBS, CLAIMS, SLICES, RESEARCH, "/api/v1/namespaces")
    quotas = "/api/v1/namespaces/research/resourcequotas"
    return {f"{kind}/{each['name']}": each["uid"] for kind in (*kinds, quotas) for each in api.metadata(kind)}


def claiming(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A claim for a GPU, and a pod that has it."""
    exactly = {"deviceClassName": "gpu.nvidia.com", "count": 1}
    claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
    spec = pod(name)["spec"]
    spec["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return claim, {
        "metadata": {"name": name},
        "spec": {**spec, "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]},
    }


def runs(name: str, pods: Mapping[str, dict[str, Any]]) -> bool:
    return is_running(pods[name])


def unready(project: Project) -> list[str]:
    return [each["metadata"]["name"] for each in project.api().list(NODES) if not is_ready(each)]


@versions.needs(*VERSIONS)
def test_minor_version_by_minor_version_all_that_is_in_the_cluster_is_kept(project: Project) -> None:
    oldest, *later = reversed(VERSIONS)
    project.write_stack({**CLUSTER_SPEC, "kubernetesVersion": oldest})
    project.up()
    api = project.api()
    assert api.get("/version")["gitVersion"] == oldest
    claim, with_claim = claiming("training")
    api.create(CLAIMS, claim)
    api.create(PODS, with_claim)
    api.create(PODS, pod("service"))
    api.create(RESEARCH, pod("theirs"))
    api.create(JOBS, job("training", "a100-z-0", 2))
    api.until(PODS, lambda pods: len(pods) == 4 and all(map(is_running, pods.values())))
    allocated = api.get(f"{CLAIMS}/training")["status"]["allocation"]
    before, identity = uids(project), project.identity()
    etcd = project.processes()["quickstart/etcd"]
    assert unready(project) == ["a100-z-3"]

    for version in later:
        project.write_stack({**CLUSTER_SPEC, "kubernetesVersion": version})
        foreseen = project.foresee()
        # The nodes say the new version of their kubelets.
        changed = {step.type: step.changed for step in foreseen.steps if step.op == "update"}
        assert changed.pop(CLUSTER) == {"kubernetesVersion": "update"}
        assert changed == {POOL: {"nodeInfo.kubeletVersion": "update"}}, changed
        assert "what is in the cluster stays" in foreseen.messages["quickstart-control-plane"]
        # Also where nobody sees that: nothing is lost.
        project.up()

        api = project.api()
        assert api.get("/version")["gitVersion"] == version
        assert project.identity() == identity
        assert uids(project) == before
        assert api.get(f"{CLAIMS}/training")["status"]["allocation"] == allocated
        assert project.processes()["quickstart/etcd"] == etcd
        api.until(NODES, lambda nodes: sum(map(is_ready, nodes.values())) == 4)
        assert unready(project) == ["a100-z-3"]
        claim, later_pod = claiming(f"after-{version}")
        api.create(CLAIMS, claim)
        api.create(PODS, later_pod)
        api.until(PODS, partial(runs, f"after-{version}"))
        before = uids(project)
        project.preview("--refresh", "--expect-no-changes")

    # The way back is none that Kubernetes has.
    project.write_stack({**CLUSTER_SPEC, "kubernetesVersion": later[-2] if len(later) > 1 else oldest})
    [step] = [step for step in project.foresee().steps if step.type == CLUSTER]
    assert step.changed == {"kubernetesVersion": "update-replace"}
    project.destroy()
    assert project.processes() == {}


@versions.needs(NEWEST, BEFORE)
@pytest.mark.skipif(not (NEWEST.startswith("v1.37.") and BEFORE.startswith("v1.36.")), reason="of these two versions")
def test_objects_that_the_next_version_cannot_read_are_named_in_the_preview(project: Project) -> None:
    options = {"featureGates": {"GenericWorkload": True}, "runtimeConfig": {"api/all": True}}
    spec = {"nodeGroups": [CLUSTER_SPEC["nodeGroups"][0]], "kwok": options}
    project.write_stack({**spec, "kubernetesVersion": BEFORE})
    project.up()
    running = project.processes()
    gang = {"schedulingPolicy": {"gang": {"minCount": 2}}, "name": "workers"}
    workload = {"metadata": {"name": "training"}, "spec": {"podGroupTemplates": [gang]}}
    project.api().create(WORKLOADS, workload)

    project.write_stack({**spec, "kubernetesVersion": NEWEST})
    for command in (("preview",), ("up", "--yes", "--skip-preview")):
        refused = project.pulumi(*command)
        assert refused.code != 0
        assert "objects of scheduling.k8s.io/v1alpha2 (workloads: 1)" in refused.text
        assert "kubectl delete workloads.v1alpha2.scheduling.k8s.io --all --all-namespaces" in refused.text
        assert project.processes() == running
    project.kubectl("delete", "workloads.v1alpha2.scheduling.k8s.io", "--all", "--all-namespaces")
    before = project.node_uids()
    project.up()
    assert project.api().get("/version")["gitVersion"] == NEWEST
    assert project.node_uids() == before
