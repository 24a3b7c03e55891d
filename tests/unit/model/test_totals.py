"""What pools come to."""

import json
from dataclasses import replace

from kumulus.model.devices import Devices
from kumulus.model.pools import Pool
from kumulus.model.totals import totals


def pool(group: str, zone: str, replicas: int, **capacity: str) -> Pool:
    resources = {name.replace("__", "/").replace("_", "."): amount for name, amount in capacity.items()}
    return Pool(f"{group}-{zone}", group, zone, "", replicas, {}, capacity=resources, allocatable=resources)


POOLS = [
    pool("h100", "use2", 2, pods="110", memory="1872Gi", cpu="208", nvidia_com__gpu="8"),
    pool("h100", "use1", 3, pods="110", memory="1872Gi", cpu="208", nvidia_com__gpu="8"),
    pool("mi300", "use1", 1, pods="110", memory="1Ti", cpu="1500m", amd_com__gpu="4"),
    pool("system", "", 2, pods="110", cpu="64"),
]


def test_nodes_and_every_resource_are_summed_by_group_and_zone_in_the_order_of_the_file() -> None:
    sums = totals(POOLS)
    plain = sums.to_plain()
    assert json.loads(json.dumps(plain)) == plain
    assert {key: plain[key] for key in ("nodes", "gpus", "cpu", "memory", "pods")} == {
        "nodes": 8,
        # Of every vendor.
        "gpus": 44,
        "cpu": 1169.5,
        "memory": "10384Gi",
        "pods": 880,
    }
    assert plain["resources"] == {
        "cpu": "1169500m",
        "memory": "10384Gi",
        "pods": "880",
        "amd.com/gpu": "4",
        "nvidia.com/gpu": "40",
    }
    assert list(sums.resources) == list(plain["resources"])
    groups = [(name, tally.nodes, tally.gpus) for name, tally in sums.by_group.items()]
    assert groups == [("h100", 5, 40), ("mi300", 1, 4), ("system", 2, 0)]
    assert [(name, tally.nodes) for name, tally in sums.by_zone.items()] == [("use2", 2), ("use1", 4), ("(none)", 2)]
    assert plain["byGroup"] == {name: tally.to_plain() for name, tally in sums.by_group.items()}
    assert list(plain["byZone"]) == ["use2", "use1", "(none)"]  # type: ignore[call-overload]


def test_nodes_that_an_autoscaler_leaves_out_count_for_nothing() -> None:
    devices = Devices("gpu.nvidia.com", 8, {"type": {"string": "gpu"}})
    left = replace(pool("a", "z", 5, cpu="2"), absent=frozenset({1, 3}), devices=devices)
    sums = totals([left])
    assert (sums.nodes, sums.gpus, str(sums.resources["cpu"])) == (3, 24, "6")


def test_nothing_comes_to_nothing() -> None:
    assert totals([]).to_plain() == {
        "nodes": 0,
        "gpus": 0,
        "cpu": 0,
        "memory": "0",
        "pods": 0,
        "resources": {},
        "byGroup": {},
        "byZone": {},
        "gpuProducts": {},
    }


def test_sums_are_exact_beyond_64_bits() -> None:
    assert str(totals([pool("a", "z", 100_000, memory="4Ei")]).resources["memory"]) == "400000Ei"


def test_gpus_are_counted_by_product_where_labels_name_one() -> None:
    def pool(name: str, product: str, gpus: str) -> Pool:
        labels = {"nvidia.com/gpu.product": product} if product else {}
        return Pool(name, name, "z", "", 2, labels, {}, (), {"pods": "1", "nvidia.com/gpu": gpus})

    sums = totals([pool("a", "NVIDIA-L40S", "4"), pool("b", "", "8"), pool("c", "NVIDIA-H200", "8")])
    assert sums.gpu_products == {"NVIDIA-L40S": 8, "NVIDIA-H200": 16}
    assert sums.gpus == 40
