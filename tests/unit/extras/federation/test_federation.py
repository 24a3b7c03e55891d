"""What makes a hub and its workers: the rights that a hub has in a worker, and what refers to what."""

import base64
import json
from typing import Any

import pytest

from kumulus.extras.federation import declared, federation
from kumulus.extras.federation.declared import label
from kumulus.extras.federation.federation import Queue
from kumulus.kube import ApiError
from kumulus.model.identity import STACK_ID, Owner
from kumulus.nodes.errors import ProviderError
from kumulus.stackfile.groups import KWOK_TAINT

QUEUE = Queue("research", ("default", "team"), {"cpu": "8", "memory": "16Gi"})
MINE, OTHER = Owner("1" * 32, "organization/p/dev"), Owner("2" * 32, "organization/p/other")
PATH = "/apis/k.io/v1/queues/a"


def by_name(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {label(each): each for each in manifests}
    assert len(found) == len(manifests)
    return found


def test_a_hub_watches_a_workers_jobs_and_changes_them_where_the_queue_is_and_has_no_other_right() -> None:
    made = by_name(federation.worker("many-hub", QUEUE))
    rights = {
        (name, group, resource): set(rule["verbs"])
        for name, each in made.items()
        for rule in each.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    seen = {"get", "list", "watch"}
    everywhere = "ClusterRole multikueue-many-hub"
    assert rights == {
        (everywhere, "batch", "jobs"): seen,
        (everywhere, "kueue.x-k8s.io", "workloads"): seen,
        (everywhere, "kueue.x-k8s.io", "clusterqueues"): seen,
        (everywhere, "kueue.x-k8s.io", "localqueues"): seen,
        **{
            (f"Role {namespace}/multikueue-many-hub", group, resource): verbs
            for namespace in QUEUE.namespaces
            for (group, resource), verbs in {
                ("batch", "jobs"): {"create", "delete"},
                ("batch", "jobs/status"): {"get"},
                ("kueue.x-k8s.io", "workloads"): {"create", "delete", "update", "patch"},
                ("kueue.x-k8s.io", "workloads/status"): {"get", "update", "patch"},
            }.items()
        },
    }
    for name in (everywhere, *(f"Role {namespace}/multikueue-many-hub" for namespace in QUEUE.namespaces)):
        binding = made[name.replace("Role", "RoleBinding")]
        assert binding["roleRef"]["kind"] == name.split()[0]
        (subject,) = binding["subjects"]
        assert f"ServiceAccount {subject['namespace']}/{subject['name']}" in made


def test_a_hub_refers_to_each_workers_kubeconfig_and_its_queue_to_the_check() -> None:
    made = by_name(federation.hub({"west": "one", "east": "two"}, QUEUE))
    for name, text in (("west", "one"), ("east", "two")):
        source = made[f"MultiKueueCluster {name}"]["spec"]["clusterSource"]["kubeConfig"]
        secret = made[f"Secret kueue-system/{source['location']}"]
        assert base64.b64decode(secret["data"]["kubeconfig"]).decode() == text
    assert made["MultiKueueConfig research"]["spec"] == {"clusters": ["east", "west"]}
    check = made["AdmissionCheck research"]["spec"]
    assert (check["controllerName"], check["parameters"]["name"]) == ("kueue.x-k8s.io/multikueue", "research")
    queue = made["ClusterQueue research"]["spec"]
    assert queue["admissionChecksStrategy"] == {"admissionChecks": [{"name": "research"}]}
    amounts = [{"name": "cpu", "nominalQuota": "8"}, {"name": "memory", "nominalQuota": "16Gi"}]
    flavor = {"name": "research", "resources": amounts}
    assert queue["resourceGroups"] == [{"coveredResources": ["cpu", "memory"], "flavors": [flavor]}]
    local = {name for name in made if name.startswith("LocalQueue")}
    assert local == {"LocalQueue default/research", "LocalQueue team/research"}


def test_mappings_in_another_order_are_the_same_hub() -> None:
    """Pulumi's engine keeps none: what is compared with the cluster may come in another one each time."""
    turned = Queue(QUEUE.name, QUEUE.namespaces, dict(reversed(list(QUEUE.quota.items()))))
    assert federation.hub({"a": "1", "b": "2"}, QUEUE) == federation.hub({"b": "2", "a": "1"}, turned)


def test_a_workers_queue_asks_nobody_else_and_its_jobs_may_be_on_emulated_nodes() -> None:
    made = by_name(federation.worker("many-hub", QUEUE))
    (tolerated,) = made["ResourceFlavor research"]["spec"]["tolerations"]
    assert (tolerated["key"], tolerated["effect"]) == (KWOK_TAINT.key, KWOK_TAINT.effect)
    assert "admissionChecksStrategy" not in made["ClusterQueue research"]["spec"]


def test_a_queue_without_a_quota_says_so_so_that_one_that_had_a_quota_loses_it() -> None:
    made = by_name(federation.worker("hub", Queue(QUEUE.name, QUEUE.namespaces, {})))
    assert made["ClusterQueue research"]["spec"]["resourceGroups"] == []


def test_a_kubeconfig_has_a_token_and_the_authority_and_nothing_that_kueue_refuses() -> None:
    data = {"token": base64.b64encode(b"secret").decode(), "ca.crt": base64.b64encode(b"pem").decode()}
    found = json.loads(federation.kubeconfig("west", "https://127.0.0.1:1", data))
    assert found["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": data["ca.crt"],
    }
    assert found["users"][0]["user"] == {"token": "secret"}
    assert found["current-context"] == found["contexts"][0]["name"] == "west"


class Server:
    """An API server's objects by address; what is written is kept."""

    def __init__(self, **objects: Any) -> None:
        self.objects: dict[str, dict[str, Any]] = objects
        self.asked: list[str] = []

    async def get(self, path: str, patience: float | None = None) -> Any:
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found", "GET", path)
        return self.objects[path]

    async def create(self, path: str, body: dict[str, Any]) -> None:
        self.asked.append(f"POST {path}")
        self.objects[f"{path}/{body['metadata']['name']}"] = body

    async def write(self, verb: str, path: str, body: dict[str, Any], *, content_type: str = "") -> None:
        self.asked.append(f"{verb} {path}")
        self.objects[path] = body

    async def delete(self, path: str, options: Any = None) -> None:
        self.asked.append(f"DELETE {path}")
        del self.objects[path]


def queue(quota: str = "16Gi", name: str = "a") -> dict[str, Any]:
    resources = [{"name": "memory", "nominalQuota": quota}]
    flavors = [{"name": "a", "resources": resources}]
    return {"apiVersion": "k.io/v1", "kind": "Queue", "metadata": {"name": name}, "spec": {"flavors": flavors}}


async def test_what_is_missing_is_made_with_whose_it_is_and_then_nothing_is_left_to_do() -> None:
    server: Any = Server()
    seen = await declared.look(server, [queue()], MINE)
    assert seen.missing == ["Queue a"]
    await declared.converge(server, [queue()], MINE, seen)
    assert server.objects[PATH]["metadata"]["labels"] == {STACK_ID: MINE.identity}
    again = await declared.look(server, [queue()], MINE, recorded=[PATH])
    assert again.drift() == {}
    server.asked.clear()
    await declared.converge(server, [queue()], MINE, again)
    assert server.asked == []


@pytest.mark.parametrize(
    ("there", "different"),
    [
        ("16Gi", {}),
        ("16384Mi", {}),
        (str(16 * 2**30), {}),
        ("8Gi", {"altered": "Queue a (spec.flavors[0].resources[0].nominalQuota)"}),
    ],
)
async def test_an_amount_in_another_unit_is_no_difference(there: str, different: dict[str, str]) -> None:
    server: Any = Server(**{PATH: {**declared.marked(queue(there), MINE), "status": {"pending": 3}}})
    seen = await declared.look(server, [queue()], MINE, recorded=[PATH])
    assert seen.drift() == different
    await declared.converge(server, [queue()], MINE, seen)
    assert server.asked == ([f"PATCH {PATH}"] if different else [])


async def test_what_the_server_adds_is_no_difference_and_another_list_is() -> None:
    there = declared.marked(queue(), MINE)
    there["spec"] = {**there["spec"], "defaulted": True}
    server: Any = Server(**{PATH: there})
    assert (await declared.look(server, [queue()], MINE, recorded=[PATH])).drift() == {}
    there["spec"]["flavors"] = [*there["spec"]["flavors"], {"name": "b"}]
    assert (await declared.look(server, [queue()], MINE, recorded=[PATH])).altered == {"Queue a": "spec.flavors"}


async def test_a_list_of_which_nothing_is_wanted_any_more_is_emptied() -> None:
    server: Any = Server(**{PATH: declared.marked(queue(), MINE)})
    emptied = {**queue(), "spec": {"flavors": []}}
    seen = await declared.look(server, [emptied], MINE, recorded=[PATH])
    assert seen.altered == {"Queue a": "spec.flavors"}
    await declared.converge(server, [emptied], MINE, seen)
    assert server.objects[PATH]["spec"] == {"flavors": []}
    # The server omits an empty list.
    server.objects[PATH]["spec"] = {}
    assert (await declared.look(server, [emptied], MINE, recorded=[PATH])).drift() == {}


async def test_what_others_have_made_is_refused_and_left_alone() -> None:
    theirs = declared.marked(queue("1Gi"), OTHER)
    server: Any = Server(**{PATH: theirs})
    seen = await declared.look(server, [queue()], MINE, recorded=[PATH])
    with pytest.raises(ProviderError, match="Queue a is there already, and belongs to the stack organization/p/other"):
        await declared.converge(server, [queue()], MINE, seen)
    await declared.remove(server, [PATH], MINE)
    assert server.objects == {PATH: theirs}
    assert server.asked == []


async def test_what_is_wanted_no_more_is_removed() -> None:
    server: Any = Server(**{PATH: declared.marked(queue(), MINE)})
    seen = await declared.look(server, [queue(name="b")], MINE, recorded=[PATH])
    assert (seen.missing, seen.extra) == (["Queue b"], [PATH])
    await declared.converge(server, [queue(name="b")], MINE, seen)
    assert list(server.objects) == ["/apis/k.io/v1/queues/b"]


async def test_a_binding_is_made_anew_since_what_it_refers_to_cannot_change() -> None:
    binding = {"apiVersion": "rbac/v1", "kind": "RoleBinding", "metadata": {"name": "a", "namespace": "n"}}
    path = "/apis/rbac/v1/namespaces/n/rolebindings/a"
    server: Any = Server(**{path: declared.marked({**binding, "roleRef": {"name": "old"}}, MINE)})
    wanted = [{**binding, "roleRef": {"name": "new"}}]
    await declared.converge(server, wanted, MINE, await declared.look(server, wanted, MINE, recorded=[path]))
    assert server.asked == [f"DELETE {path}", f"POST {path.removesuffix('/a')}"]
