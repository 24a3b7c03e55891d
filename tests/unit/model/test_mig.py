"""The MIG devices of a GPU: what each takes, and which go together."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from kumulus.extras.lab.plan.gpu_claims import (
    GpuDemand,
    claim_template,
    claimed,
    demand,
    demands,
    mig_size,
    rounded,
    taken,
    template_name,
)
from kumulus.model.devices import DEVICES_OF_A_GPU, Devices, counter_set, gpu_of, partitioned
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, Pool
from kumulus.model.slices import parts_of, slice_count, slice_name, slice_spec
from kumulus.nodes.catalog.instances import gpu_products, mig_profiles

NAMES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
GPU: dict[str, Any] = {"name": "gpu-3", "attributes": {"type": {"string": "gpu"}, "uuid": {"string": "GPU-x"}}}


def pool(count: int) -> tuple[Pool, Devices]:
    devices = Devices("gpu.nvidia.com", count, {"type": {"string": "gpu"}}, {"memory": "81559Mi"}, mig_profiles=NAMES)
    return Pool("h100-a", "h100", "a", "", 2, {CLUSTER_LABEL: "lab", POOL_LABEL: "h100-a"}, devices=devices), devices


def published(count: int) -> list[dict[str, Any]]:
    """The specs of the slices of a node."""
    made, _ = pool(count)
    return [slice_spec(made, part) for part in parts_of(made, (0,))]


def fit(names: Iterable[str]) -> bool:
    """Whether a GPU has room for these devices together, as the scheduler counts it."""
    left = Counter({name: int(counter["value"]) for name, counter in counter_set("gpu-3")["counters"].items()})
    devices = {device["name"]: device for device in partitioned(GPU, NAMES, 81559)}
    for name in names:
        (use,) = devices[name]["consumesCounters"]
        assert use["counterSet"] == "gpu-3-counter-set"
        left.subtract({counter: int(each["value"]) for counter, each in use["counters"].items()})
    return min(left.values()) >= 0


def mig(profile: str, *starts: int) -> list[str]:
    return [f"gpu-3-mig-{profile}-{start}" for start in starts]


@pytest.mark.parametrize(
    ("devices", "fits"),
    [
        (["gpu-3"], True),
        (mig("1g10gb-19", *range(7)), True),
        (mig("2g20gb-14", 0, 2, 4) + mig("1g10gb-19", 6), True),
        (mig("3g40gb-9", 0, 4), True),
        (mig("4g40gb-5", 0) + mig("3g40gb-9", 4), True),
        (mig("3g40gb-9", 0) + mig("2g20gb-14", 4) + mig("1g20gb-15", 6), True),
        (mig("7g80gb-0", 0), True),
        (mig("3g40gb-9", 0) + mig("1g10gb-19", 3), False),
        (mig("4g40gb-5", 0) + mig("3g40gb-9", 0), False),
        (mig("7g80gb-0", 0) + mig("1g10gb-19", 6), False),
        (["gpu-3", *mig("1g10gb-19", 0)], False),
    ],
)
def test_devices_go_together_that_nvidias_guide_shows_together(devices: list[str], fits: bool) -> None:
    assert fit(devices) is fits


def test_a_mig_device_says_what_it_is_of_and_has_its_part_of_the_memory() -> None:
    found = {device["name"]: device for device in partitioned(GPU, NAMES, 81559)}
    assert len(found) == DEVICES_OF_A_GPU == 19
    assert found["gpu-3-mig-3g40gb-9-4"]["attributes"] == {
        "type": {"string": "mig"},
        "profile": {"string": "3g.40gb"},
        "parentUUID": {"string": "GPU-x"},
    }
    assert found["gpu-3-mig-3g40gb-9-4"]["capacity"] == {"memory": {"value": "40779Mi"}}
    assert found["gpu-3-mig-1g10gb-19-6"]["capacity"] == {"memory": {"value": "10194Mi"}}
    assert {gpu_of(name) for name in found} == {"gpu-3"}
    assert gpu_of("gpu-3-mig") == "gpu-3-mig"


@pytest.mark.parametrize(
    ("gpus", "of_devices", "of_counters"), [(1, 1, 1), (3, 1, 1), (8, 3, 1), (9, 3, 2), (16, 6, 2)]
)
def test_slices_keep_within_what_the_api_server_takes(gpus: int, of_devices: int, of_counters: int) -> None:
    made, devices = pool(gpus)
    specs = published(gpus)
    assert len(specs) == slice_count(devices) == of_devices + of_counters
    assert {spec["pool"]["resourceSliceCount"] for spec in specs} == {len(specs)}
    assert [sorted({"devices", "sharedCounters"} & spec.keys()) for spec in specs] == (
        [["devices"]] * of_devices + [["sharedCounters"]] * of_counters
    )
    assert max(len(spec.get("devices", ())) for spec in specs) <= 64
    assert max(len(spec.get("sharedCounters", ())) for spec in specs) <= 8
    counted = {each["name"] for spec in specs for each in spec.get("sharedCounters", ())}
    taken = {
        use["counterSet"] for spec in specs for each in spec.get("devices", ()) for use in each["consumesCounters"]
    }
    assert counted == taken == {f"gpu-{index}-counter-set" for index in range(gpus)}
    assert slice_name(made, next(parts_of(made, (1,)))) == "h100-a-1-gpu.nvidia.com"
    assert len({slice_name(made, part) for part in parts_of(made, range(2))}) == 2 * len(specs)


def test_the_catalog_has_the_profiles_of_each_product_that_can_be_divided() -> None:
    assert set(mig_profiles()) == {name for name, product in gpu_products().items() if product.mig}
    for name, profiles in mig_profiles().items():
        assert [profile.partition(".")[0] for profile in profiles] == ["1g", "1g", "2g", "3g", "4g", "7g"]
        gigabytes = [int(profile.partition(".")[2].removesuffix("gb")) for profile in profiles]
        whole = gpu_products()[name].memory / 1024
        # Names round, and count decimal or binary gigabytes.
        for each, eighths in zip(gigabytes, (1, 2, 2, 4, 4, 8), strict=True):
            assert each == pytest.approx(whole * eighths / 8, rel=0.08, abs=1)


@pytest.mark.parametrize(
    ("milli", "size"),
    [(1, "1g"), (125, "1g"), (126, "2g"), (250, "2g"), (251, "3g"), (428, "3g"), (429, "4g"), (500, "4g"), (501, "7g")],
)
def test_a_part_gets_the_smallest_mig_device_with_as_much_compute_and_memory(milli: int, size: str) -> None:
    assert mig_size(milli) == size


def test_of_a_gpu_that_is_divided_eighths_are_taken() -> None:
    assert [rounded(milli, "mig") for milli in (100, 200, 300, 500, 600, 1000)] == [125, 250, 500, 500, 1000, 1000]
    assert rounded(300, "milli") == 300


@pytest.mark.parametrize(
    ("gpus", "milli", "parts", "wanted"),
    [
        (2, 0, "milli", GpuDemand(2)),
        (0, 300, "milli", GpuDemand(0, 300)),
        (0, 300, "mig", GpuDemand(0, 500)),
        (8, 0, "mig", GpuDemand(8)),
    ],
)
def test_what_a_template_asks_for_is_read_again(gpus: int, milli: int, parts: Any, wanted: GpuDemand) -> None:
    made = claim_template("t", {"a": "b"}, gpus, milli, parts)
    assert demand(made["spec"]["spec"]) == wanted
    assert made["metadata"]["labels"] == made["spec"]["metadata"]["labels"] == {"a": "b"}


def test_templates_of_different_amounts_have_different_names() -> None:
    names = [template_name("w", *each) for each in ((2, 0, "milli"), (0, 2, "milli"), (0, 300, "mig"), (3, 0, "mig"))]
    assert names == ["w-2-gpu", "w-2-milli", "w-mig-3g", "w-3-gpu"]


def test_a_claim_of_the_users_is_read_too() -> None:
    def asks(**exactly: Any) -> GpuDemand:
        return demand({"devices": {"requests": [{"name": "x", "exactly": exactly}]}})

    assert asks(deviceClassName="gpu.nvidia.com") == GpuDemand(1)
    assert asks(deviceClassName="gpu.nvidia.com", adminAccess=True) == GpuDemand()
    assert asks(deviceClassName="dra.example.com", count=4) == GpuDemand()
    assert asks(deviceClassName="gpu.nvidia.com", capacity={"requests": {"memory": "10Gi"}}) == GpuDemand(1)
    profile = {"cel": {"expression": 'device.attributes["gpu.nvidia.com"].profile == "2g.20gb"'}}
    assert asks(deviceClassName="mig.nvidia.com", selectors=[profile], count=2) == GpuDemand(0, 500)
    assert asks(deviceClassName="mig.nvidia.com") == GpuDemand(0, 1000)
    first = {"name": "x", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.nvidia.com", "count": 2}]}
    assert demand({"devices": {"requests": [first]}}) == GpuDemand(2)


def test_a_pod_asks_for_what_its_templates_do() -> None:
    known = demands([claim_template("a", {}, 2, 0, "milli"), claim_template("b", {}, 0, 300, "milli"), {"kind": "Pod"}])
    spec = {"resourceClaims": [{"name": n, "resourceClaimTemplateName": n} for n in ("a", "b", "c")]}
    assert claimed(spec, known) == GpuDemand(2, 300)
    assert claimed({"containers": []}, known) == GpuDemand()


def test_what_is_allocated_is_so_much_of_its_gpu() -> None:
    assert taken("gpu-3", "300") == 300
    assert taken("gpu-3", "1k") == taken("gpu-3", "") == 1000
    assert [taken(f"gpu-0-mig-{name}", "") for name in ("1g10gb-19-6", "1g20gb-15-2", "3g40gb-9-4", "7g80gb-0-0")] == [
        125,
        250,
        500,
        1000,
    ]
