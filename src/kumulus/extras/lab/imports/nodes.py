"""Nodes and devices of a benchmark, as node groups of a stack file have them."""

from collections.abc import Mapping, Sequence
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.manifest import Object
from kumulus.model.devices import PER_DEVICE

_READ = {"name", "attributes", "capacity"}


def group_of(node: Object) -> dict[str, Any]:
    """The node group of a node's template."""
    labels = dict(node["metadata"].get("labels") or {})
    # Each node has its own.
    labels.pop("kubernetes.io/hostname", None)
    status = node.get("status") or {}
    made: dict[str, Any] = {"nodeTemplate": {"capacity": status.get("capacity") or {}}}
    if labels:
        made["nodeTemplate"]["metadata"] = {"labels": labels}
    if allocatable := status.get("allocatable"):
        made["nodeTemplate"]["allocatable"] = allocatable
    made["nodeTemplate"]["taints"] = (node.get("spec") or {}).get("taints") or []
    return made


def labelled(group: Mapping[str, Any], more: Mapping[str, str]) -> dict[str, Any]:
    """A node group whose nodes have more labels."""
    template = group["nodeTemplate"]
    if labels := {**template.get("metadata", {}).get("labels", {}), **more}:
        template = {**template, "metadata": {"labels": labels}}
    return {**group, "nodeTemplate": template}


def resource_slices(groups: Sequence[dict[str, Any]], made: Object, count: int) -> list[str]:
    """Give the devices of slices, one for each node, to the last node group; returns what is left out.

    Args:
        groups: the node groups so far; the last is changed.
        made: one of the slices.
        count: how many there are.

    Raises:
        LabError: a node group has no such devices.
    """
    spec = made["spec"]
    devices = spec.get("devices") or []
    if unread := sorted({key for each in devices for key in each} - _READ):
        raise LabError(f"devices with {', '.join(unread)}")
    if not devices or "nodeName" not in spec:
        raise LabError("slices without devices, or not of one node")
    if not groups or groups[-1]["placement"][0]["replicas"] != count:
        raise LabError(f"{count} slices, for other nodes than those made last")
    first, *others = devices
    alike = {
        name: value
        for name, value in first.get("attributes", {}).items()
        if name not in PER_DEVICE and all(each.get("attributes", {}).get(name) == value for each in others)
    }
    groups[-1]["resourceSlices"] = {
        "driver": spec["driver"],
        "count": len(devices),
        "attributes": {name: _plain(value) for name, value in alike.items()},
        "capacity": {name: value["value"] for name, value in first.get("capacity", {}).items()},
        "deviceClass": "",
    }
    left = sorted({name for each in devices for name in each.get("attributes", {})} - {*alike, *PER_DEVICE})
    return [f"attributes that differ from device to device: {', '.join(left)}"] if left else []


def _plain(value: dict[str, Any]) -> Any:
    return value if "version" in value else next(iter(value.values()))
