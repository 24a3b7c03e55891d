"""GPUs that are divided into MIG devices as they are claimed, that several claims share, that take some of their node's
own resources, or that are made ready first.

The real scheduler allocates them, while counters last and as long as one has room. All take a feature gate.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from kumulus.nodes.errors import PartialFailure
from tests.integration.conftest import PODS, Faults, Plane, Pools, plane_at, pod
from tests.integration.test_resource_slices import CLAIMS, CLASSES, SLICES, TEMPLATES, WITHOUT_GPUS, devices, slices
from tests.support import versions
from tests.support.pods import are_judged

pytestmark = pytest.mark.integration
DEFAULT, OLDEST = versions.on_offer()[0], versions.on_offer()[-1]
DIVIDED, SHARED = "DRAPartitionableDevices", "DRAConsumableCapacity"
BINDING = "DRADeviceBindingConditions"
TAKEN = "DRANodeAllocatableResources"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
# What KWOK does of itself, and waits that are the same on each version.
ON_ONE_VERSION = pytest.mark.parametrize("plane", [DEFAULT], indirect=True, scope="class")
READY, FAILED = "FabricDeviceReady", "FabricDeviceFailed"
PROFILES = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"]
CLASS = 'device.driver == "gpu.nvidia.com"'
PROFILE = 'device.attributes["gpu.nvidia.com"].type == "mig" && device.attributes["gpu.nvidia.com"].profile == "{}"'


def claiming(plane: Plane, pool: str, asked: Mapping[str, Mapping[str, Any]], order: Sequence[str]) -> dict[str, Any]:
    """Create a pod for each template of a claim, one after the other was looked at; returns those on a node.

    Args:
        pool: its only pool.
        asked: what a template asks of a device, by the template's name.
    """
    plane.api.create(CLASSES, {"metadata": {"name": pool}, "spec": {"selectors": [{"cel": {"expression": CLASS}}]}})
    for name, more in asked.items():
        exactly = {"deviceClassName": pool, **more}
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        plane.api.create(TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": spec}})
    for number, template in enumerate(order):
        body: dict[str, Any] = pod(f"{template}-{number}", pool, cpu="10m")
        body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
        body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        plane.api.create(PODS, body)
        plane.api.until(PODS, partial(are_judged, number + 1))
    found = plane.api.until(PODS, partial(are_judged, len(order)))
    for path in (f"{CLASSES}/{pool}", *(f"{TEMPLATES}/{name}" for name in asked)):
        plane.api.delete(path)
    return {name: each for name, each in found.items() if "nodeName" in each["spec"]}


def allocated(plane: Plane) -> list[dict[str, Any]]:
    """What claims have of devices."""
    claims = (claim.get("status", {}).get("allocation") for claim in plane.api.list(CLAIMS))
    return [result for claim in claims if claim for result in claim["devices"]["results"]]


class TestWithTheGates:
    """On a control plane of its own, as a gate is of a whole cluster."""

    @pytest.fixture(scope="class")
    @staticmethod
    def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
        with plane_at(
            tmp_path_factory.mktemp("divided"), featureGates={DIVIDED: True, SHARED: True, TAKEN: True}
        ) as made:
            yield made

    @pytest.fixture(autouse=True)
    @staticmethod
    def _without_pods(plane: Plane) -> Iterator[None]:
        yield
        plane.api.delete(f"{PODS}?gracePeriodSeconds=0")
        plane.api.until(PODS, lambda found: not found)
        plane.api.until(CLAIMS, lambda found: not found)

    async def test_mig_devices_are_allocated_only_as_their_counters_allow(self, plane: Plane, pools: Pools) -> None:
        inputs = pools.inputs(1, resourceSlices=devices(1, migProfiles=PROFILES), capacity=WITHOUT_GPUS)
        await pools.create(inputs)
        assert await pools.drift(inputs) == {}
        expressions = {name.replace(".", "-"): PROFILE.format(name) for name in PROFILES}
        expressions["whole-gpu"] = 'device.attributes["gpu.nvidia.com"].type == "gpu"'
        asked = {name: {"selectors": [{"cel": {"expression": each}}]} for name, each in expressions.items()}
        # 4 and 4 eighths; a second 4g has no place, and nothing is left for the whole GPU, or for the smallest part.
        order = ("4g-40gb", "4g-40gb", "3g-40gb", "1g-10gb", "whole-gpu")
        assert claiming(plane, inputs["name"], asked, order).keys() == {"4g-40gb-0", "3g-40gb-2"}
        assert sorted(each["device"] for each in allocated(plane)) == ["gpu-0-mig-3g40gb-9-4", "gpu-0-mig-4g40gb-5-0"]

    async def test_parts_of_gpus_are_allocated_until_none_has_room(self, plane: Plane, pools: Pools) -> None:
        inputs = pools.inputs(1, resourceSlices=devices(2, allowMultipleAllocations=True), capacity=WITHOUT_GPUS)
        await pools.create(inputs)
        assert await pools.drift(inputs) == {}
        asked: dict[str, Any] = {"part": {"capacity": {"requests": {"milli": "400"}}}, "whole": {}}
        # Two parts go on a GPU; the whole one, which comes last, has to wait for the second.
        there = claiming(plane, inputs["name"], asked, ("part", "part", "part", "whole"))
        assert there.keys() == {"part-0", "part-1", "part-2"}
        results = allocated(plane)
        assert [result["consumedCapacity"]["milli"] for result in results] == ["400"] * 3
        assert sorted(Counter(result["device"] for result in results).values()) == [1, 2]

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

    @pytest.mark.parametrize(
        ("cpu", "asked", "shared", "mapped"),
        [
            # Of four CPUs, two devices leave too little for a third.
            ({"mapping": {"deviceMultiplier": "1500m"}}, {}, False, "1500m"),
            ({"overhead": {"perPod": "500m", "perContainer": "1"}}, {}, False, None),
            # 300 thousandths of a GPU, of five milli-CPUs each.
            (
                {"mapping": {"capacityKey": "milli", "capacityMultiplier": "5m"}},
                {"capacity": {"requests": {"milli": "300"}}},
                True,
                "1500m",
            ),
        ],
    )
    async def test_the_scheduler_counts_what_the_devices_of_a_pod_take_of_its_node(
        self, plane: Plane, pools: Pools, cpu: dict[str, Any], asked: dict[str, Any], shared: bool, mapped: str | None
    ) -> None:
        taken = {"cpu": cpu, "memory": {"overhead": {"perPod": "1Gi"}}}
        more: dict[str, Any] = {"allowMultipleAllocations": True} if shared else {}
        inputs = pools.inputs(
            1, resourceSlices=devices(4, nodeAllocatableResources=taken, **more), capacity=WITHOUT_GPUS
        )
        await pools.create(inputs)
        assert await pools.drift(inputs) == {}
        there = claiming(plane, inputs["name"], {"one": asked}, ("one", "one", "one"))
        assert there.keys() == {"one-0", "one-1"}
        (waits,) = plane.api.get(f"{PODS}/one-2")["status"]["conditions"]
        assert "Insufficient cpu" in waits["message"]
        (counted,) = there["one-0"]["status"]["nodeAllocatableResourceClaimStatuses"]
        assert counted.get("mapping") == ([{"name": "cpu", "quantity": mapped}] if mapped else None)
        assert {"name": "memory", "perPod": "1Gi"} in counted["overhead"]

    async def test_what_devices_take_comes_changes_and_goes_with_their_pool(
        self, plane: Plane, pools: Pools, faults: Faults
    ) -> None:
        nothing = pools.inputs(2, resourceSlices=devices(2))
        name = nothing["name"]
        await pools.create(nothing)
        features = pools.nodes(nothing)[f"{name}-0"]["status"].get("declaredFeatures")

        def taking(amount: str) -> dict[str, Any]:
            taken = {"memory": {"overhead": {"perPod": amount}}}
            return nothing | {"resourceSlices": devices(2, nodeAllocatableResources=taken)}

        def taken() -> set[str]:
            of_all = [device for each in slices(plane, nothing).values() for device in each["spec"]["devices"]]
            return {str(device.get("nodeAllocatableResources")) for device in of_all}

        old = nothing
        for new in (taking("2Gi"), taking("3Gi")):
            await pools.update(new, old)
            assert taken() == {str(new["resourceSlices"]["nodeAllocatableResources"])}
            assert await pools.drift(new) == {}
            old = new
        plane.api.merge(f"{SLICES}/{name}-0-gpu.nvidia.com", {"spec": {"devices": [{"name": "gpu-0"}]}})
        assert list((await pools.drift(old))["resourceSlices"]["altered"]) == [f"{name}-0-gpu.nvidia.com"]
        await pools.update(old, old)
        # The slice of a node that is back is published as soon as the API server knows what the node declares.
        await faults.begin(faults.inputs("reclaimed", {name: "1"}, "spot-reclaim"))
        plane.api.until(SLICES, lambda there: not any(key.startswith(f"{name}-1-") for key in there))
        await faults.end("reclaimed")
        assert await pools.drift(old) == {}
        await pools.update(nothing, old)
        assert taken() == {"None"}
        assert await pools.drift(nothing) == {}
        assert pools.nodes(nothing)[f"{name}-1"]["status"].get("declaredFeatures") == features


class TestWithBindingConditions:
    """Devices that have to be made ready for a node: of one driver they are, of another never, of a third by a test, of
    a fourth in half of the cases."""

    @pytest.fixture(
        scope="class", params=[pytest.param(each, marks=versions.needs(each)) for each in versions.on_offer()]
    )
    @staticmethod
    def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
        bindings = {
            "gpu.nvidia.com": {"after": "4s"},
            "gpu.acme.example": {"failures": 1.0},
            "gpu.flaky.example": {"failures": 0.5},
        }
        gates = {BINDING: True, "DRADeviceTaints": True, "ResourceHealthStatus": True}
        home = tmp_path_factory.mktemp("bound")
        with plane_at(home, request.param, deviceBindings=bindings, featureGates=gates) as made:
            yield made

    async def waiting(
        self, plane: Plane, pools: Pools, driver: str, pods: int = 1
    ) -> tuple[str, Callable[[], dict[str, Any]]]:
        """As many pods as a driver has devices, with a claim each: the name of the first, and what finds its claim."""
        conditions = {"bindingConditions": [READY], "bindingFailureConditions": [FAILED], "bindsToNode": True}
        slices = {"driver": driver, "count": pods, **conditions}
        inputs = pools.inputs(1, resourceSlices=slices, capacity=WITHOUT_GPUS)
        await pools.create(inputs)
        assert await pools.drift(inputs) == {}
        name = inputs["name"]
        selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
        plane.api.create(CLASSES, {"metadata": {"name": name}, "spec": {"selectors": selectors}})
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": name}}]}}
        for each in (name, *(f"{name}-{number}" for number in range(1, pods))):
            plane.api.create(CLAIMS, {"metadata": {"name": each}, "spec": spec})
            body: dict[str, Any] = pod(each, name, cpu="10m")
            body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": each}]
            body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
            plane.api.create(PODS, body)
        return name, lambda: plane.api.get(f"{CLAIMS}/{name}").get("status", {})

    async def test_a_pod_is_bound_once_its_device_is_ready(self, plane: Plane, pools: Pools) -> None:
        name, claim = await self.waiting(plane, pools, "gpu.nvidia.com")
        found = plane.api.until(PODS, lambda found: found[name]["status"]["phase"] == "Running", timeout=60)
        (told,) = claim()["devices"]
        (condition,) = told["conditions"]
        assert (told["pool"], told["device"]) == (f"{name}-0", "gpu-0")
        assert (condition["type"], condition["status"]) == (READY, "True")
        since = datetime.fromisoformat(claim()["allocation"]["allocationTimestamp"])
        ready = datetime.fromisoformat(condition["lastTransitionTime"])
        (scheduled,) = (each for each in found[name]["status"]["conditions"] if each["type"] == "PodScheduled")
        assert (ready - since).total_seconds() >= 3
        assert datetime.fromisoformat(scheduled["lastTransitionTime"]) >= ready.replace(microsecond=0)

    async def test_a_pod_is_told_of_its_device_s_health(self, plane: Plane, pools: Pools, faults: Faults) -> None:
        name, _ = await self.waiting(plane, pools, "gpu.nvidia.com")
        plane.api.until(PODS, lambda found: found[name]["status"]["phase"] == "Running", timeout=60)
        taint: dict[str, Any] = {"capacity": {"nvidia.com/gpu": "-1"}, "devices": "taint"}
        await faults.begin(faults.inputs("ill", {name: "0"}, **taint))

        def told() -> list[Any]:
            statuses = plane.api.get(f"{PODS}/{name}")["status"]["containerStatuses"]
            return [each.get("allocatedResourcesStatus") for each in statuses]

        def of_it(health: str) -> list[Any]:
            return [
                [
                    {
                        "name": "claim:gpu",
                        "resources": [{"resourceID": f"gpu.nvidia.com/{name}-0/gpu-0", "health": health}],
                    }
                ]
            ]

        assert told() == of_it("Unhealthy")
        await faults.end("ill")
        assert told() == of_it("Healthy")
        await faults.begin(faults.inputs("gone", {name: "0"}, capacity={"nvidia.com/gpu": "-1"}))
        assert told() == of_it("Unknown")
        await faults.end("gone")
        assert told() == of_it("Healthy")

    async def test_a_device_that_cannot_be_made_ready_is_given_back(self, plane: Plane, pools: Pools) -> None:
        name, _ = await self.waiting(plane, pools, "gpu.acme.example")

        def tried_again(found: Mapping[str, Any]) -> bool:
            mine = [each for each in found.values() if each["regarding"].get("name") == name]
            begun = [each for each in mine if each["reason"] == "BindingConditionsPending"]
            times = sum((each.get("series") or {}).get("count", 1) for each in begun)
            return times > 1 and any("binding failed" in each.get("note", "") for each in mine)

        plane.api.until(EVENTS, tried_again, timeout=90)
        assert "nodeName" not in plane.api.get(f"{PODS}/{name}")["spec"]

    @ON_ONE_VERSION
    async def test_some_devices_are_ready_at_once_and_others_when_it_was_tried_again(
        self, plane: Plane, pools: Pools
    ) -> None:
        name, _ = await self.waiting(plane, pools, "gpu.flaky.example", pods=20)
        mine = {name, *(f"{name}-{number}" for number in range(1, 20))}
        plane.api.until(
            PODS, lambda found: {found[each]["status"]["phase"] for each in mine} == {"Running"}, timeout=180
        )
        failed = {
            each["regarding"]["name"]
            for each in plane.api.list(EVENTS)
            if "binding failed" in each.get("note", "") and each["regarding"]["name"] in mine
        }
        # By chance it is none of twenty, or all of them, in two of a million runs.
        assert 0 < len(failed) < 20

    @ON_ONE_VERSION
    async def test_devices_of_a_driver_that_nothing_is_said_of_wait_for_its_own_controller(
        self, plane: Plane, pools: Pools
    ) -> None:
        name, claim = await self.waiting(plane, pools, "gpu.other.example")
        plane.api.until(CLAIMS, lambda found: "allocation" in found[name].get("status", {}), timeout=60)
        await asyncio.sleep(5)
        assert "devices" not in claim()
        assert "nodeName" not in plane.api.get(f"{PODS}/{name}")["spec"]
        condition = {"type": READY, "status": "True", "reason": "Attached", "message": ""}
        told = {"driver": "gpu.other.example", "pool": f"{name}-0", "device": "gpu-0"}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [{**condition, "lastTransitionTime": now}]
        status = {"status": {"devices": [{**told, "conditions": conditions}]}}
        plane.api.merge(f"{CLAIMS}/{name}/status", status)
        plane.api.until(PODS, lambda found: found[name]["status"]["phase"] == "Running", timeout=60)


@pytest.mark.parametrize("plane", [pytest.param(OLDEST, marks=versions.needs(OLDEST))], indirect=True, scope="session")
async def test_a_version_that_drops_taints_of_devices_is_told_of(plane: Plane, pools: Pools, faults: Faults) -> None:
    inputs = pools.inputs(1, resourceSlices=devices(2))
    await pools.create(inputs)
    taint: dict[str, Any] = {"capacity": {"nvidia.com/gpu": "-1"}, "devices": "taint"}
    with pytest.raises(
        PartialFailure, match=r"take Kubernetes 1.36 or later, switch the feature gate DRADeviceTaints on"
    ):
        await faults.begin(faults.inputs("ill", {inputs["name"]: "0"}, **taint))


class TestWithoutTheGates:
    """On another one: the gates are off by default only before Kubernetes 1.36."""

    @pytest.fixture(scope="class")
    @staticmethod
    def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
        with plane_at(
            tmp_path_factory.mktemp("undivided"), featureGates={DIVIDED: False, SHARED: False, BINDING: False}
        ) as made:
            yield made

    @pytest.mark.parametrize(
        ("options", "gate", "dropped"),
        [
            ({"migProfiles": PROFILES}, DIVIDED, "consumesCounters"),
            ({"allowMultipleAllocations": True}, SHARED, "allowMultipleAllocations"),
            (
                {"bindingConditions": [READY], "bindingFailureConditions": [FAILED]},
                BINDING,
                "bindingConditions",
            ),
            (
                {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}},
                f"{TAKEN} of Kubernetes 1.37",
                "nodeAllocatableResources",
            ),
        ],
    )
    async def test_a_cluster_that_drops_what_it_does_not_know_is_told_of(
        self, plane: Plane, pools: Pools, options: dict[str, Any], gate: str, dropped: str
    ) -> None:
        inputs = pools.inputs(2, resourceSlices=devices(2, **options))
        with pytest.raises(PartialFailure, match=f"switch the feature gate {gate} on"):
            await pools.create(inputs)
        assert not any(dropped in str(each) for each in plane.api.list(SLICES))
