"""Tenants in a stack file: what a quota can limit, whose a namespace may be, and what rights may not say."""

from typing import Any

import jq
import pytest

from kumulus.kwok.fault_stages import pod_stages
from kumulus.kwok.lifecycle_states import condition
from kumulus.model.fault_effects import PodEffects
from kumulus.model.lifecycles import PodSelection
from kumulus.model.owner_kinds import OWNER_KINDS, is_of
from kumulus.model.quotas import is_counted, over
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.tenants import TenantSpec
from tests.support.said import problems_of

BATCH = "batch/v1"
KINDS = (*OWNER_KINDS, "StatefulSet")
# A pod's owner, the labels its operator gives it, and the one kind of KINDS that it belongs to.
PODS = [
    (BATCH, "Job", {}, "Job"),
    (BATCH, "Job", {"jobset.sigs.k8s.io/jobset-name": "a"}, "JobSet"),
    ("kubeflow.org/v2beta1", "MPIJob", {}, "MPIJob"),
    (BATCH, "Job", {"training.kubeflow.org/operator-name": "mpi-operator"}, "MPIJob"),
    ("kubeflow.org/v1", "MPIJob", {"training.kubeflow.org/operator-name": "mpijob-controller"}, "MPIJob"),
    ("kubeflow.org/v1", "PyTorchJob", {"training.kubeflow.org/operator-name": "pytorchjob-controller"}, "PyTorchJob"),
    ("ray.io/v1", "RayCluster", {"ray.io/cluster": "a"}, "RayJob"),
    # The pod that submits a RayJob.
    (BATCH, "Job", {"ray.io/cluster": "a"}, "RayJob"),
    ("batch.volcano.sh/v1alpha1", "Job", {}, "VolcanoJob"),
    ("apps/v1", "StatefulSet", {}, "StatefulSet"),
    ("apps/v1", "ReplicaSet", {}, None),
]


def read(*tenants: dict[str, Any]) -> list[TenantSpec]:
    return ClusterSpec.checked({"tenants": list(tenants)}).tenants


def told(*tenants: dict[str, Any]) -> dict[str, str]:
    return problems_of(read, *tenants, under="tenants")


def test_a_tenants_namespace_has_its_name_unless_it_has_another() -> None:
    tenants = read({"name": "research"}, {"name": "search", "namespace": "search-prod"})
    assert [each.home for each in tenants] == ["research", "search-prod"]


COUNTED = (
    *("requests.nvidia.com/gpu", "pods", "services.loadbalancers", "count/jobs.batch", "count/configmaps"),
    *("count/jobs.batch.volcano.sh", "gold.storageclass.storage.k8s.io/persistentvolumeclaims"),
    "gpu.nvidia.com.deviceclass.resource.k8s.io/devices",
)
MEASURED = (
    *("requests.cpu", "limits.memory", "cpu", "requests.storage", "hugepages-2Mi", "requests.hugepages-1Gi"),
    "gold.storageclass.storage.k8s.io/requests.storage",
)


@pytest.mark.parametrize("name", [*COUNTED, *MEASURED])
def test_whatever_a_resource_quota_knows_can_be_limited(name: str) -> None:
    assert read({"name": "a", "quota": {name: 3}})[0].quota == {name: "3"}
    assert is_counted(name) is (name in COUNTED)
    assert bool(told({"name": "a", "quota": {name: "1.5"}})) is (name in COUNTED)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nvidia.com/gpu", "requests.nvidia.com/gpu"),
        ("limits.nvidia.com/gpu", "requests.nvidia.com/gpu"),
        ("GPUs", "requests.nvidia.com/gpu"),
        ("jobs", "count/jobs.batch"),
        ("Deployments", "count/deployments.apps"),
        ("request.cpu", "requests.cpu"),
        ("pod", "pods"),
        ("count/Jobs", "pods"),
    ],
)
def test_what_a_quota_does_not_know_would_limit_nothing_and_is_refused(name: str, meant: str) -> None:
    [(path, text)] = told({"name": "a", "quota": {name: 1}}).items()
    assert path.startswith("[0].quota")
    assert "is nothing that a ResourceQuota limits" in text
    assert f"write {meant}" in text or f"write a name such as {meant}" in text


