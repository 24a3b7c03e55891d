"""ResourceClaims and their templates in a capture: of any version of the API, in full or under words."""

import copy
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.capture import putting
from kumulus.extras.capture.claims import is_made
from kumulus.extras.capture.devices import gates
from kumulus.extras.capture.following import WorkloadFile, difference
from kumulus.extras.capture.reading import captured
from kumulus.extras.capture.words import Words
from tests.unit.extras.capture.files import put_back, written
from tests.unit.extras.capture.test_devices import DRIVER, device, device_class, device_slice

API = "resource.k8s.io/v1"
MADE, BY_SCHEDULER = (f"resource.kubernetes.io/{name}" for name in ("pod-claim-name", "extended-resource-claim"))
EXPRESSION = f'device.attributes["{DRIVER}"].breed == "Acme One"'
ASKED = {
    "deviceClassName": "acme",
    "selectors": [{"cel": {"expression": EXPRESSION}}],
    "allocationMode": "ExactCount",
    "count": 2,
}
SPEC: dict[str, Any] = {
    "devices": {
        "requests": [
            {"name": "gpus", "exactly": ASKED},
            {
                "name": "any",
                "firstAvailable": [{"name": "large", **ASKED}, {"name": "small", "deviceClassName": "acme"}],
            },
        ],
        "constraints": [{"requests": ["gpus", "any/large"], "matchAttribute": f"{DRIVER}/litter"}],
    }
}
GIVEN = {
    "devices": {"results": [{"request": "any/large", "driver": DRIVER, "pool": "n0", "device": "gpu-0"}]},
    "nodeSelector": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]
    },
}


def claim(name: str = "shared", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "labels": {"app": "train"}, **more}
    reserved = [{"resource": "pods", "name": "p", "uid": "1"}]
    status = {"allocation": GIVEN, "reservedFor": reserved, "devices": [{"driver": DRIVER}]}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": SPEC, "status": status}


