"""From groups and placements to pools with their labels."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.model.nodes import node_manifest
from kumulus.model.pool_form import pool_from_properties, pool_to_properties
from kumulus.model.pools import NodeInfo, Pool
from kumulus.stackfile.expand import pools
from kumulus.stackfile.groups import region_of
from kumulus.stackfile.model import ClusterSpec


def expand(zone: str = "use1", region: str | None = None, **template: Any) -> Pool:
    placement = {"availabilityZone": zone, "replicas": 2, "region": region}
    node = {"capacity": {"cpu": 96, "pods": 110}, **template}
    raw = {"nodeGroups": [{"name": "a100", "placement": [placement], "nodeTemplate": node}]}
    return pools(ClusterSpec.checked(raw), "dev")[0]


def test_there_is_a_pool_per_group_and_zone_in_the_order_of_the_file() -> None:
    zones = [{"availabilityZone": zone, "replicas": count} for zone, count in (("use2", 3), ("use1", 1))]
    groups = [{"name": name, "placement": zones, "nodeTemplate": {"capacity": {"pods": 1}}} for name in ("b", "a")]
    found = pools(ClusterSpec.checked({"nodeGroups": groups}), "dev")
    assert [(pool.name, pool.replicas) for pool in found] == [
        ("b-use2", 3),
        ("b-use1", 1),
        ("a-use2", 3),
        ("a-use1", 1),
    ]
    assert found[0].node_names() == ["b-use2-0", "b-use2-1", "b-use2-2"]


def test_every_node_carries_the_labels_of_the_design() -> None:
    assert expand(zone="us-east1-b").labels == {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/role": "agent",
        "node.kubernetes.io/instance-type": "a100",
        "topology.kubernetes.io/zone": "us-east1-b",
        "topology.kubernetes.io/region": "us-east1",
        "type": "kwok",
        "kumulus.io/cluster": "dev",
        "kumulus.io/group": "a100",
        "kumulus.io/pool": "a100-us-east1-b",
    }


def test_template_labels_win_and_the_pool_follows_them() -> None:
    labels = {
        "kubernetes.io/arch": "arm64",
        "kubernetes.io/os": "windows",
        "topology.kubernetes.io/zone": "z",
        "topology.kubernetes.io/region": "r",
        "node.kubernetes.io/instance-type": "t",
        "type": "virtual",
    }
    pool = expand(metadata={"labels": labels})
    assert {key: pool.labels[key] for key in labels} == labels
    assert pool.node_info == NodeInfo("arm64", "windows", "fake")
    assert (pool.name, pool.group, pool.zone, pool.region) == ("a100-use1", "a100", "z", "r")


def test_labels_follow_the_node_info_where_the_template_has_none() -> None:
    pool = expand(nodeInfo={"architecture": "arm64", "kubeletVersion": "v1.35.4"})
    assert pool.labels["kubernetes.io/arch"] == "arm64"
    assert pool.node_info == NodeInfo("arm64", "linux", "v1.35.4")


def test_an_allocatable_leaves_the_other_resources_in_full() -> None:
    assert expand(allocatable={"cpu": 95}).allocatable == {"cpu": "95", "pods": "110"}


def test_a_region_that_is_given_wins_over_the_zones() -> None:
    assert expand(zone="us-east1-b", region="mine").region == "mine"


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-east1-b", "us-east1"),
        ("northamerica-northeast1-a", "northamerica-northeast1"),
        ("us-east-1a", "us-east-1"),
        ("us-gov-west-1c", "us-gov-west-1"),
        ("ap-southeast-2b", "ap-southeast-2"),
        ("eastus-1", "eastus"),
        ("westus2-3", "westus2"),
        ("germanywestcentral-2", "germanywestcentral"),
        ("use1", ""),
        ("rack-1", ""),
        ("west-1", ""),
        ("rack-a1-b", ""),
        ("datacenter-1", ""),
    ],
)
def test_regions_are_told_by_the_zones_of_three_clouds(zone: str, region: str) -> None:
    assert region_of(zone) == region


def test_a_pool_goes_to_the_plugin_and_back_unchanged() -> None:
    pool = expand(zone="us-east1-b", allocatable={"cpu": 95}, metadata={"annotations": {"a": "b"}})
    assert pool_from_properties(pool_to_properties(pool)) == pool


def test_a_nodes_labels_are_the_pools_and_its_host_name() -> None:
    pool = expand()
    metadata: Any = node_manifest(pool, 1, "2026-01-31T12:00:00Z", "dev")["metadata"]
    assert metadata["labels"] == {**pool.labels, "kubernetes.io/hostname": "a100-use1-1"}
