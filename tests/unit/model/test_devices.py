"""What groups publish for Dynamic Resource Allocation: `resourceSlices`, its rules, and the slices it makes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kumulus.kwok.claim_stages import claim_stages
from kumulus.model.active_faults import ActiveFault, faults_of
from kumulus.model.consequences import consequences
from kumulus.model.device_checks import node_resource_problems
from kumulus.model.devices import Devices, gpu_of
from kumulus.model.errors import SpecError
from kumulus.model.fault_effects import NodeEffects
from kumulus.model.nodes import node_manifest
from kumulus.model.pool_form import pool_from_properties, pool_to_properties
from kumulus.model.pools import Pool
from kumulus.model.slices import SlicePart, device_class_spec, device_uuid, parts_of, slice_manifest, slice_spec
from kumulus.model.totals import totals
from kumulus.nodes.catalog.instances import gpu_products
from kumulus.runtimes.kwok.section import KwokOptions
from kumulus.stackfile.expand import pools
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.resource_slices import device_classes, extended_names
from tests.support.said import problems_of

H100 = "NVIDIA-H100-80GB-HBM3"


def group(slices: object = None, product: str | None = H100, **capacity: str) -> dict[str, Any]:
    resources = {"cpu": "96", "pods": "110", "nvidia.com/gpu": "8"} | capacity
    return {
        "name": "h100",
        "placement": [{"availabilityZone": "use1", "replicas": 3}],
        "nodeTemplate": {"capacity": resources},
        "gpuProduct": product,
        "resourceSlices": slices,
    }


def cluster(*groups: dict[str, Any], **rest: object) -> ClusterSpec:
    return ClusterSpec.checked({"nodeGroups": list(groups), **rest})


def pool(slices: object, product: str | None = H100, **capacity: str) -> Pool:
    (found,) = pools(cluster(group(slices, product, **capacity)), "lab")
    return found


def problems(slices: object, product: str | None = H100, **rest: object) -> dict[str, str]:
    return problems_of(cluster, group(slices, product), under="nodeGroups[0].resourceSlices.", **rest)


def published(slices: object, ordinal: int = 0, **capacity: str) -> dict[str, Any]:
    return slice_manifest(pool(slices, **capacity), SlicePart(ordinal, 0), "a-uid")


# --- what is published -----------------------------------------------------------------------------------------------


def test_a_group_without_the_section_publishes_nothing() -> None:
    made = pool(None)
    assert made.devices is None
    assert "resourceSlices" not in pool_to_properties(made)


def test_a_gpu_says_what_nvidias_driver_says_of_it() -> None:
    manifest = published({}, ordinal=2)
    assert manifest["metadata"]["name"] == "h100-use1-2-gpu.nvidia.com"
    assert manifest["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "h100-use1-2", "uid": "a-uid", "controller": True}
    ]
    spec = manifest["spec"]
    assert (spec["driver"], spec["nodeName"], spec["pool"]["name"]) == ("gpu.nvidia.com", "h100-use1-2", "h100-use1-2")
    assert [device["name"] for device in spec["devices"]] == [f"gpu-{index}" for index in range(8)]
    assert spec["devices"][5] == {
        "name": "gpu-5",
        "attributes": {
            "type": {"string": "gpu"},
            "productName": {"string": "NVIDIA H100 80GB HBM3"},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": "Hopper"},
            "cudaComputeCapability": {"version": "9.0.0"},
            "driverVersion": {"version": "580.95.5"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "addressingMode": {"string": "None"},
            "uuid": {"string": device_uuid("lab", "h100-use1-2", 5)},
            "resource.kubernetes.io/pciBusID": {"string": "0005:01:00.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0005:00"},
        },
        "capacity": {"memory": {"value": "81559Mi"}},
    }


def test_uuids_are_the_same_every_time_and_nowhere_twice() -> None:
    found = [
        device_uuid(cluster, node, index) for cluster in "ab" for node in ("x-1", "x-11", "y-1") for index in range(16)
    ]
    assert len(set(found)) == len(found)
    # Another value would be another GPU to whoever recorded this one.
    assert device_uuid("lab", "h100-use1-2", 5) == "GPU-17537236-e931-52de-9734-ffdf0ac1e0cf"


def test_devices_spread_evenly_over_pcie_roots_and_numa_nodes() -> None:
    spec = published({"pcieRoots": 4, "numaNodes": 2})["spec"]
    attributes = [device["attributes"] for device in spec["devices"]]
    roots = [each["resource.kubernetes.io/pcieRoot"]["string"] for each in attributes]
    assert roots == [f"pci{root:04x}:00" for root in (0, 0, 1, 1, 2, 2, 3, 3)]
    assert [each["resource.kubernetes.io/numaNode"]["int"] for each in attributes] == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("count", "roots"), [(1, None), (8, None), (8, 3), (5, 4), (2, 8), (128, 1), (128, 2), (128, 7)]
)
def test_no_two_devices_share_a_pci_address(count: int, roots: int | None) -> None:
    devices = published({"count": count, "pcieRoots": roots})["spec"]["devices"]
    addresses = {device["attributes"]["resource.kubernetes.io/pciBusID"]["string"] for device in devices}
    assert len(addresses) == count
    assert all(len(address) == 12 for address in addresses)


def test_attributes_and_capacities_of_ones_own_are_added_and_win() -> None:
    slices: dict[str, Any] = {
        "attributes": {
            "architecture": "Other",
            "example.com/tier": "gold",
            "slot": 7,
            "spare": True,
            "firmware": {"version": "1.2.3"},
        },
        "capacity": {"memory": "40Gi", "multiprocessors": 132},
    }
    device = published(slices)["spec"]["devices"][0]
    assert device["capacity"] == {"memory": {"value": "40Gi"}, "multiprocessors": {"value": "132"}}
    added = {name: device["attributes"][name] for name in slices["attributes"]}
    assert added == {
        "architecture": {"string": "Other"},
        "example.com/tier": {"string": "gold"},
        "slot": {"int": 7},
        "spare": {"bool": True},
        "firmware": {"version": "1.2.3"},
    }


def test_another_driver_says_only_what_is_given() -> None:
    slices = {"driver": "gpu.example.com", "count": 2, "attributes": {"productName": "Example 1"}}
    spec = published(slices)["spec"]
    assert spec["driver"] == "gpu.example.com"
    assert set(spec["devices"][0]["attributes"]) == {
        "type",
        "productName",
        "uuid",
        "resource.kubernetes.io/pciBusID",
        "resource.kubernetes.io/pcieRoot",
    }


def test_the_count_is_the_extended_resources_unless_given() -> None:
    four: dict[str, Any] = {"nvidia.com/gpu": "4"}
    assert len(published({}, **four)["spec"]["devices"]) == 4
    assert len(published({"count": 2})["spec"]["devices"]) == 2


def test_an_instance_type_says_all_there_is_to_say() -> None:
    made = cluster({**group({}, None), "nodeTemplate": None, "instanceType": "a2-ultragpu-4g"})
    (found,) = pools(made, "lab")
    assert found.devices is not None
    assert found.devices.count == 4
    assert found.devices.attributes["productName"] == {"string": "NVIDIA A100-SXM4-80GB"}
    assert found.devices.capacity == {"memory": "80Gi"}


def test_gpus_are_offered_besides_the_extended_resource_or_instead_of_it() -> None:
    besides, instead = pool({}), pool({"extendedResource": False})
    assert pool({"extendedResource": "dra"}) == instead
    assert besides.capacity["nvidia.com/gpu"] == besides.allocatable["nvidia.com/gpu"] == "8"
    assert "nvidia.com/gpu" not in {**instead.capacity, **instead.allocatable}
    assert instead.devices == besides.devices
    # Either way a fleet has as many GPUs as it has.
    assert [totals([each]).gpus for each in (besides, instead)] == [24, 24]
    assert totals([besides, instead]).by_group["h100"].gpus == 48


def test_the_plain_form_is_small_json_and_reads_back() -> None:
    made = pool({"pcieRoots": 4, "attributes": {"slot": 7}})
    plain = pool_to_properties(made)
    assert pool_from_properties(json.loads(json.dumps(plain))) == made
    # As protobuf has numbers.
    assert (
        pool_from_properties(json.loads(json.dumps(plain).replace(": 8,", ": 8.0,").replace(": 7}", ": 7.0}"))) == made
    )
    assert len(json.dumps(plain["resourceSlices"])) < 600


def test_a_shared_gpu_has_thousandths_and_a_claim_that_names_nothing_gets_all_of_them() -> None:
    kwok = {"featureGates": {"DRAConsumableCapacity": True}}
    (made,) = pools(cluster(group({"allowMultipleAllocations": True}), kwok=kwok), "lab")
    [first, *_] = slice_manifest(made, SlicePart(0, 0), "a-uid")["spec"]["devices"]
    assert first["allowMultipleAllocations"] is True
    policy = {"default": "1k", "validRange": {"min": "1", "step": "1"}}
    assert first["capacity"]["milli"] == {"value": "1k", "requestPolicy": policy}
    # Who asks for thousandths has not asked for all of the memory.
    assert first["capacity"]["memory"]["requestPolicy"]["default"] == "0"
    assert pool_from_properties(json.loads(json.dumps(pool_to_properties(made)))) == made
    [alone, *_] = published({})["spec"]["devices"]
    assert "allowMultipleAllocations" not in alone
    assert "requestPolicy" not in alone["capacity"]["memory"]


@pytest.mark.parametrize("product", gpu_products())
def test_every_product_of_the_catalog_can_be_published(product: str) -> None:
    made = pool({}, product)
    assert made.devices is not None
    assert made.devices.attributes["productName"]["string"].replace(" ", "-") == product  # type: ignore[union-attr]
    assert pool_from_properties(pool_to_properties(made)) == made


# --- what is refused -------------------------------------------------------------------------------------------------


FAILS = {"bindingFailureConditions": ["Failed"]}


def takes(resource: str, **ways: Any) -> dict[str, Any]:
    return {"nodeAllocatableResources": {resource: ways}}


PART = takes("cpu", mapping={"capacityKey": "milli", "capacityMultiplier": "8m"})


@pytest.mark.parametrize(
    ("slices", "path", "told"),
    [
        ({"count": 0}, "count", "is 0, less than 1; write a number of devices from 1 to 128"),
        ({"count": -3}, "count", "is -3, less than 1"),
        ({"count": 129}, "count", "a ResourceSlice holds at most 128 devices; write 128 or fewer"),
        ({"count": 1.5}, "count", "is 1.5, which is not whole"),
        ({"cuont": 1}, "cuont", "is not a known key; write count"),
        ({"driver": "GPU_X", "count": 1}, "driver", "is not a DNS-1123 name; write gpu-x"),
        ({"attributes": {"my-tier": "x"}}, 'attributes["my-tier"]', "write my_tier"),
        ({"attributes": {"a" * 33: "x"}}, f"attributes.{'a' * 33}", "has 33 characters, at most 32"),
        ({"attributes": {"A_b/c": "x"}}, 'attributes["A_b/c"]', "domain is not a DNS-1123 name"),
        ({"attributes": {"a": "x" * 65}}, "attributes.a", "is 65 bytes long, at most 64"),
        ({"attributes": {"a": []}}, "attributes.a", 'or {version: "1.2.3"}'),
        ({"attributes": {"a": 2**63}}, "attributes.a", "more than"),
        ({"attributes": {"a": {"versoin": "1"}}}, "attributes.a", "write version"),
        ({"attributes": {"a": {"int": "1"}}}, "attributes.a.int", "write a value of the kind int"),
        ({"attributes": {"a": {"version": "580.105.08"}}}, "attributes.a.version", 'write "580.105.8"'),
        ({"attributes": {"a": {"version": "13.0"}}}, "attributes.a.version", 'write "13.0.0"'),
        ({"attributes": {"a": {"version": "v1"}}}, "attributes.a.version", "three numbers"),
        ({"attributes": {"uuid": "GPU-1"}}, "attributes.uuid", "so Kumulus sets it itself"),
        ({"capacity": {"memory": "-1"}}, "capacity.memory", "is negative"),
        ({"capacity": {"a b": "1"}}, 'capacity["a b"]', "write a_b"),
        ({"capacity": {"milli": "5"}, "allowMultipleAllocations": True}, "capacity.milli", "Kumulus sets it itself"),
        ({"allowMultipleAllocations": "yes"}, "allowMultipleAllocations", "not true or false"),
        ({"bindsToNode": "yes"}, "bindsToNode", "not true or false"),
        ({"bindingConditions": "Ready"}, "bindingConditions", "write a list of types of conditions"),
        ({"bindingConditions": ["a b"], **FAILS}, "bindingConditions[0]", "is not a qualified name"),
        ({"bindingConditions": ["A", "A"], **FAILS}, "bindingConditions", "write each once, and at most 4"),
        ({"bindingConditions": [*"ABCDE"], **FAILS}, "bindingConditions", "write each once, and at most 4"),
        ({"bindingConditions": ["A"]}, "bindingFailureConditions", "is missing, and there are bindingConditions"),
        (FAILS, "bindingConditions", "is missing, and there are bindingFailureConditions"),
        ({"bindingConditions": ["Failed"], **FAILS}, "bindingFailureConditions", "has Failed, which bindingConditions"),
        (takes("ram", overhead={"perPod": "1"}), "nodeAllocatableResources.ram", "write cpu, memory or hugepages-2Mi"),
        (takes("cpu"), "nodeAllocatableResources.cpu", "write {overhead: {perPod:"),
        (takes("cpu", overhaed={"perPod": "1"}), "nodeAllocatableResources.cpu.overhaed", "write overhead"),
        (takes("cpu", overhead={}), "nodeAllocatableResources.cpu.overhead", "write perPod, perContainer or both"),
        (takes("cpu", overhead={"perPod": -1}), "nodeAllocatableResources.cpu.overhead.perPod", "is negative"),
        (takes("cpu", mapping={}), "nodeAllocatableResources.cpu.mapping", "has nothing; write deviceMultiplier, or"),
        (takes("cpu", mapping={"capacityKey": "milli"}), "nodeAllocatableResources.cpu.mapping", "has capacityKey;"),
        (
            takes("cpu", mapping={"deviceMultiplier": 0}),
            "nodeAllocatableResources.cpu.mapping.deviceMultiplier",
            "is 0",
        ),
        (
            PART,
            "nodeAllocatableResources.cpu.mapping.capacityKey",
            "write allowMultipleAllocations: true, or deviceMul",
        ),
        (
            takes("cpu", mapping={"capacityKey": "cores", "capacityMultiplier": 1}),
            "nodeAllocatableResources.cpu.mapping.capacityKey",
            '"cores" is no capacity; write one of memory, milli',
        ),
        ({"pcieRoots": 0}, "pcieRoots", "is 0, less than 1"),
        ({"deviceClass": "My Class"}, "deviceClass", "write my-class"),
        ({"driver": "x.example.com", "count": 1, "extendedResource": False}, "extendedResource", "says nothing"),
        ({"driver": "x.example.com"}, "count", "is missing; write count: 8"),
    ],
)
def test_a_mistake_is_told_with_its_path_and_remedy(slices: dict[str, object], path: str, told: str) -> None:
    assert told in problems(slices)[path]


def test_the_problems_of_what_a_device_takes_of_its_node_come_in_the_same_order_every_time() -> None:
    # As JSON objects, mappings have no order that says anything: the order is that of the API's fields.
    amounts = {"perContainer": "-1", "perPod": "-1"}
    found = [each.path for each in node_resource_problems((), {"cpu": {"overhead": amounts}})]
    assert found == ["cpu.overhead.perPod", "cpu.overhead.perContainer"]


def test_nvidias_driver_has_to_know_its_product() -> None:
    told = problems({}, None)
    assert told["nodeGroups[0].gpuProduct"].startswith("is missing, so that resourceSlices cannot say what is there")
    assert pool({"attributes": {"productName": "NVIDIA X1"}}, None).devices is not None
    # A misspelt one is reported once, where it is.
    assert list(problems({}, "NVIDIA-H10-80GB-HBM3")) == ["nodeGroups[0].gpuProduct"]


@pytest.mark.parametrize("version", ["1.33.1", "v1.30.0"])
def test_a_kubernetes_without_the_api_is_refused(version: str) -> None:
    told = problems({}, kubernetesVersion=version)
    assert "does not serve resource.k8s.io/v1" in told["kubernetesVersion"]
    assert 'write "1.35.4" or later' in told["kubernetesVersion"]
    cluster(group({}), kubernetesVersion="1.34.1")
    cluster(group(), kubernetesVersion=version)


@pytest.mark.parametrize(
    ("kwok", "path"),
    [
        ({"featureGates": {"DynamicResourceAllocation": False}}, "kwok.featureGates.DynamicResourceAllocation"),
        ({"runtimeConfig": {"resource.k8s.io/v1": "false"}}, 'kwok.runtimeConfig["resource.k8s.io/v1"]'),
        ({"runtimeConfig": {"api/all": False}}, 'kwok.runtimeConfig["api/all"]'),
    ],
)
def test_a_cluster_with_the_api_off_is_refused(kwok: dict[str, object], path: str) -> None:
    assert "groups have resourceSlices; leave it out" in problems({}, kwok=kwok)[path]
    with pytest.raises(SpecError, match="deviceBindings are of its claims"):
        cluster(kwok={**kwok, "deviceBindings": {"gpu.nvidia.com": {}}})
    with pytest.raises(SpecError, match=r'deviceBindings\.GPU: "GPU" is not a DNS-1123 name; write gpu$'):
        cluster(kwok={"deviceBindings": {"GPU": {}}})


def test_how_devices_are_made_ready_reaches_kwok_as_the_file_says() -> None:
    bindings = {"gpu.nvidia.com": {"after": "1m30s", "failures": 0.25}, "gpu.acme.example": {"after": 0}}
    options = cluster(kwok={"deviceBindings": bindings}).kwok.options()
    # The plugin checks them once more.
    assert KwokOptions.model_validate(options).options() == options
    stages = {each["metadata"]["name"]: each["spec"] for each in claim_stages(options["deviceBindings"])}
    assert {name: each["weight"] for name, each in stages.items()} == {
        "device-ready-gpu.nvidia.com": 750,
        "device-failed-gpu.nvidia.com": 250,
        "device-ready-gpu.acme.example": 1000,
    }
    assert "(90.0) as $seconds" in stages["device-failed-gpu.nvidia.com"]["delay"]["durationFrom"]["jq"]["expression"]


def test_devices_are_bound_by_conditions_and_parts_of_a_gpu_as_it_is() -> None:
    bound: dict[str, Any] = {"bindingConditions": ["Ready"], **FAILS, "bindsToNode": True}
    (found, *_) = published(bound)["spec"]["devices"]
    assert {key: found[key] for key in bound} == bound
    divided = published({**bound, "partitionable": True})["spec"]["devices"]
    assert {"gpu", "mig"} == {each["attributes"]["type"]["string"] for each in divided}
    assert all({key: each[key] for key in bound} == bound for each in divided)
    assert pool_from_properties(pool_to_properties(pool(bound))) == pool(bound)


TAKING = {"featureGates": {"DRANodeAllocatableResources": True}}
OVERHEAD = takes("memory", overhead={"perPod": "2048Mi"})


def test_what_devices_take_of_their_node_is_said_of_each_and_its_nodes_declare_that_they_know_of_it() -> None:
    def of_pool(slices: dict[str, Any], **template: Any) -> Pool:
        asked = group(slices)
        asked["nodeTemplate"] |= template
        (made,) = pools(cluster(asked, kwok=TAKING), "lab")
        return made

    def declared(made: Pool) -> Any:
        return node_manifest(made, 0, "")["status"].get("declaredFeatures")

    for slices in (OVERHEAD, OVERHEAD | {"partitionable": True}):
        made = of_pool(slices)
        devices = slice_spec(made, SlicePart(0, 0))["devices"]
        # As the API server writes it, so that it is not taken for drift.
        written = {"memory": {"overhead": {"perPod": "2Gi"}}}
        assert [each["nodeAllocatableResources"] for each in devices] == [written] * len(devices)
        assert pool_from_properties(json.loads(json.dumps(pool_to_properties(made)))) == made
    shared = of_pool(PART | {"allowMultipleAllocations": True})
    assert pool_from_properties(pool_to_properties(shared)) == shared
    newest = {"nodeInfo": {"kubeletVersion": "v1.37.2"}}
    plain, taking = declared(of_pool({}, **newest)), declared(of_pool(OVERHEAD, **newest))
    assert taking == sorted([*plain, "DRANodeAllocatableResources"])
    named = ["A", "DRANodeAllocatableResources"]
    assert declared(of_pool(OVERHEAD, declaredFeatures=named)) == named
    told = consequences(of_pool({}), of_pool(OVERHEAD)).describe()
    assert told.endswith("3 nodes changed: devices' node resources memory")


@pytest.mark.parametrize(
    ("asked", "path", "told"),
    [
        (
            {},
            "kwok.featureGates.DRANodeAllocatableResources",
            "write featureGates: {DRANodeAllocatableResources: true}",
        ),
        (
            {"kubernetesVersion": "1.36.3"},
            "kubernetesVersion",
            'which has no nodeAllocatableResources of devices; write "1',
        ),
    ],
)
def test_what_devices_take_of_their_node_is_refused_without_the_gate_and_before_kubernetes_1_37(
    asked: dict[str, Any], path: str, told: str
) -> None:
    assert told in problems(OVERHEAD, **asked)[path]
    assert problems(OVERHEAD, **{"kwok": TAKING} | asked).keys() == {*asked}
    # What another cluster's API server drops is told of when it does.
    assert problems(OVERHEAD, runtime="existing", existing={}) == {}


def test_features_that_nodes_declare_must_have_that_of_what_devices_take() -> None:
    asked = group(OVERHEAD)
    asked["nodeTemplate"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
    (told,) = problems_of(cluster, asked, kwok=TAKING).items()
    assert told[0] == "nodeGroups[0].nodeTemplate.declaredFeatures"
    assert told[1].endswith("; add it, or leave declaredFeatures out")


@pytest.mark.parametrize(
    ("slices", "gate"),
    [
        ({"allowMultipleAllocations": True}, "DRAConsumableCapacity"),
        ({"partitionable": True}, "DRAPartitionableDevices"),
        ({"extendedResource": "dra"}, "DRAExtendedResource"),
        ({"bindingConditions": ["Ready"], **FAILS, "bindsToNode": True}, "DRADeviceBindingConditions"),
    ],
)
def test_what_takes_a_feature_gate_is_told_where_it_is_off(slices: dict[str, Any], gate: str) -> None:
    told = problems(slices, kubernetesVersion="1.35.4")
    assert f"write featureGates: {{{gate}: true}}" in told[f"kwok.featureGates.{gate}"]
    # Kubernetes 1.36 and later have it on.
    cluster(group(slices))
    cluster(group(slices), kubernetesVersion="1.35.4", kwok={"featureGates": {gate: True}})
    cluster(group(slices), runtime="existing", existing={})


def test_claims_for_the_extended_resource_are_made_where_a_class_says_so() -> None:
    asked = {"extendedResource": "dra"}
    assert "is empty, and pods get their claims by it" in str(problems({**asked, "deviceClass": ""}))
    (group_of,) = cluster(group(asked)).nodeGroups
    assert extended_names([group_of.resourceSlices, None]) == {"gpu.nvidia.com": "nvidia.com/gpu"}
    assert extended_names([cluster(group({})).nodeGroups[0].resourceSlices]) == {}
    spec = device_class_spec("true", "nvidia.com/gpu")
    assert spec["extendedResourceName"] == "nvidia.com/gpu"
    assert "extendedResourceName" not in device_class_spec("true")


@pytest.mark.parametrize(
    ("fault", "taint"),
    [
        ({"annotations": {"kumulus.io/gpu-xid": "79"}}, {"key": "gpu.nvidia.com/xid", "value": "79"}),
        ({}, {"key": "gpu.nvidia.com/gpu-lost"}),
    ],
)
@pytest.mark.parametrize("divided", [False, True])
def test_a_fault_taints_the_devices_that_it_takes_as_nvidias_driver_does(
    fault: dict[str, Any], taint: dict[str, str], divided: bool
) -> None:
    made = pool({"partitionable": True} if divided else {})
    effects = NodeEffects(capacity={"nvidia.com/gpu": "-2"}, devices="taint", **fault)
    since = "2026-11-27T20:00:00Z"
    struck = replace(made, faults=faults_of(made.name, [ActiveFault("f", effects, {made.name: frozenset({1})}, since)]))

    def tainted(ordinal: int) -> dict[str, Any]:
        slices = [slice_spec(struck, part) for part in parts_of(struck, (ordinal,))]
        devices = [device for each in slices for device in each.get("devices", ())]
        assert {gpu_of(device["name"]) for device in devices} == {f"gpu-{index}" for index in range(8)}
        return {gpu_of(device["name"]): device["taints"] for device in devices if "taints" in device}

    assert tainted(0) == {}
    expected = [{**taint, "effect": "NoSchedule", "timeAdded": since}]
    assert tainted(1) == {"gpu-6": expected, "gpu-7": expected}


DIVIDED = {"featureGates": {"DRAPartitionableDevices": True}}


def test_gpus_are_divided_where_the_product_can_be() -> None:
    divided = {"partitionable": True}
    (made,) = pools(cluster(group(divided), kwok=DIVIDED), "lab")
    assert made.devices is not None
    assert made.devices.mig_profiles == ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
    assert pool_from_properties(pool_to_properties(made)) == made
    assert device_classes([cluster(group(divided), kwok=DIVIDED).nodeGroups[0].resourceSlices]) == {
        "gpu.nvidia.com": "gpu.nvidia.com",
        "mig.nvidia.com": "gpu.nvidia.com",
    }


@pytest.mark.parametrize(
    ("slices", "product", "path", "told"),
    [
        ({}, "NVIDIA-L4", "partitionable", "NVIDIA-L4 cannot be divided; leave it out, or take one of NVIDIA-A100"),
        ({"driver": "gpu.example.com", "count": 1}, H100, "partitionable", "gpu.example.com does not have"),
        ({"attributes": {"productName": "X1"}}, None, "partitionable", "write gpuProduct: NVIDIA-H100-80GB-HBM3"),
        ({"allowMultipleAllocations": True}, H100, "allowMultipleAllocations", "leave one of the two out"),
    ],
)
def test_gpus_that_cannot_be_divided_are_told_of(
    slices: dict[str, object], product: str | None, path: str, told: str
) -> None:
    assert told in problems({**slices, "partitionable": True}, product, kwok=DIVIDED)[path]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"attributes": {f"a{n}": {"int": n} for n in range(30)}},
            "31 attributes and capacities, which is more than 28",
        ),
        ({"bindingConditions": ["Ready"]}, "bindingFailureConditions"),
        (PART, "cpu.mapping.capacityKey: is for claims of a part of a device, and devices are not shared"),
        ({"nodeAllocatableResources": ["cpu"]}, "nodeAllocatableResources: "),
        ({"migProfiles": "1g.10gb"}, "write names of MIG profiles"),
        ({"migProfiles": ["1g.10gb", "huge"]}, "write names of MIG profiles"),
        ({"migProfiles": ["1g.10gb"]}, "has 1 names; write 6"),
        ({"migProfiles": ["1g.10gb"] * 6, "capacity": {}}, "no memory for MIG devices to have parts of"),
        ({"migProfiles": ["1g.10gb"] * 6, "allowMultipleAllocations": True}, "leave one of the two out"),
    ],
)
def test_what_spans_several_keys_is_checked_in_the_plain_form(change: dict[str, object], told: str) -> None:
    plain = pool_to_properties(pool({}))
    plain["resourceSlices"] |= change  # type: ignore[operator]
    with pytest.raises(SpecError, match=told):
        pool_from_properties(plain)


def test_two_drivers_cannot_share_a_class() -> None:
    other = group({"driver": "gpu.example.com", "count": 1, "deviceClass": "gpu.nvidia.com"}) | {"name": "other"}
    with pytest.raises(SpecError, match=r"nodeGroups\[1\].*already the class of the driver gpu.nvidia.com"):
        cluster(group({}), other)


# --- what a change means ---------------------------------------------------------------------------------------------


def test_devices_gained_and_lost_are_told() -> None:
    def one(replicas: int, devices: Devices | None) -> Pool:
        return Pool("h100-use1", "h100", "use1", "", replicas, {}, devices=devices)

    eight = Devices("gpu.nvidia.com", 8, {"productName": {"string": "a"}})
    assert (
        consequences(one(5, eight), one(8, eight)).describe().endswith("+3 nodes (5 → 8): +24 gpu.nvidia.com devices")
    )
    assert consequences(one(5, eight), one(5, None)).describe().endswith("5 nodes changed: −40 gpu.nvidia.com devices")
    renamed = Devices("gpu.nvidia.com", 8, {"productName": {"string": "b"}})
    told = consequences(one(5, eight), one(5, renamed)).describe()
    assert told.endswith("5 nodes changed: device attributes productName")
