"""Tenants of a real cluster: what each may do with the kubeconfig it was given, and what it may not."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.api import Api, Object, Refused
from tests.support.project import NODES, Project, node_group

pytestmark = pytest.mark.e2e

GPU = "nvidia.com/gpu"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER: dict[str, Any] = {
    "nodeGroups": [node_group("a100", 4, cpu="96", memory="1360Gi", gpus=8)],
    "tenants": [
        {
            "name": "research",
            "quota": {f"requests.{GPU}": 16, "pods": 3, "count/jobs.batch": 1},
            "rules": [{"apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups"], "verbs": ["get", "list"]}],
        },
        {"name": "search", "namespace": "search-prod", "role": "view", "readNodes": False},
    ],
}


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def pod(name: str, gpus: int, **spec: Any) -> Object:
    resources = {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    container = {"name": "c", "image": "none", "resources": resources}
    tolerations = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
    return {"metadata": {"name": name}, "spec": {"containers": [container], "tolerations": tolerations, **spec}}


def kubeconfig(project: Project, tenant: str) -> str:
    result = project.pulumi("stack", "output", "tenants", "--json", "--show-secrets")
    assert result.code == 0, result.text
    found: str = json.loads(result.stdout)[tenant]["kubeconfig"]
    return found


@contextmanager
def acting_as(project: Project, tenant: str) -> Iterator[Api]:
    api = Api(kubeconfig(project, tenant))
    yield api
    api.close()


def status(verb: str, api: Api, path: str, body: Object | None = None) -> int:
    """The status of a refusal; 200 where there is none."""
    try:
        api.request(verb, path, body)
    except Refused as refused:
        return refused.status
    return 200


@pytest.fixture(scope="module")
def shared(module_project: Project) -> Project:
    module_project.write_stack(CLUSTER, stack="shared")
    module_project.up()
    return module_project


def test_a_tenant_uses_its_namespace_within_its_quota_and_not_past_it(shared: Project) -> None:
    with acting_as(shared, "research") as research:
        research.create(pods("research"), pod("one", 8))
        research.create(pods("research"), pod("two", 8))
        with pytest.raises(Refused, match=r"exceeded quota: .*requests.nvidia.com/gpu"):
            research.create(pods("research"), pod("three", 1))
        research.create(pods("research"), pod("idle", 0))
        with pytest.raises(Refused, match=r"exceeded quota: .*pods=1.*limited: pods=3"):
            research.create(pods("research"), pod("four", 0))
        jobs = "/apis/batch/v1/namespaces/research/jobs"
        template = {"spec": {**pod("j", 0)["spec"], "restartPolicy": "Never"}}
        research.create(jobs, {"metadata": {"name": "first"}, "spec": {"template": template, "suspend": True}})
        with pytest.raises(Refused, match=r"exceeded quota: .*count/jobs.batch"):
            research.create(jobs, {"metadata": {"name": "second"}, "spec": {"template": template}})
        running = {"one", "two", "idle"}
        found = research.until(
            pods("research"),
            lambda state: {name for name, each in state.items() if each["status"].get("phase") == "Running"} == running,
            timeout=60,
        )
        assert {each["spec"]["nodeName"].rpartition("-")[0] for each in found.values()} == {"a100-z"}
        less = {**CLUSTER["tenants"][0], "quota": {f"requests.{GPU}": 8, "pods": 3, "count/jobs.batch": 1}}
        shared.write_stack({**CLUSTER, "tenants": [less, CLUSTER["tenants"][1]]})
        said = f"more than 8 requests.{GPU} (16) in use; what runs stays, and nothing new is admitted"
        assert said in shared.preview().text
        shared.write_stack(CLUSTER)
        for name in running:
            research.delete(f"{pods('research')}/{name}?gracePeriodSeconds=0")


def test_a_tenant_has_no_right_outside_its_namespace_but_to_look_at_nodes(shared: Project) -> None:
    admin = shared.api()
    with acting_as(shared, "research") as research, acting_as(shared, "search") as search:
        assert len(research.list(NODES)) == 4
        refused: list[tuple[str, str, Object | None]] = [
            ("POST", pods("search-prod"), pod("intruder", 0)),
            ("GET", pods("search-prod"), None),
            ("GET", "/api/v1/pods", None),
            ("GET", "/api/v1/secrets", None),
            ("GET", "/api/v1/namespaces/search-prod/secrets", None),
            ("GET", "/api/v1/namespaces/kube-system/configmaps", None),
            ("DELETE", f"{NODES}/a100-z-0", None),
            ("POST", "/api/v1/namespaces", {"metadata": {"name": "more"}}),
            ("DELETE", "/api/v1/namespaces/search-prod", None),
            ("GET", f"{RBAC}/clusterroles", None),
            # Its own limits are not its own to lift.
            ("DELETE", "/api/v1/namespaces/research/resourcequotas/kumulus-tenant", None),
            (
                "POST",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/research/rolebindings",
                {"metadata": {"name": "x"}},
            ),
        ]
        for verb, path, body in refused:
            assert status(verb, research, path, body) == 403, path
        assert status("GET", search, pods("search-prod")) == 200
        assert status("POST", search, pods("search-prod"), pod("writer", 0)) == 403, "it may only look"
        assert status("GET", search, NODES) == 403, "its stack file says so"
        assert not admin.list(pods("search-prod"))
        with pytest.raises(Refused, match=r"403.*violates PodSecurity \\\"baseline"):
            research.create(pods("research"), pod("host", 0, hostNetwork=True))


def test_credentials_are_secrets_and_nothing_is_left_to_do(shared: Project) -> None:
    token = kubeconfig(shared, "research").partition("token: ")[2].split()[0]
    assert len(token) > 500
    assert not list((shared.pulumi_home / "plugins").glob("resource-kubernetes-*")), "tenants need no other plugin"
    for form in (token, base64.b64encode(token.encode()).decode()):
        assert form not in shared.backend_file().read_text()
    assert "[secret]" in shared.pulumi("stack", "output", "tenants").stdout
    assert token not in shared.pulumi("stack", "output", "tenants", "--json").stdout
    shared.preview("--refresh", "--expect-no-changes")


def test_what_was_taken_away_by_hand_comes_back(shared: Project) -> None:
    admin = shared.api()
    quota = "/api/v1/namespaces/research/resourcequotas/kumulus-tenant"
    admin.delete(quota)
    admin.merge("/api/v1/namespaces/search-prod", {"metadata": {"labels": {"kumulus.io/tenant": None}}})
    assert 'drift.labels["kumulus.io/tenant"]' in shared.preview("--refresh", "--diff", "--json").stdout.replace(
        "\\", ""
    )
    binding = f"{RBAC}/namespaces/search-prod/rolebindings/kumulus-tenant-view"
    before = admin.get(binding)
    # As by hand: a binding's role cannot be changed, so that it is made again.
    admin.delete(binding)
    admin.create(binding.rpartition("/")[0], {
        "metadata": {"name": "kumulus-tenant-view", "labels": before["metadata"]["labels"]},
        "roleRef": {**before["roleRef"], "name": "admin"}, "subjects": before["subjects"],
    })  # fmt: skip
    shared.up("--refresh")
    assert admin.get(binding)["roleRef"] == before["roleRef"]
    assert admin.get(quota)["spec"]["hard"] == {f"requests.{GPU}": "16", "pods": "3", "count/jobs.batch": "1"}
    assert admin.get("/api/v1/namespaces/search-prod")["metadata"]["labels"]["kumulus.io/tenant"] == "search"


def test_a_credential_is_taken_back_and_a_role_changed_in_place(shared: Project) -> None:
    old = Api(kubeconfig(shared, "research"))
    uid = shared.api().get("/api/v1/namespaces/research")["metadata"]["uid"]
    tenants = [{**CLUSTER["tenants"][0], "credential": 2, "role": "view"}, CLUSTER["tenants"][1]]
    shared.write_stack({**CLUSTER, "tenants": tenants})
    shared.up()
    # An API server keeps the answer about a token for 10 s: TokenSuccessCacheTTL in k8s.io/kubernetes
    # pkg/kubeapiserver/options/authentication.go.
    deadline = time.monotonic() + 15
    while status("GET", old, pods("research")) != 401:
        assert time.monotonic() < deadline, "the last credential is still good"
        time.sleep(0.5)
    old.close()
    with acting_as(shared, "research") as research:
        assert status("GET", research, pods("research")) == 200
        assert status("POST", research, pods("research"), pod("late", 0)) == 403
    assert shared.api().get("/api/v1/namespaces/research")["metadata"]["uid"] == uid


def test_somebody_elses_namespace_is_refused_before_an_update(shared: Project) -> None:
    shared.api().create("/api/v1/namespaces", {"metadata": {"name": "taken"}})
    shared.write_stack({**CLUSTER, "tenants": [*CLUSTER["tenants"], {"name": "taken"}]})
    result = shared.pulumi("preview")
    assert result.code != 0
    assert "the namespace taken is there already and was made by somebody else" in result.text
    assert "write another `namespace:` for the tenant" in result.text
    assert "Traceback" not in result.text
    assert shared.api().get("/api/v1/namespaces/taken")


def test_a_tenant_that_goes_leaves_nothing(shared: Project) -> None:
    shared.write_stack({**CLUSTER, "tenants": CLUSTER["tenants"][1:]})
    shared.up()
    admin = shared.api()
    assert {"search-prod", "taken"} <= {each["name"] for each in admin.metadata("/api/v1/namespaces")}
    assert status("GET", admin, "/api/v1/namespaces/research") == 404
    for kind in ("clusterroles", "clusterrolebindings"):
        names = {each["name"] for each in admin.metadata(f"{RBAC}/{kind}")}
        assert "kumulus:research:nodes" not in names
    shared.destroy()
    assert shared.processes() == {}
