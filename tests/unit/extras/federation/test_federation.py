"""What makes a hub and its workers: the rights that a hub has in a worker, and what refers to what."""

from __future__ import annotations

import base64
import json
from typing import Any

from kumulus.extras.federation import federation
from kumulus.extras.federation.declared import label
from kumulus.extras.federation.federation import Queue
from kumulus.stackfile.groups import KWOK_TAINT

QUEUE = Queue("research", ("default", "team"), {"cpu": "8", "memory": "16Gi"})


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
    assert queue["resourceGroups"] == [
        {
            "coveredResources": ["cpu", "memory"],
            "flavors": [
                {
                    "name": "research",
                    "resources": [
                        {"name": "cpu", "nominalQuota": "8"},
                        {"name": "memory", "nominalQuota": "16Gi"},
                    ],
                }
            ],
        }
    ]
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
