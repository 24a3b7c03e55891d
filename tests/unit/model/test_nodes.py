"""The Node objects that are posted, and what of them is ours."""

import ipaddress
from dataclasses import replace
from typing import Any

import pytest

from kumulus.model.nodes import declared_features, internal_ip, node_manifest, owned_fields
from kumulus.model.pools import NodeInfo, Pool, Taint
from kumulus.stackfile.expand import system_pool

NOW = "2026-01-31T12:00:00Z"
POOL = Pool(
    name="a100-use1",
    group="a100",
    zone="use1",
    region="",
    replicas=3,
    labels={"team": "search", "kumulus.io/pool": "a100-use1", "kumulus.io/cluster": "dev"},
    annotations={"note": "x"},
    taints=(Taint("dedicated", "", "NoSchedule"),),
    capacity={"cpu": "96", "pods": "110"},
    allocatable={"cpu": "95", "pods": "110"},
    node_info=NodeInfo("arm64", "linux", "fake"),
)


def manifest(pool: Pool = POOL, ordinal: int = 2) -> dict[str, Any]:
    return node_manifest(pool, ordinal, NOW)


def test_a_node_is_posted_ready_with_every_condition_of_a_kubelet() -> None:
    conditions = {each["type"]: each for each in manifest()["status"]["conditions"]}
    assert {kind: each["status"] for kind, each in conditions.items()} == {
        "Ready": "True",
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "NetworkUnavailable": "False",
    }
    assert conditions["Ready"]["reason"] == "KubeletReady"
    for condition in conditions.values():
        assert condition["lastHeartbeatTime"] == condition["lastTransitionTime"] == NOW
        assert condition["reason"]
        assert condition["message"]


def test_a_node_carries_its_pools_labels_its_host_name_and_its_cluster() -> None:
    node = manifest()
    assert node["metadata"]["name"] == "a100-use1-2"
    assert node["metadata"]["labels"] == {
        "kubernetes.io/hostname": "a100-use1-2",
        "team": "search",
        "kumulus.io/cluster": "dev",
        "kumulus.io/pool": "a100-use1",
    }


def test_a_templates_host_name_wins_but_its_identity_does_not() -> None:
    pool = replace(POOL, labels={**POOL.labels, "kubernetes.io/hostname": "h", "kumulus.io/pool": "x"})
    assert manifest(pool)["metadata"]["labels"] == {**POOL.labels, "kubernetes.io/hostname": "h"}


def test_kwok_plays_the_kubelet_whatever_the_template_says() -> None:
    annotations = manifest(replace(POOL, annotations={"kwok.x-k8s.io/node": "real"}))["metadata"]["annotations"]
    assert annotations == {
        "kwok.x-k8s.io/node": "fake",
        "node.alpha.kubernetes.io/ttl": "0",
        "metrics.k8s.io/resource-metrics-path": "/metrics/nodes/a100-use1-2/metrics/resource",
    }


def test_taints_are_written_without_empty_values_and_left_out_when_there_are_none() -> None:
    assert manifest()["spec"] == {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}
    assert manifest(replace(POOL, taints=()))["spec"] == {}


def test_node_info_is_whole_and_always_the_same() -> None:
    info = manifest()["status"]["nodeInfo"]
    assert info == manifest()["status"]["nodeInfo"]
    assert (info["architecture"], info["operatingSystem"], info["kubeletVersion"]) == ("arm64", "linux", "fake")
    assert info["containerRuntimeVersion"] == "kwok"
    assert info["kubeProxyVersion"] == ""
    assert len({info["machineID"], info["systemUUID"], info["bootID"]}) == 3
    assert info["machineID"] != manifest(ordinal=1)["status"]["nodeInfo"]["machineID"]
    elsewhere = replace(POOL, labels={"kumulus.io/cluster": "other"})
    assert info["machineID"] != manifest(elsewhere)["status"]["nodeInfo"]["machineID"]


def test_addresses_are_nobodys() -> None:
    for address in (ipaddress.ip_address(internal_ip(f"pool-{pool}", 7)) for pool in range(2000)):
        assert address in ipaddress.ip_network("240.0.0.0/8")
        assert address.is_reserved
        assert 0 < int(address) % 256 < 255


def test_nodes_of_a_pool_never_share_an_address() -> None:
    assert len({internal_ip("a100-use1", ordinal) for ordinal in range(100_000)}) == 100_000


def test_the_node_reports_its_address_and_name_and_leaves_its_kubelet_to_the_runtime() -> None:
    status = manifest()["status"]
    assert status["addresses"] == [
        {"type": "InternalIP", "address": internal_ip("a100-use1", 2)},
        {"type": "Hostname", "address": "a100-use1-2"},
        {"type": "InternalDNS", "address": "localhost"},
    ]
    assert "daemonEndpoints" not in status
    assert status["phase"] == "Running"
    assert "providerID" not in manifest()["spec"]


def test_what_is_posted_is_what_is_owned_and_nothing_of_others() -> None:
    node, owned = manifest(), owned_fields(POOL, 2)
    assert node["metadata"]["labels"] == owned.labels
    assert node["status"]["capacity"] == owned.capacity == {"cpu": "96", "pods": "110"}
    assert node["status"]["allocatable"] == owned.allocatable == {"cpu": "95", "pods": "110"}
    assert owned.taints == POOL.taints
    assert owned.node_info == {"architecture": "arm64", "operatingSystem": "linux", "kubeletVersion": "fake"}
    # The controller manager changes it as the cluster grows: owning it would be a drift that never ends.
    assert "node.alpha.kubernetes.io/ttl" not in owned.annotations
    assert set(node["metadata"]["annotations"]) - set(owned.annotations) == {"node.alpha.kubernetes.io/ttl"}


def test_the_system_pool_takes_any_pod_and_is_shown_with_its_role() -> None:
    pool = system_pool("dev", "v1.37.2")
    node = manifest(pool, 0)
    assert (pool.name, pool.replicas, pool.zone) == ("system", 2, "")
    assert node["spec"] == {}
    assert node["metadata"]["labels"]["node-role.kubernetes.io/system"] == ""
    assert node["metadata"]["labels"]["kumulus.io/group"] == "system"
    assert node["status"]["allocatable"] == {"cpu": "64", "memory": "256Gi", "pods": "110"}


@pytest.mark.parametrize(
    ("version", "declares"),
    [("v1.35.4", False), ("v1.36.3", True), ("v1.37.2", True), ("1.40", True), ("fake", False), ("", False)],
)
def test_a_node_declares_the_features_of_its_kubelets_version(version: str, declares: bool) -> None:
    pool = replace(POOL, node_info=NodeInfo(kubelet_version=version))
    found = declared_features(owned_fields(pool, 0))
    assert ("RestartAllContainersOnContainerExits" in found) == declares


def test_a_node_declares_the_features_that_its_pool_names_instead() -> None:
    recent = replace(POOL, node_info=NodeInfo(kubelet_version="v1.37.2"))
    assert manifest(replace(recent, declared_features=("A", "B")))["status"]["declaredFeatures"] == ["A", "B"]
    assert "declaredFeatures" not in manifest(replace(recent, declared_features=()))["status"]
