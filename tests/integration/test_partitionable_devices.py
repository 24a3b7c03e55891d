"""GPUs that are divided into MIG devices as they are claimed: allocated by the real scheduler while counters last."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from kumulus.nodes.errors import PartialFailure
from tests.integration.conftest import PODS, Faults, Plane, Pools, plane_at, pod
from tests.integration.test_resource_slices import CLAIMS, CLASSES, SLICES, TEMPLATES, WITHOUT_GPUS, devices, slices
from tests.support.pods import are_judged

pytestmark = pytest.mark.integration
GATE = "DRAPartitionableDevices"
PROFILES = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"]
CLASS = 'device.driver == "gpu.nvidia.com"'
PROFILE = 'device.attributes["gpu.nvidia.com"].type == "mig" && device.attributes["gpu.nvidia.com"].profile == "{}"'


class TestWithTheGate:
    """On a control plane of its own, as a gate is of a whole cluster."""

    @pytest.fixture(scope="class")
    @staticmethod
    def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
        with plane_at(tmp_path_factory.mktemp("divided"), featureGates={GATE: True}) as made:
            yield made

    async def test_mig_devices_are_allocated_only_as_their_counters_allow(self, plane: Plane, pools: Pools) -> None:
        inputs = pools.inputs(1, resourceSlices=devices(1, migProfiles=PROFILES), capacity=WITHOUT_GPUS)
        await pools.create(inputs)
        assert await pools.drift(inputs) == {}
        plane.api.create(CLASSES, {"metadata": {"name": "nv"}, "spec": {"selectors": [{"cel": {"expression": CLASS}}]}})
        asked = {name.replace(".", "-"): PROFILE.format(name) for name in PROFILES}
        asked["whole"] = 'device.attributes["gpu.nvidia.com"].type == "gpu"'
        for name, expression in asked.items():
            exactly = {"deviceClassName": "nv", "selectors": [{"cel": {"expression": expression}}]}
            spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
            plane.api.create(TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": spec}})
        # 4 and 4 eighths; a second 4g has no place, and nothing is left for the whole GPU, or for the smallest part.
        order = ("4g-40gb", "4g-40gb", "3g-40gb", "1g-10gb", "whole")
        for number, template in enumerate(order):
            body: dict[str, Any] = pod(f"{template}-{number}", inputs["name"], cpu="10m")
            body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
            body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
            plane.api.create(PODS, body)
            plane.api.until(PODS, partial(are_judged, number + 1))
        found = plane.api.until(PODS, partial(are_judged, len(order)))
        assert {name for name, each in found.items() if "nodeName" in each["spec"]} == {"4g-40gb-0", "3g-40gb-2"}
        allocated = [claim.get("status", {}).get("allocation") for claim in plane.api.list(CLAIMS)]
        assert sorted(each["devices"]["results"][0]["device"] for each in allocated if each) == [
            "gpu-0-mig-3g40gb-9-4",
            "gpu-0-mig-4g40gb-5-0",
        ]

    async def test_slices_of_divided_gpus_come_change_and_go_with_their_pool(
        self, plane: Plane, pools: Pools, faults: Faults
    ) -> None:
        whole = pools.inputs(2, resourceSlices=devices(8))
        await pools.create(whole)
        divided = whole | {"resourceSlices": devices(8, migProfiles=PROFILES)}
        await pools.update(divided, whole)
        found = slices(plane, divided)
        name = divided["name"]
        assert set(found) == {f"{name}-{n}-gpu.nvidia.com{part}" for n in (0, 1) for part in ("", "-1", "-2", "-3")}
        assert await pools.drift(divided) == {}
        counts = [len(found[f"{name}-0-gpu.nvidia.com{part}"]["spec"].get("devices", ())) for part in ("", "-1", "-2")]
        assert counts == [57, 57, 38]
        plane.api.delete(f"{SLICES}/{name}-1-gpu.nvidia.com-3")
        plane.api.merge(f"{SLICES}/{name}-0-gpu.nvidia.com-1", {"spec": {"devices": []}})
        drift = (await pools.drift(divided))["resourceSlices"]
        assert drift["missing"] == f"1: {name}-1-gpu.nvidia.com-3"
        assert list(drift["altered"]) == [f"{name}-0-gpu.nvidia.com-1"]
        await pools.update(divided, divided)
        assert slices(plane, divided).keys() == found.keys()
        assert await pools.drift(divided) == {}
        # A fault takes the GPUs of the highest numbers, with their MIG devices; the counters stay.
        await faults.begin(faults.inputs("lost", {name: "0"}, "gpu-fell-off-bus"))
        await faults.begin(faults.inputs("reclaimed", {name: "1"}, "spot-reclaim"))
        plane.api.until(SLICES, lambda there: not any(key.startswith(f"{name}-1-") for key in there))
        left = [len(slices(plane, divided)[key]["spec"].get("devices", ())) for key in sorted(found)[:4]]
        assert left == [57, 57, 19, 0]
        for fault in ("lost", "reclaimed"):
            await faults.end(fault)
        assert {key: each["spec"] for key, each in slices(plane, divided).items()} == {
            key: each["spec"] for key, each in found.items()
        }
        # Not divided any more: what is too much goes.
        await pools.update(whole, divided)
        assert set(slices(plane, whole)) == {f"{name}-{n}-gpu.nvidia.com" for n in (0, 1)}
        assert await pools.drift(whole) == {}


class TestWithoutTheGate:
    """On another one: the gate is off by default only before Kubernetes 1.36."""

    @pytest.fixture(scope="class")
    @staticmethod
    def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
        with plane_at(tmp_path_factory.mktemp("undivided"), featureGates={GATE: False}) as made:
            yield made

    async def test_a_cluster_that_drops_what_devices_take_is_told_of(self, plane: Plane, pools: Pools) -> None:
        inputs = pools.inputs(2, resourceSlices=devices(2, migProfiles=PROFILES))
        with pytest.raises(PartialFailure, match=f"switch the feature gate {GATE} on"):
            await pools.create(inputs)
        assert not any("consumesCounters" in str(each) for each in plane.api.list(SLICES))