def test_every_mistake_is_told_at_once() -> None:
    found = told(
        {"name": "a", "quota": {"requests.nvidia.com/gpu": "0.5", "memory": "1Gib"}, "credential": 0, "role": "edt"},
        {"name": "kube-system"},
        {"name": "b", "namespace": "a"},
        {"name": "a"},
        {"name": "c", "namespace": "default", "podSecurity": "strict"},
        {"name": "d", "rules": [{"apiGroups": [], "resources": "jobs"}], "labels": {"kumulus.io/tenant": "x"}},
    )
    assert found['[0].quota["requests.nvidia.com/gpu"]'].startswith('"0.5" is not a whole number')
    assert '"1Gib" has a B at its end' in found["[0].quota.memory"]
    assert "less than 1" in found["[0].credential"]
    assert found["[0].role"] == 'is "edt"; write edit'
    assert found["[1].name"] == (
        '"kube-system" is a namespace of Kubernetes\' own; write another name, or give the tenant a namespace'
    )
    assert found["[2].namespace"].startswith('is the namespace "a", which tenants[0] already has')
    assert found["[3].name"] == '"a" is already tenants[0].name; write another name'
    assert "Kubernetes' own" in found["[4].namespace"]
    assert 'is "strict"; write restricted' in found["[4].podSecurity"]
    assert found["[5].rules[0].apiGroups"] == "is empty, not a list of texts; write at least one in brackets"
    assert "not a list of texts" in found["[5].rules[0].resources"]
    assert "is missing" in found["[5].rules[0].verbs"]
    assert "kumulus.io/" in found['[5].labels["kumulus.io/tenant"]']
    assert len(found) == 13


@pytest.mark.parametrize("group", ["", "*"])
@pytest.mark.parametrize("resource", ["resourcequotas", "*"])
@pytest.mark.parametrize(("verb", "refused"), [("update", True), ("*", True), ("get", False)])
def test_no_right_lets_a_tenant_lift_its_own_quota(group: str, resource: str, verb: str, refused: bool) -> None:
    rule = {"apiGroups": [group, "batch.volcano.sh"], "resources": [resource], "verbs": ["list", verb]}
    found = told({"name": "a", "rules": [rule]})
    assert bool(found) is refused
    assert not refused or "would let the tenant change its own quota" in found["[0].rules[0]"]
    assert not told({"name": "a", "rules": [{**rule, "apiGroups": ["batch.volcano.sh"]}]})


def pod(version: str, kind: str, labels: dict[str, str]) -> dict[str, Any]:
    owner = {"apiVersion": version, "kind": kind, "name": "a", "controller": True}
    metadata = {"name": "p", "namespace": "default", "uid": "0" * 32, "ownerReferences": [owner]}
    return {"metadata": {**metadata, **({"labels": labels} if labels else {})}}


@pytest.mark.parametrize(("version", "kind", "labels", "belongs"), PODS)
def test_a_pod_belongs_to_the_workload_whose_operator_made_it(
    version: str, kind: str, labels: dict[str, str], belongs: str | None
) -> None:
    made = pod(version, kind, labels)
    selecting = [each for each in KINDS if selects(condition(PodSelection(owner_kinds=(each,))), made)]
    assert selecting == ([belongs] if belongs else [])
    hit = [each for each in KINDS if hits(PodEffects("stuck", owner_kinds=(each,)), made)]
    assert hit == selecting
    assert [each for each in KINDS if is_of(made, each)] == selecting, "a preview counts the pods that are hit"


def test_a_bare_pod_belongs_to_none() -> None:
    bare = {"metadata": {"name": "p", "namespace": "default"}}
    assert not any(selects(condition(PodSelection(owner_kinds=(each,))), bare) for each in KINDS)
    assert not hits(PodEffects("stuck", owner_kinds=KINDS), bare)
    assert not any(is_of(bare, each) for each in KINDS)


def selects(expression: str, made: dict[str, Any]) -> bool:
    found: bool = jq.compile(expression).input_value(made).first()
    return found


def hits(effects: PodEffects, made: dict[str, Any]) -> bool:
    """Whether the last expression of a fault's stage, that of the owners, holds for a pod."""
    (stage,) = pod_stages("x", effects, (), "2026-01-01T00:00:00Z")
    match = stage["spec"]["selector"]["matchExpressions"][-1]
    return jq.compile(match["key"]).input_value(made).first() in match["values"]


def test_what_is_in_use_beyond_a_quota_is_named_whatever_the_amounts_are_written_as() -> None:
    hard: dict[str, str | int] = {"requests.cpu": "1500m", "pods": 3, "requests.memory": "1Gi", "services": 0}
    used = {"requests.cpu": "2", "pods": "3", "requests.memory": "2048Mi"}
    assert over(hard, used) == ["more than 1500m requests.cpu (2)", "more than 1Gi requests.memory (2048Mi)"]
