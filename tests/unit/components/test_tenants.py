"""Tenants under Pulumi's mocks: what each gets, in which order it comes and goes, and what its kubeconfig says."""

import base64
import json
from typing import Any

import pulumi
import pytest
import yaml

from kumulus import EmulatedCluster, KwokCluster, Tenant
from kumulus.components.tenant import ACCOUNT, kubeconfig
from kumulus.provider.resources.kubernetes_object import TOKEN
from kumulus.stackfile.load import load
from tests.support.program import CLUSTER, KUBECONFIG, OBJECT, STACK_ID, Program, run
from tests.support.project import ROOT

NAMESPACE = "kumulus:index:Namespace"
RULE = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get", "create"]}
RESEARCH: dict[str, Any] = {
    "name": "research",
    "namespace": "research-prod",
    "quota": {"requests.nvidia.com/gpu": "16", "pods": 50},
    "rules": [RULE],
    "credential": 3,
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


@pytest.mark.parametrize(
    ("second", "named"),
    [({"namespace": "research"}, "namespace"), ({"tenant_name": "research"}, "tenant_name")],
)
def test_two_tenants_of_a_program_are_not_in_one_namespace(second: dict[str, Any], named: str) -> None:
    def program() -> None:
        cluster = EmulatedCluster("dev", spec={"tenants": [{"name": "first"}]})
        Tenant("research", cluster=cluster)
        Tenant("elsewhere", cluster=KwokCluster("other"), tenant_name="research")
        Tenant("two", cluster=cluster, **second)
        Tenant("first", cluster=cluster)

    with pytest.raises(pulumi.RunError) as raised:
        run(program, preview=True)
    found = {"two": (named, "research", "research"), "first": ("resource_name", "first", "first")}
    assert str(raised.value) == "\n".join(
        f"1 problem in Tenant {name}\n  {argument}: is the namespace {json.dumps(namespace)}, which Tenant {other} "
        "already has; write another namespace: a quota is for one tenant"
        for name, (argument, namespace, other) in found.items()
    )


def test_its_quota_and_its_rights_end_at_the_border_of_the_namespace() -> None:
    program = made(RESEARCH)
    [quota] = program.of_kind("ResourceQuota")
    assert quota["spec"] == {"hard": {"requests.nvidia.com/gpu": "16", "pods": "50"}}
    assert quota["metadata"]["namespace"] == "research-prod"
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "research-prod"}]
    bindings = program.of_kind("RoleBinding")
    assert {each["roleRef"]["name"] for each in bindings} == {"edit", f"{ACCOUNT}-rules"}
    for binding in bindings:
        assert binding["metadata"]["namespace"] == "research-prod"
        assert binding["subjects"] == subjects
    assert [each["rules"] for each in program.of_kind("Role")] == [[RULE]]
    [nodes] = program.of_kind("ClusterRole")
    assert "namespace" not in nodes["metadata"]
    assert nodes["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    assert [each["subjects"] for each in program.of_kind("ClusterRoleBinding")] == [subjects]


def test_what_a_tenant_does_not_ask_for_is_not_there() -> None:
    program = made({"name": "a", "readNodes": False, "role": "view"})
    for kind in ("ResourceQuota", "Role", "ClusterRole", "ClusterRoleBinding"):
        assert program.of_kind(kind) == []
    assert [each["roleRef"]["name"] for each in program.of_kind("RoleBinding")] == ["view"]
    assert not [each for each in made().resources if "Tenant" in each.type]


def test_everything_in_a_namespace_waits_for_it_and_goes_with_the_cluster() -> None:
    program = made(RESEARCH)
    inside = [each for each in program.resources if each.parent == "kumulus:index:Tenant::research"]
    inside = [each for each in inside if each.type != NAMESPACE]
    assert len(inside) == 8
    for each in inside:
        assert f"{NAMESPACE}::research-tenant-namespace" in each.depends_on, each.type
        assert each.deleted_with == f"{CLUSTER}::dev-control-plane"
        assert each.type == OBJECT, "no other plugin is needed"


def test_a_token_waits_for_all_rights_of_its_tenant() -> None:
    waits = {each.name: {name.rpartition("::")[2] for name in each.depends_on} for each in made(RESEARCH).resources}
    bindings = {"research-tenant-edit", "research-tenant-rules", "research-tenant-nodes-binding"}
    assert bindings <= waits["research-tenant-token"]
    assert "research-tenant-role" in waits["research-tenant-rules"]
    assert "research-tenant-nodes" in waits["research-tenant-nodes-binding"]


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [("Research", {}, "resource_name"), ("research", {"tenant_name": "Research"}, "tenant_name")],
)
def test_a_mistake_in_a_tenants_name_is_said_of_the_argument_that_has_it(
    name: str, arguments: dict[str, Any], named: str
) -> None:
    def program() -> None:
        Tenant(name, cluster=KwokCluster("dev"), **arguments)

    with pytest.raises(pulumi.RunError, match=rf"\n  {named}: "):
        run(program, preview=True)


def test_another_credential_or_role_is_another_object_as_neither_can_be_changed() -> None:
    def names(kind: str, tenant: dict[str, Any]) -> set[str]:
        return {each["metadata"]["name"] for each in made(tenant).of_kind(kind)}

    secret, binding = "Secret", "RoleBinding"
    assert names(secret, RESEARCH) == {f"{ACCOUNT}-3"}
    assert names(secret, RESEARCH) != names(secret, {**RESEARCH, "credential": 4})
    assert names(binding, RESEARCH) != names(binding, {**RESEARCH, "role": "view"})


def test_the_token_is_the_service_accounts_and_a_preview_does_not_know_it() -> None:
    program = made(RESEARCH, preview=True)
    [secret] = program.of_kind("Secret")
    assert secret["type"] == TOKEN
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": ACCOUNT}
    hidden = {each.name: each.secret_outputs for each in program.resources if each.secret_outputs}
    assert hidden == {"research-tenant-token": {"data"}}


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