def template() -> dict[str, Any]:
    metadata = {"name": "two", "namespace": "team"}
    spec = {"metadata": {"labels": {"app": "train"}, "annotations": {"secret": "x"}}, "spec": SPEC}
    return {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


def of_pod(annotation: str, kind: str = "Pod") -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": kind, "name": "train-0", "uid": "7", "controller": True}
    return claim("train-0-gpus-x7k2p", annotations={annotation: "gpus"}, ownerReferences=[owner])


def test_what_claims_ask_for_and_have_is_kept_and_who_has_it_is_not(tmp_path: Path) -> None:
    files = written(tmp_path / "one", None, template(), claim())
    kept_template, kept = put_back(tmp_path / "one")
    assert kept_template["spec"] == {"metadata": {"labels": {"app": "train"}}, "spec": SPEC}
    assert kept["metadata"] == {"name": "shared", "namespace": "team", "labels": {"app": "train"}}
    assert (kept["spec"], kept["status"]) == (SPEC, {"allocation": GIVEN})
    assert "secret" not in files["workload.yaml"]
    assert putting.posted(kept) == {**{key: kept[key] for key in ("apiVersion", "kind", "metadata")}, "spec": SPEC}


def test_claims_of_the_oldest_api_are_as_the_newest_has_them(tmp_path: Path) -> None:
    old = [copy.deepcopy(each) for each in (template(), claim())]
    for each, spec in zip(old, (old[0]["spec"]["spec"], old[1]["spec"]), strict=True):
        each["apiVersion"] = "resource.k8s.io/v1beta1"
        exact = spec["devices"]["requests"][0]
        exact.update(exact.pop("exactly"))
    assert written(tmp_path / "old", None, *old) == written(tmp_path / "new", None, template(), claim())


def test_a_claim_made_of_a_template_is_kept_as_the_devices_of_its_pod(tmp_path: Path) -> None:
    made = of_pod(MADE)
    written(tmp_path / "one", None, made)
    (kept,) = put_back(tmp_path / "one")
    assert kept["metadata"] == {"namespace": "team", "name": "train-0/gpus"}, "no object has this name"
    assert kept["pod"] == {"name": "train-0", "claim": "gpus"}
    assert kept["status"] == {"allocation": GIVEN}
    assert "spec" not in kept
    assert is_made(kept)
    assert not is_made(claim())
    others = ({**made, "status": {}}, of_pod(BY_SCHEDULER), of_pod(MADE, kind="Kingdom"))
    assert [captured("ResourceClaim", each, API) for each in others] == [None, None, None]
    group = captured("ResourceClaim", of_pod(MADE, kind="PodGroup"), API)
    assert group is not None
    assert is_made(group)
    assert (group["podGroup"], "pod" in group) == ({"name": "train-0", "claim": "gpus"}, False)
    assert group["metadata"]["name"] != kept["metadata"]["name"]


def test_under_words_claims_name_what_they_named(tmp_path: Path) -> None:
    words = Words()
    container = {"name": "c", "resources": {"claims": [{"name": "gpus", "request": "any"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpus", "resourceClaimName": "shared"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-0", "namespace": "team"}, "spec": spec}
    devices = device_slice("s", "n0", device("gpu-0")), device_class(EXPRESSION)
    files = written(tmp_path / "one", words, *devices, claim(), of_pod(MADE), pod)
    for name in ("acme", "Acme", "shared", "gpus", "train-0", "litter"):
        assert name not in files["workload.yaml"], name
    documents = put_back(tmp_path / "one")
    by_kind = {each["kind"]: each for each in documents if not is_made(each)}
    (made,) = [each for each in documents if is_made(each)]
    kept, shape = by_kind["ResourceClaim"], by_kind["PodShape"]["spec"]
    exact, other = kept["spec"]["devices"]["requests"]
    assert exact["exactly"]["deviceClassName"] == by_kind["DeviceClass"]["metadata"]["name"]
    assert exact["exactly"]["selectors"] == by_kind["DeviceClass"]["spec"]["selectors"]
    large = f"{other['name']}/{other['firstAvailable'][0]['name']}"
    (constraint,) = kept["spec"]["devices"]["constraints"]
    assert constraint["requests"] == [exact["name"], large]
    of_slice = by_kind["ResourceSlice"]["spec"]
    assert constraint["matchAttribute"] in of_slice["devices"][0]["attributes"]
    for each in (kept, made):
        (given,) = each["status"]["allocation"]["devices"]["results"]
        assert given == {
            "request": large,
            "driver": of_slice["driver"],
            "pool": of_slice["pool"]["name"],
            "device": of_slice["devices"][0]["name"],
        }
    (asked,) = shape["resourceClaims"]
    assert asked["resourceClaimName"] == kept["metadata"]["name"]
    assert made["pod"] == {"name": words.name("train-0"), "claim": asked["name"]}
    assert shape["containers"][0]["resources"]["claims"] == [{"name": asked["name"], "request": other["name"]}]


@pytest.mark.parametrize(
    ("field", "gate"),
    [
        ({"tolerations": [{"operator": "Exists"}]}, "DRADeviceTaints"),
        ({"capacity": {"requests": {"milli": "400"}}}, "DRAConsumableCapacity"),
        ({"adminAccess": True}, "DRAAdminAccess"),
    ],
)
def test_a_claim_says_which_gate_it_needs(field: dict[str, Any], gate: str) -> None:
    assert gates([claim(), template()]) == {}
    exact = {"devices": {"requests": [{"name": "a", "exactly": field}]}}
    other = {"devices": {"requests": [{"name": "a", "firstAvailable": [field]}]}}
    assert gates([{**claim(), "spec": exact}]) == {gate: True}
    assert gates([{**template(), "spec": {"spec": other}}]) == {gate: True}


def test_following_leaves_made_claims_and_devices_to_who_gives_them() -> None:
    kept, made = (captured("ResourceClaim", each, API) for each in (claim(), of_pod(MADE)))
    assert kept is not None
    assert made is not None
    before = WorkloadFile({("ResourceClaim", "team", "shared"): kept, ("ResourceClaim", "team", "train-0/gpus"): made})
    moved = copy.deepcopy(kept)
    moved["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-1"
    changes = difference(before, WorkloadFile({("ResourceClaim", "team", "shared"): moved}))
    assert (changes.gone, changes.objects, changes.patches) == ([], [], [])
