"""Devices of DRA in a capture: of any version of the API, in full or under words, and what a clone needs for them."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.capture import cel
from kumulus.extras.capture.cel import CannotRename, renamed
from kumulus.extras.capture.devices import as_v1, gates, owned
from kumulus.extras.capture.groups import node_name
from kumulus.extras.capture.words import Words
from tests.unit.extras.capture.files import put_back, written

DRIVER = "gpu.acme.example"


def device(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "attributes": {
            "breed": {"string": "Acme One"},
            f"{DRIVER}/litter": {"string": "one"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:01"},
            "index": {"int": 0},
            "shared": {"bool": False},
            "driverVersion": {"version": "1.2.3-acme"},
        },
        "capacity": {"memory": {"value": "80Gi"}},
        **more,
    }


def device_slice(name: str, node: str, *devices: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name, "uid": "1", "labels": {"x": "y"}},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 3, "resourceSliceCount": 1},
            "devices": list(devices),
            **more,
        },
    }


def device_class(expression: str, **more: Any) -> dict[str, Any]:
    spec = {"selectors": [{"cel": {"expression": expression}}], "config": [{"opaque": {"driver": "x"}}], **more}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "acme"}, "spec": spec}


def test_what_a_scheduler_reads_of_slices_and_classes_is_kept_whole(tmp_path: Path) -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "80Gi", "step": "1Gi"}}
    whole = device(
        "gpu-0",
        allowMultipleAllocations=True,
        consumesCounters=[{"counterSet": "memory", "counters": {"slice-0": {"value": "1"}}}],
        taints=[{"key": "acme.example/broken", "value": "fan", "effect": "NoExecute"}],
        bindsToNode=True,
        bindingConditions=["acme.example/attached"],
        bindingFailureConditions=["acme.example/failed"],
        nodeAllocatableResources={
            "cpu": {"mapping": {"capacityKey": "memory", "capacityMultiplier": "1m"}},
            "memory": {"mapping": {"deviceMultiplier": "1Gi"}, "overhead": {"perPod": "2Gi", "perContainer": "1Mi"}},
        },
    )
    whole["capacity"]["memory"]["requestPolicy"] = policy
    raws = [
        device_slice("n0-a", "n0", whole),
        device_slice("n0-b", "n0", sharedCounters=[{"name": "memory", "counters": {"slice-0": {"value": "8"}}}]),
        device_class(f"device.driver == '{DRIVER}'", extendedResourceName="acme.example/gpu"),
    ]
    raws[1]["spec"].pop("devices")
    files = written(tmp_path / "one", None, *copy.deepcopy(raws))
    back = {each["metadata"]["name"]: each["spec"] for each in put_back(tmp_path / "one")}
    assert back["n0-a"] == raws[0]["spec"]
    assert back["n0-b"] == raws[1]["spec"]
    del raws[2]["spec"]["config"]
    assert back["acme"] == raws[2]["spec"]
    on = yaml.safe_load(files["stack.yaml"])["config"]["kumulus:cluster"]["kwok"]["featureGates"]
    assert sorted(on) == [
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRANodeAllocatableResources",
        "DRAPartitionableDevices",
    ]
    assert "configuration in DeviceClasses" in files["left-out.md"]
    assert "DRADeviceTaints" in files["left-out.md"]


def test_plain_devices_need_no_feature_gate() -> None:
    assert gates([device_slice("a", "n0", device("gpu-0")), device_class("true")]) == {}


def test_slices_of_an_older_api_are_as_the_newest_has_them(tmp_path: Path) -> None:
    new = device_slice("a", "n0", device("gpu-0"))
    old = copy.deepcopy(new)
    old["apiVersion"] = "resource.k8s.io/v1beta1"
    (entry,) = old["spec"]["devices"]
    old["spec"]["devices"] = [{"name": entry.pop("name"), "basic": entry}]
    assert written(tmp_path / "old", None, old) == written(tmp_path / "new", None, new)
    odd: object
    for odd in (None, [], {"devices": 3}, {"devices": ["x", {"basic": 4}]}):
        as_v1({"spec": odd})


def test_the_order_of_devices_and_the_name_of_a_long_node_are_as_in_the_clone(tmp_path: Path) -> None:
    name = "n" * 80
    raw = device_slice("a", name, *(device(f"gpu-{number}") for number in (3, 1, 2)))
    written(tmp_path / "out", None, raw)
    (kept,) = put_back(tmp_path / "out")
    assert [each["name"] for each in kept["spec"]["devices"]] == ["gpu-3", "gpu-1", "gpu-2"]
    assert kept["spec"]["nodeName"] == node_name(name)
    assert len(node_name(name)) < len(name)


def test_under_words_devices_are_as_equal_and_as_different_as_before(tmp_path: Path) -> None:
    words = Words()
    raws = [
        device_slice("s0", "n0", device("gpu-0"), device("gpu-1")),
        device_slice("s1", "n1", device("gpu-0")),
        device_class(f'device.attributes["{DRIVER}"].breed == "Acme One" && device.driver == "{DRIVER}"'),
    ]
    files = written(tmp_path / "shared", words, *raws)
    for name in ("acme", "Acme", "one", "breed", "litter"):
        assert f'"{name}' not in files["workload.yaml"], name
    back = {each["kind"] + each["metadata"]["name"]: each for each in put_back(tmp_path / "shared")}
    first, second = back[f"ResourceSlice{words.name('s0')}"]["spec"], back[f"ResourceSlice{words.name('s1')}"]["spec"]
    assert first["driver"] == second["driver"] == words.driver(DRIVER)
    assert first["nodeName"] == first["pool"]["name"] == words.name("n0")
    assert first["devices"][0] == second["devices"][0]
    assert first["devices"][0]["name"] != first["devices"][1]["name"]
    one = first["devices"][0]["attributes"]
    model, own = words.attribute("breed"), words.attribute(f"{DRIVER}/litter")
    assert own.startswith(f"{first['driver']}/")
    assert one[model] == {"string": words.device_text("Acme One")}
    assert one["resource.kubernetes.io/pcieRoot"] == {"string": "pci0000:01"}
    assert (one["index"], one[words.attribute("shared")]) == ({"int": 0}, {"bool": False})
    assert one["driverVersion"]["version"].startswith("1.2.3-")
    rule = back[f"DeviceClass{words.name('acme')}"]["spec"]["selectors"][0]["cel"]["expression"]
    assert rule == (
        f'device.attributes["{first["driver"]}"].{model} == "{one[model]["string"]}" '
        f'&& device.driver == "{first["driver"]}"'
    )
    # Identifiers of CEL have no dashes; a report is translated back all the same.
    assert "-" not in model
    assert words.back(f"device.{model}") == "device.breed"
    assert list(one) == sorted(one)


def test_vendors_own_words_stay() -> None:
    words = Words()
    assert words.driver("gpu.nvidia.com") == "gpu.nvidia.com"
    for text in ("NVIDIA H100 80GB HBM3", "gpu", "Hopper", "0000:01:00.0", "1g.10gb", "7", "true"):
        assert words.device_text(text) == text
    for text in ("GPU-30c62f14-a887-8902-9eaa-bfd76dc19647", "acme", "gpu acme", "pci0000:00:acme"):
        assert "acme" not in words.device_text(text)
        assert words.device_text(text) != text
    assert (words.attribute("productName"), words.attribute("gpu.nvidia.com/uuid")) == (
        "productName",
        "gpu.nvidia.com/uuid",
    )
    assert words.version("580.95.5") == "580.95.5"
    assert "acme" not in words.version("1.2.3+acme") + words.version("acme")
    assert words.version("1.2.3+acme").startswith("1.2.3+")


def test_a_driver_is_the_same_text_in_a_slice_and_in_a_rule_whatever_it_is() -> None:
    words = Words()
    for driver in ("gpu", "gpu.nvidia.com", "7", "acme.example", "Hopper"):
        assert cel.renamed(f'device.driver == "{driver}"', words) == f'device.driver == "{words.driver(driver)}"'


def test_a_rule_that_cannot_be_renamed_is_left_out_and_named(tmp_path: Path) -> None:
    words = Words()
    files = written(tmp_path / "shared", words, device_class("device.driver.startsWith('acme')"))
    assert put_back(tmp_path / "shared") == []
    assert "acme" not in "".join(files.values())
    assert f"- DeviceClass {words.name('acme')}: in its rule, names cannot be separated" in files["left-out.md"]
    kept = written(tmp_path / "named", None, device_class("device.driver.startsWith('acme')"))
    assert "startsWith('acme')" in kept["workload.yaml"]
    assert "cannot be told" not in kept["left-out.md"]


def test_a_slice_of_a_node_goes_with_it() -> None:
    raw = device_slice("a", "n0")
    (owner,) = owned(raw, {"n0": "u0"})["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "Node", "name": "n0", "uid": "u0", "controller": True}
    assert "ownerReferences" not in owned(raw, {"n1": "u1"})["metadata"]


def test_a_clone_of_a_clone_is_the_same(tmp_path: Path) -> None:
    raws = [device_slice("s0", "n0", device("gpu-0")), device_class('device.driver == "x"')]
    first = written(tmp_path / "one", None, *raws)
    served = [json.loads(json.dumps(each)) for each in put_back(tmp_path / "one")]
    assert written(tmp_path / "two", None, *served) == first


class Marked(Words):
    """Says of each text what it was taken for."""

    def driver(self, text: str) -> str:
        return f"D:{text}"

    def attribute(self, text: str) -> str:
        return f"A_{text}"

    def device_text(self, text: str) -> str:
        return f"T:{text}"

    def version(self, text: str) -> str:
        return f"V:{text}"


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("device.driver == 'gpu.acme'", 'device.driver == "T:gpu.acme"'),
        ('"x" == device.driver', '"T:x" == device.driver'),
        ('device.attributes["d"].model == "m"', 'device.attributes["D:d"].A_model == "T:m"'),
        ('device.attributes["d"]["model"] == "m"', 'device.attributes["D:d"]["A_model"] == "T:m"'),
        ('device.attributes["d"].type == "in"', 'device.attributes["D:d"].A_type == "T:in"'),
        ("device.attributes[device.driver].driver", "device.attributes[device.driver].A_driver"),
        ('device.attributes["d"].a in ["x", "y"]', 'device.attributes["D:d"].A_a in ["T:x", "T:y"]'),
        ('"d" in device.attributes && true', '"D:d" in device.attributes && true'),
        ('"m" in device.attributes["d"] || false', '"A_m" in device.attributes["D:d"] || false'),
        ('has(device.attributes["d"].m)', 'has(device.attributes["D:d"].A_m)'),
        ('device.attributes["d"].?m.orValue("x") == "x"', 'device.attributes["D:d"].?A_m.orValue("T:x") == "T:x"'),
        (
            'device.capacity["d"].memory.compareTo(quantity("40Gi")) >= 0',
            'device.capacity["D:d"].A_memory.compareTo(quantity("40Gi")) >= 0',
        ),
        (
            'device.attributes["d"].v.isGreaterThan(semver("1.2.3-acme"))',
            'device.attributes["D:d"].A_v.isGreaterThan(semver("V:1.2.3-acme"))',
        ),
        ('device.attributes["d"].index >= 3u', 'device.attributes["D:d"].A_index >= 3u'),
        ("device.driver ==\n  'x'", 'device.driver ==   "T:x"'),
        ("device.driver == 'a\"b'", 'device.driver == "T:a\\"b"'),
    ],
)
def test_a_name_is_found_by_where_it_stands(written: str, found: str) -> None:
    assert renamed(written, Marked()) == found


@pytest.mark.parametrize(
    "written",
    [
        "device.driver.startsWith('acme')",
        'device.attributes["d"].model.matches("acme.*")',
        'device.attributes["d"].model < "acme"',
        'device.attributes["d"].model + "acme" == "x"',
        '"acme".size() == 4',
        'r"acme" == device.driver',
        '"""acme""" == device.driver',
        '"ac\\u006de" == device.driver',
        '["acme"].exists(acme, acme == device.driver)',
        'cel.bind(acme, device.attributes["d"], acme.model == "x")',
        '"acme" in device.driver',
        '"acme" in device.attributes["d"].list',
        'quantity("acme").sign() == 1',
        'quantity("1.2.3").sign() == 1',
        f'quantity("{"7" * 40}").sign() == 1',
        "device.acme",
        "acme",
        "device.driver == 'x' // acme",
        "device.driver == 'acme",
        "device.driver == b'acme'",
        "🙂",
    ],
)
def test_where_it_is_not_sure_what_is_a_name_nothing_is_renamed(written: str) -> None:
    with pytest.raises(CannotRename):
        renamed(written, Marked())
