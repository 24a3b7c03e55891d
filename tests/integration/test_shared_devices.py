"""Devices that several claims share, by consumable capacity: allocated by the real scheduler until none has room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from kumulus.nodes.errors import PartialFailure
from tests.integration.conftest import PODS, Plane, Pools, plane_at, pod
from tests.integration.test_resource_slices import CLAIMS, CLASSES, SLICES, TEMPLATES, WITHOUT_GPUS, devices
from tests.support.pods import are_judged

pytestmark = pytest.mark.integration
GATE = "DRAConsumableCapacity"


class TestWithTheGate:
    """On a control plane of its own, as a gate is of a whole cluster."""

    @pytest.fixture(scope="class")
    @staticmethod
    def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
        with plane_at(tmp_path_factory.mktemp("sharing"), featureGates={GATE: True}) as made:
            yield made

    async def test_parts_of_gpus_are_allocated_until_none_has_room(self, plane: Plane, pools: Pools) -> None:
        inputs = pools.inputs(1, resourceSlices=devices(2, allowMultipleAllocations=True), capacity=WITHOUT_GPUS)
        await pools.create(inputs)
        assert await pools.drift(inputs) == {}
        expression = 'device.driver == "gpu.nvidia.com"'
        plane.api.create(
            CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
        )
        for name, capacity in (("part", {"capacity": {"requests": {"milli": "400"}}}), ("whole", {})):
            exactly = {"deviceClassName": "gpu", **capacity}
            spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
            plane.api.create(TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": spec}})
        # Two parts go on a GPU; the whole one, which comes last, has to wait for the second.
        for number, template in enumerate(("part", "part", "part", "whole")):
            body: dict[str, Any] = pod(f"{template}-{number}", inputs["name"], cpu="10m")
            body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
            body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
            plane.api.create(PODS, body)
            plane.api.until(PODS, partial(are_judged, number + 1))
        found = plane.api.until(PODS, partial(are_judged, 4))
        assert {name for name, each in found.items() if "nodeName" not in each["spec"]} == {"whole-3"}
        results = [
            result
            for claim in plane.api.list(CLAIMS)
            for result in (claim.get("status", {}).get("allocation") or {"devices": {"results": []}})["devices"][
                "results"
            ]
        ]
        assert [result["consumedCapacity"]["milli"] for result in results] == ["400"] * 3
        assert sorted(Counter(result["device"] for result in results).values()) == [1, 2]


class TestWithoutTheGate:
    """On another one: the gate is off by default only before Kubernetes 1.36."""

    @pytest.fixture(scope="class")
    @staticmethod
    def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
        with plane_at(tmp_path_factory.mktemp("unshared"), featureGates={GATE: False}) as made:
            yield made

    async def test_a_cluster_that_drops_what_it_does_not_know_is_told_of(self, plane: Plane, pools: Pools) -> None:
        inputs = pools.inputs(2, resourceSlices=devices(2, allowMultipleAllocations=True))
        with pytest.raises(PartialFailure, match=f"switch the feature gate {GATE} on"):
            await pools.create(inputs)
        assert not any("allowMultipleAllocations" in str(each) for each in plane.api.list(SLICES))
