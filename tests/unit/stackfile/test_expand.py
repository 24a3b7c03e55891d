"""From groups and placements to pools with their labels."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.watch.addition import ADDITION as MONITORING
from kumulus.model.pools import NodeInfo, Pool
from kumulus.runtimes.kwok import configuration
from kumulus.stackfile.expand import pools
from kumulus.stackfile.groups import region_of
from kumulus.stackfile.kwok_options import machine_prices
from kumulus.stackfile.load import load
from kumulus.stackfile.model import ClusterSpec
from tests.support.said import problems_of

PLACEMENT = [{"availabilityZone": "use1", "replicas": 2}]


def expand(zone: str = "use1", region: str | None = None, **template: Any) -> Pool:
    placement = [{"availabilityZone": zone, "replicas": 2, "region": region}]
    return pool(name="a100", placement=placement, nodeTemplate={"capacity": {"cpu": 96, "pods": 110}, **template})


def test_there_is_a_pool_per_group_and_zone_in_the_order_of_the_file() -> None:
    zones = [{"availabilityZone": zone, "replicas": count} for zone, count in (("use2", 3), ("use1", 1))]
    groups = [{"name": name, "placement": zones, "nodeTemplate": {"capacity": {"pods": 1}}} for name in ("b", "a")]
    found = pools(ClusterSpec.checked({"nodeGroups": groups}), "dev")
    assert [f"{pool.name}: {pool.replicas}" for pool in found] == ["b-use2: 3", "b-use1: 1", "a-use2: 3", "a-use1: 1"]
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


def pool(**group: Any) -> Pool:
    spec = ClusterSpec.checked({"nodeGroups": [{"name": "g", "placement": PLACEMENT, **group}]})
    return pools(spec, "dev")[0]


def told(**group: Any) -> dict[str, str]:
    return problems_of(pool, under="nodeGroups[0].", **group)


def test_an_instance_type_is_enough() -> None:
    made = pool(instanceType="a3-highgpu-8g")
    assert made.capacity == {
        "cpu": "208",
        "memory": "1872Gi",
        "ephemeral-storage": "6000Gi",
        "pods": "110",
        "nvidia.com/gpu": "8",
    }
    assert made.allocatable == made.capacity
    assert made.gpu_product == "NVIDIA-H100-80GB-HBM3"
    assert made.labels["node.kubernetes.io/instance-type"] == "a3-highgpu-8g"
    assert made.labels["cloud.google.com/gke-accelerator"] == "nvidia-h100-80gb"
    assert made.labels["nvidia.com/gpu.machine"] == "Google-Compute-Engine"
    assert made.labels["kumulus.io/group"] == "g"


def test_what_the_template_says_wins() -> None:
    made = pool(
        instanceType="a3-highgpu-8g",
        nodeTemplate={
            "capacity": {"cpu": 64, "nvidia.com/gpu": 4, "example.com/nic": 2},
            "allocatable": {"memory": "1800Gi"},
            "metadata": {"labels": {"nvidia.com/gpu.memory": "1", "node.kubernetes.io/instance-type": "mine"}},
        },
    )
    assert (made.capacity["cpu"], made.capacity["nvidia.com/gpu"], made.capacity["example.com/nic"]) == ("64", "4", "2")
    assert (made.capacity["memory"], made.allocatable["memory"]) == ("1872Gi", "1800Gi")
    assert made.allocatable["cpu"] == "64", "what is not given is allocatable in full"
    assert made.labels["nvidia.com/gpu.memory"] == "1"
    assert made.labels["node.kubernetes.io/instance-type"] == "mine"
    assert made.labels["nvidia.com/gpu.count"] == "4"


def test_a_shape_without_gpus_has_no_gpu_labels() -> None:
    for group in (
        {"instanceType": "n2-standard-8"},
        {"instanceType": "a3-highgpu-8g", "nodeTemplate": {"capacity": {"nvidia.com/gpu": 0}}},
    ):
        assert not [key for key in pool(**group).labels if key.startswith("nvidia.com/")]


def test_an_arm_machine_says_so() -> None:
    made = pool(instanceType="m7g.4xlarge")
    assert made.node_info.architecture == made.labels["kubernetes.io/arch"] == "arm64"
    other = pool(instanceType="m7g.4xlarge", nodeTemplate={"nodeInfo": {"architecture": "amd64"}})
    assert other.labels["kubernetes.io/arch"] == "amd64"


def test_a_shape_of_ones_own_can_name_its_gpus() -> None:
    made = pool(gpuProduct="NVIDIA-L40S", nodeTemplate={"capacity": {"pods": 110, "nvidia.com/gpu": 2}})
    assert (made.gpu_product, made.labels["nvidia.com/gpu.count"]) == ("NVIDIA-L40S", "2")
    assert made.labels["nvidia.com/gpu.machine"] == "unknown"
    other = pool(instanceType="p4d.24xlarge", gpuProduct="NVIDIA-A100-SXM4-80GB")
    assert other.labels["nvidia.com/gpu.memory"] == "81920"


def test_the_fake_gpu_operator_gets_its_label_only_when_asked_for() -> None:
    key = "run.ai/simulated-gpu-node-pool"
    assert key not in pool(instanceType="p5.48xlarge").labels
    assert pool(instanceType="p5.48xlarge", gpuOperator={}).labels[key] == "g"
    assert pool(instanceType="p5.48xlarge", gpuOperator={"simulatedPool": "h100"}).labels[key] == "h100"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("a3-highgpu-8gb", "write a3-highgpu-8g, a4-highgpu-8g or a3-highgpu-4g"),
        ("P5.48XLARGE", "write p5.48xlarge"),
        ("standard_nd96isr_h100_v4", "write Standard_ND96isr_H100_v5"),
        ("quantum-9000", "leave it out and write the shape as nodeTemplate.capacity"),
    ],
)
def test_an_unknown_type_names_the_near_ones_and_nothing_else_is_told(name: str, near: str) -> None:
    problems = told(instanceType=name)
    assert list(problems) == ["instanceType"]
    assert "is not in the catalog" in problems["instanceType"]
    assert near in problems["instanceType"]


@pytest.mark.parametrize("wrong", [3, ["p5.48xlarge"], {"a": 1}, True])
def test_a_type_that_is_no_text_is_told_alone(wrong: object) -> None:
    assert list(told(instanceType=wrong)) == ["instanceType"]


@pytest.mark.parametrize(
    ("product", "said"),
    [
        ("H100-80GB", "is not in the catalog; write NVIDIA-H100-80GB-HBM3"),
        ("NVIDIA-L40S", "is given, but no node of the group has nvidia.com/gpu; write"),
    ],
)
def test_a_product_that_is_unknown_or_on_no_node_is_told(product: str, said: str) -> None:
    problems = told(gpuProduct=product, nodeTemplate={"capacity": {"pods": 1}})
    assert list(problems) == ["gpuProduct"]
    assert said in problems["gpuProduct"]


def test_what_is_wrong_in_the_template_keeps_its_path() -> None:
    problems = told(
        instanceType="a3-highgpu-8g",
        nodeTemplate={"capacity": {"cpu": "many"}, "allocatable": {"memory": "2Ti"}, "metadata": {"labels": {"a": 1}}},
    )
    assert list(problems) == [
        "nodeTemplate.allocatable.memory",
        "nodeTemplate.capacity.cpu",
        "nodeTemplate.metadata.labels.a",
    ]


def test_malformed_parts_are_told_by_the_model() -> None:
    for template, path in (([], ""), ({"capacity": []}, ".capacity"), ({"metadata": 3}, ".metadata")):
        assert list(told(instanceType="a3-highgpu-8g", nodeTemplate=template)) == [f"nodeTemplate{path}"]
    assert list(told(instanceType="a3-highgpu-8g", gpuOperator={"pool": "x"})) == ["gpuOperator.pool"]


def group(name: str, zone: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "placement": [{"availabilityZone": zone, "replicas": 1}], **fields}


def test_each_kind_of_machine_has_its_price_once_and_what_has_none_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(yaml.safe_dump({"regions": {"*": {"onDemand": {"rack": 9.5}}}}))
    spot = {"metadata": {"labels": {"cloud.google.com/gke-spot": "true"}}}
    own = {"capacity": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
    groups = [
        group("a", "us-central1-a", instanceType="e2-standard-4"),
        group("b", "us-central1-b", instanceType="e2-standard-4"),
        group("c", "us-central1-a", instanceType="e2-standard-4", nodeTemplate=spot),
        group("rack", "here", nodeTemplate=own),
        group("other", "here", nodeTemplate=own),
    ]
    scaler = {"name": "karpenter", "zones": ["us-central1-a"], "instanceTypes": ["e2-standard-8"]}
    loaded = load({"cluster": {"nodeGroups": groups, "autoscaler": scaler}, "prices": "prices.yaml"}, "dev", tmp_path)
    found = machine_prices(loaded)
    assert [(each["instanceType"], each["region"], each["capacityType"]) for each in found] == [
        ("e2-standard-4", "us-central1", "on-demand"),
        ("e2-standard-4", "us-central1", "spot"),
        ("e2-standard-8", "us-central1", "on-demand"),
        ("rack", "", "on-demand"),
    ]
    assert found[-1]["hourly"] == 9.5
    assert found[0]["hourly"] > found[1]["hourly"]


def test_other_prices_restart_prometheus_alone_and_are_told() -> None:
    price = {"instanceType": "x", "region": "", "capacityType": "on-demand", "hourly": 1.0}
    before = {"observability": {}, "prices": [price]}
    after = {"observability": {}, "prices": [{**price, "hourly": 2.0}]}
    then, now = configuration.component_fingerprints(before), configuration.component_fingerprints(after)
    assert {name for name in then if then[name] != now[name]} == {"prometheus"}
    assert configuration.fingerprint(before) != configuration.fingerprint(after)
    [said] = MONITORING.described(before, after)
    assert "with other prices of machines" in said
    assert MONITORING.described(before, before) == []
    assert len(MONITORING.described({}, after)) == 1
