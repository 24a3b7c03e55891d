"""Tenants under Pulumi's mocks: what each gets, in which order it comes and goes, and what its kubeconfig says."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from kumulus import EmulatedCluster
from kumulus.components.tenant import ACCOUNT, kubeconfig
from kumulus.model.contents import objects_of
from kumulus.stackfile.load import load
from tests.support.program import CLUSTER, KUBECONFIG, STACK_ID, Program, Registered, run
from tests.support.project import ROOT

LIFETIME, PROVIDER = "kumulus:index:Lifetime", "pulumi:providers:kubernetes"
NAMESPACE = "kumulus:index:Namespace"
CORE, RBAC = "kubernetes:core/v1", "kubernetes:rbac.authorization.k8s.io/v1"
RULE = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get", "create"]}
RESEARCH: dict[str, Any] = {
    "name": "research",
    "namespace": "research-prod",
    "quota": {"requests.nvidia.com/gpu": "16", "pods": 50},
    "rules": [RULE],
    "credential": 3,
}
TEMPLATE = {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}}
GROUP: dict[str, Any] = {
    "name": "a100",
    "placement": [{"availabilityZone": "z", "replicas": 2}],
    "nodeTemplate": TEMPLATE,
    "gpuProduct": "NVIDIA-A100-SXM4-80GB",
    "resourceSlices": {},
}
SELECTED = {"name": "training", "selector": {"labels": {"app": "training"}}}
LIFECYCLE = {**SELECTED, "run": "10m"}
USAGE = {**SELECTED, "cpu": "80%"}
PLURALS = {
    "DeviceClass": "deviceclasses",
    "Stage": "stages",
    "ClusterResourceUsage": "clusterresourceusages",
}


def made(*tenants: dict[str, Any], preview: bool = False) -> Program:
    loaded = load({"cluster": {"tenants": list(tenants)}}, "dev", ROOT)
    return run(lambda: EmulatedCluster("dev", loaded=loaded, base=ROOT), preview=preview)


def test_a_tenant_has_a_namespace_of_the_stacks_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # The mocks have none.
    monkeypatch.setattr(pulumi, "get_organization", lambda: "acme")
    namespace = made(RESEARCH).only(NAMESPACE)
    assert namespace.inputs == {
        "clusterName": "dev",
        "kubeconfig": KUBECONFIG,
        "clusterIdentity": "uid-1",
        "stackId": STACK_ID,
        "name": "research-prod",
        "stack": "acme/kumulus/dev",
        "labels": {
            "pod-security.kubernetes.io/enforce": "baseline",
            "kumulus.io/cluster": "dev",
            "kumulus.io/tenant": "research",
        },
        "annotations": {},
    }
    assert namespace.deleted_with == f"{CLUSTER}::dev-control-plane"


def test_its_quota_and_its_rights_end_at_the_border_of_the_namespace() -> None:
    program = made(RESEARCH)
    quota = program.only(f"{CORE}:ResourceQuota")
    assert quota.inputs["spec"] == {"hard": {"requests.nvidia.com/gpu": "16", "pods": "50"}}
    assert quota.inputs["metadata"]["namespace"] == "research-prod"
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "research-prod"}]
    bindings = program.of_type(f"{RBAC}:RoleBinding").values()
    assert {each.inputs["roleRef"]["name"] for each in bindings} == {"edit", f"{ACCOUNT}-rules"}
    for binding in bindings:
        assert binding.inputs["metadata"]["namespace"] == "research-prod"
        assert binding.inputs["subjects"] == subjects
    assert program.only(f"{RBAC}:Role").inputs["rules"] == [RULE]
    nodes = program.only(f"{RBAC}:ClusterRole").inputs["rules"]
    assert nodes == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    assert program.only(f"{RBAC}:ClusterRoleBinding").inputs["subjects"] == subjects


def test_what_a_tenant_does_not_ask_for_is_not_there() -> None:
    program = made({"name": "a", "readNodes": False, "role": "view"})
    for token in (f"{CORE}:ResourceQuota", f"{RBAC}:Role", f"{RBAC}:ClusterRole", f"{RBAC}:ClusterRoleBinding"):
        assert program.of_type(token) == {}
    assert program.only(f"{RBAC}:RoleBinding").inputs["roleRef"]["name"] == "view"
    assert not [each for each in made().resources if "Tenant" in each.type]


def test_everything_in_a_namespace_waits_for_it_and_goes_with_the_clusters_lifetime() -> None:
    program = made(RESEARCH)
    inside = [each for each in program.resources if each.parent == "kumulus:index:Tenant::research"]
    inside = [each for each in inside if each.type != NAMESPACE]
    assert len(inside) == 8
    for each in inside:
        assert f"{NAMESPACE}::research-tenant-namespace" in each.depends_on, each.type
        assert each.deleted_with == f"{LIFETIME}::dev-lifetime"
        assert each.provider.startswith(f"{PROVIDER}::dev-kubernetes")
        assert not each.delete_before_replace


def test_another_credential_or_role_is_another_object_as_neither_can_be_changed() -> None:
    def names(token: str, tenant: dict[str, Any]) -> set[str]:
        return {each.inputs["metadata"]["name"] for each in made(tenant).of_type(token).values()}

    secret, binding = f"{CORE}:Secret", f"{RBAC}:RoleBinding"
    assert names(secret, RESEARCH) == {f"{ACCOUNT}-3"}
    assert names(secret, RESEARCH) != names(secret, {**RESEARCH, "credential": 4})
    assert names(binding, RESEARCH) != names(binding, {**RESEARCH, "role": "view"})


def test_the_token_is_the_service_accounts_and_a_preview_does_not_know_it() -> None:
    secret = made(RESEARCH, preview=True).only(f"{CORE}:Secret")
    assert secret.inputs["type"] == "kubernetes.io/service-account-token"
    assert secret.inputs["metadata"]["annotations"] == {"kubernetes.io/service-account.name": ACCOUNT}


def test_a_kubeconfig_is_whole_and_leads_to_the_tenants_namespace() -> None:
    data = {"token": base64.b64encode(b"t0ken").decode(), "ca.crt": base64.b64encode(b"CA").decode()}
    document = yaml.safe_load(kubeconfig("research@dev", "research-prod", "https://127.0.0.1:1", data))
    assert document["current-context"] == "research@dev"
    [context], [cluster], [user] = (document[key] for key in ("contexts", "clusters", "users"))
    assert context["context"] == {"cluster": "research@dev", "user": "research@dev", "namespace": "research-prod"}
    assert cluster["cluster"] == {"server": "https://127.0.0.1:1", "certificate-authority-data": data["ca.crt"]}
    assert user["user"] == {"token": "t0ken"}


@pytest.mark.parametrize("data", [None, {}, {"ca.crt": "Q0E="}])
def test_a_secret_without_a_token_is_told_in_words(data: dict[str, str] | None) -> None:
    with pytest.raises(pulumi.RunError, match="the cluster wrote no token into its Secret"):
        kubeconfig("a@dev", "a", "https://127.0.0.1:1", data)


def path_of(resource: Registered) -> str:
    """Where the API server has an object without a namespace."""
    kind = resource.inputs["kind"]
    return f"/apis/{resource.inputs['apiVersion']}/{PLURALS[kind]}/{resource.inputs['metadata']['name']}"


@pytest.mark.parametrize("runtime", ["existing", "kwok", "kind"])
def test_the_paths_are_those_of_what_is_declared_and_given_only_where_others_can_be(
    runtime: str, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("clusters: []\nusers: []\n")
    where = {"existing": {"kubeconfig": str(file)}} if runtime == "existing" else {}
    cluster = {"runtime": runtime, **where, "nodeGroups": [GROUP], "podLifecycles": [LIFECYCLE], "podUsage": [USAGE]}
    program = run(lambda: EmulatedCluster("dev", loaded=load({"cluster": cluster}, "dev", ROOT), base=ROOT))
    # KWOK's own stages are not shared: their names end in the stack's.
    objects = [path_of(each) for each in program.resources if each.inputs.get("kind") in PLURALS]
    declared = {path for path in objects if not path.endswith("-dev")}
    assert {path.split("/")[-2] for path in declared} == set(PLURALS.values())
    paths = objects_of(program.only(CLUSTER).inputs["contents"])
    assert paths == (declared if runtime == "existing" else None)
