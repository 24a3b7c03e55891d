"""Amounts of GPU as ResourceClaims, and back."""

from __future__ import annotations

from typing import Any

import pytest

from kumulus.model.claims import (
    Demand,
    claim_template,
    claimed,
    demand,
    demands,
    mig_size,
    rounded,
    taken,
    template_name,
)


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
        (2, 0, "milli", Demand(2)),
        (0, 300, "milli", Demand(0, 300)),
        (0, 300, "mig", Demand(0, 500)),
        (8, 0, "mig", Demand(8)),
    ],
)
def test_what_a_template_asks_for_is_read_again(gpus: int, milli: int, parts: Any, wanted: Demand) -> None:
    made = claim_template("t", {"a": "b"}, gpus, milli, parts)
    assert demand(made["spec"]["spec"]) == wanted
    assert made["metadata"]["labels"] == made["spec"]["metadata"]["labels"] == {"a": "b"}


def test_templates_of_different_amounts_have_different_names() -> None:
    names = [template_name("w", *each) for each in ((2, 0, "milli"), (0, 2, "milli"), (0, 300, "mig"), (3, 0, "mig"))]
    assert names == ["w-2-gpu", "w-2-milli", "w-mig-3g", "w-3-gpu"]


def test_a_claim_of_the_users_is_read_too() -> None:
    def asks(**exactly: Any) -> Demand:
        return demand({"devices": {"requests": [{"name": "x", "exactly": exactly}]}})

    assert asks(deviceClassName="gpu.nvidia.com") == Demand(1)
    assert asks(deviceClassName="gpu.nvidia.com", adminAccess=True) == Demand()
    assert asks(deviceClassName="dra.example.com", count=4) == Demand()
    assert asks(deviceClassName="gpu.nvidia.com", capacity={"requests": {"memory": "10Gi"}}) == Demand(1)
    profile = {"cel": {"expression": 'device.attributes["gpu.nvidia.com"].profile == "2g.20gb"'}}
    assert asks(deviceClassName="mig.nvidia.com", selectors=[profile], count=2) == Demand(0, 500)
    assert asks(deviceClassName="mig.nvidia.com") == Demand(0, 1000)
    first = {"name": "x", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.nvidia.com", "count": 2}]}
    assert demand({"devices": {"requests": [first]}}) == Demand(2)


def test_a_pod_asks_for_what_its_templates_do() -> None:
    known = demands([claim_template("a", {}, 2, 0, "milli"), claim_template("b", {}, 0, 300, "milli"), {"kind": "Pod"}])
    spec = {"resourceClaims": [{"name": n, "resourceClaimTemplateName": n} for n in ("a", "b", "c")]}
    assert claimed(spec, known) == Demand(2, 300)
    assert claimed({"containers": []}, known) == Demand()


def test_what_is_allocated_is_so_much_of_its_gpu() -> None:
    assert taken("gpu-3", "300") == 300
    assert taken("gpu-3", "1k") == taken("gpu-3", "") == 1000
    assert [taken(f"gpu-0-mig-{name}", "") for name in ("1g10gb-19-6", "1g20gb-15-2", "3g40gb-9-4", "7g80gb-0-0")] == [
        125,
        250,
        500,
        1000,
    ]
