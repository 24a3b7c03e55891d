"""Slices and classes of devices and the claims of them, of any API version, in the newest; what a clone needs for them.

Source: k8s.io/api/resource v1, v1beta2 and v1beta1; pkg/registry/resource/resourceslice and deviceclass (strategy.go:
which fields an API server drops while a feature gate is off). Checked against Kubernetes 1.35 to 1.37.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kumulus.model.devices import NODE_ALLOCATABLE

DEVICE_API = "resource.k8s.io/v1"
DEVICE_KINDS = ("DeviceClass", "ResourceSlice")
CLAIM_KINDS = ("ResourceClaim", "ResourceClaimTemplate")
# Fields that an API server drops silently while their gate is off, the default up to Kubernetes 1.35 at least.
_OF_SLICE = {"sharedCounters": "DRAPartitionableDevices", "perDeviceNodeSelection": "DRAPartitionableDevices"}
_OF_DEVICE = {
    "consumesCounters": "DRAPartitionableDevices",
    "taints": "DRADeviceTaints",
    "bindsToNode": "DRADeviceBindingConditions",
    "bindingConditions": "DRADeviceBindingConditions",
    "bindingFailureConditions": "DRADeviceBindingConditions",
    "allowMultipleAllocations": "DRAConsumableCapacity",
    "nodeAllocatableResources": NODE_ALLOCATABLE,
}
_OF_REQUEST = {
    "tolerations": "DRADeviceTaints",
    "capacity": "DRAConsumableCapacity",
    "adminAccess": "DRAAdminAccess",
}


def as_v1(raw: Mapping[str, Any]) -> dict[str, Any]:
    """An object in the form of v1: v1beta1 has a device's fields in `basic`. Other versions are not changed."""
    spec = raw.get("spec")
    devices = spec.get("devices") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(devices, list):
        return dict(raw)
    lifted = [
        {**each["basic"], **{key: value for key, value in each.items() if key != "basic"}}
        if isinstance(each, Mapping) and isinstance(each.get("basic"), Mapping)
        else each
        for each in devices
    ]
    return {**raw, "spec": {**spec, "devices": lifted}}


def claim_as_v1(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a claim in the form of v1: v1beta1 has the fields of its `exactly` in the request itself."""
    devices = spec.get("devices") or {}
    lifted = [
        each
        if "exactly" in each or each.get("firstAvailable")
        else {"name": each.get("name"), "exactly": {key: value for key, value in each.items() if key != "name"}}
        for each in devices.get("requests") or ()
    ]
    return {**spec, "devices": {**devices, "requests": lifted}}


def gates(objects: Iterable[Mapping[str, Any]]) -> dict[str, bool]:
    """The feature gates without which a cluster would not keep all fields of captured slices, classes and claims."""
    found: set[str] = set()
    for each in objects:
        spec = each.get("spec") or {}
        found.update(gate for field, gate in _OF_SLICE.items() if field in spec)
        if "extendedResourceName" in spec:
            found.add("DRAExtendedResource")
        if each["kind"] in CLAIM_KINDS:
            found |= _gates_of_claim(spec.get("spec", spec))
            continue
        for device in spec.get("devices", ()):
            found.update(gate for field, gate in _OF_DEVICE.items() if field in device)
            if any("requestPolicy" in capacity for capacity in device.get("capacity", {}).values()):
                found.add("DRAConsumableCapacity")
    return dict.fromkeys(sorted(found), True)


def _gates_of_claim(spec: Mapping[str, Any]) -> set[str]:
    requests = spec.get("devices", {}).get("requests", ())
    asked = [one for each in requests for one in (each.get("exactly", {}), *each.get("firstAvailable", ()))]
    return {gate for field, gate in _OF_REQUEST.items() if any(field in each for each in asked)}


def owned(manifest: dict[str, Any], uids: Mapping[str, str]) -> dict[str, Any]:
    """A slice to post; a node's slice is deleted with the node, like one that a kubelet's plugin publishes."""
    node = str((manifest.get("spec") or {}).get("nodeName") or "")
    if node not in uids:
        return manifest
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uids[node], "controller": True}
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}}
