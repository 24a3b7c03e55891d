"""The catalog of instance types and GPU products: the resources of the clouds' machines, read from YAML files.

A test checks every entry, so nothing here reports malformed ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml

from kumulus.kube.safe_yaml import FAST_LOADER
from kumulus.model.gfd import GPU_RESOURCE, GpuProduct

CATALOG = Path(__file__).parent
PODS = "110"
"""The kubelet's default limit, which a cloud's Kubernetes may raise; `nodeTemplate.capacity.pods` does so here."""


@dataclass(frozen=True)
class Cloud:
    """What the catalog says of a cloud, apart from its machines."""

    zone: str
    """A zone of it, in a region that the catalog has prices for."""
    spot: tuple[str, str]
    """The label of a spot machine, as the cloud's Kubernetes sets it."""
    node_pool: str
    """The key of the label that names a node's pool."""


@dataclass(frozen=True)
class InstanceType:
    """A machine of a cloud."""

    name: str
    """As the cloud calls it, a3-highgpu-8g."""
    cloud: str
    """The name of the cloud's file."""
    capacity: Mapping[str, str]
    """Resource names to quantities, `pods` and all GPUs included."""
    product: str
    """The GPU's product as in nvidia.com/gpu.product; empty without GPUs."""
    machine: str
    """The type that the machine itself reports, as in nvidia.com/gpu.machine."""
    architecture: str
    """`amd64` or `arm64`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the cloud's Kubernetes sets on such nodes."""
    source: str = ""
    """Where the figures are from, a URL."""


@cache
def clouds() -> Mapping[str, Cloud]:
    """Every cloud of the catalog, by the name of its file."""
    return {
        name: Cloud(raw["zone"], next(iter(raw["spot"].items())), raw["nodePool"]) for name, raw in _clouds().items()
    }


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Every instance type of the catalog, by name."""
    found: dict[str, InstanceType] = {}
    for cloud, raw in _clouds().items():
        for family in raw["families"]:
            for name, entry in family["types"].items():
                gpus = {GPU_RESOURCE: str(entry["gpus"])} if entry.get("gpus") else {}
                native = {
                    "cpu": entry["cpu"],
                    "memory": entry["memory"],
                    "ephemeral-storage": entry["disk"],
                    "pods": PODS,
                }
                found[name] = InstanceType(
                    name=name,
                    cloud=cloud,
                    capacity={**native, **gpus, **entry.get("resources", {})},
                    product=family.get("product", ""),
                    machine=raw["machine"] or name,
                    architecture=family.get("architecture", "amd64"),
                    labels=family.get("labels", {}),
                    source=family["source"],
                )
    return found


def types_with_gpu(name: str) -> list[InstanceType]:
    """The instance types with a GPU of which the name is a part, such as ``h100``; those with the most GPUs first."""
    every = [each for each in instance_types().values() if each.product]
    found = [each for each in every if name.upper() in each.product.upper().replace("_", "-").split("-")]
    return sorted(found, key=lambda each: -int(each.capacity[GPU_RESOURCE]))


@cache
def gpu_products() -> Mapping[str, GpuProduct]:
    """Every GPU product of the catalog, by name."""
    raw = _read("gpus")
    found = {}
    for name, entry in raw["products"].items():
        major, _, minor = entry["compute"].partition(".")
        found[name] = GpuProduct(
            name=name,
            model=entry.get("model", name.replace("-", " ")),
            memory=entry["memoryMiB"],
            compute=(int(major), int(minor)),
            mig=bool(entry.get("mig")),
            driver=raw["driver"],
            cuda=raw["cuda"],
            source=entry["source"],
        )
    return found


@cache
def mig_profiles() -> Mapping[str, tuple[str, ...]]:
    """The MIG profile names of every GPU product that has MIG, in the order of `kumulus.model.devices.PROFILES`."""
    products = _read("gpus")["products"]
    return {name: tuple(entry["mig"]) for name, entry in products.items() if "mig" in entry}


@cache
def _clouds() -> Mapping[str, Mapping[str, Any]]:
    found = {path.stem: _read(f"clouds/{path.stem}") for path in (CATALOG / "clouds").glob("*.yaml")}
    return dict(sorted(found.items(), key=lambda each: each[1]["rank"]))


def _read(name: str) -> dict[str, Any]:
    text = (CATALOG / f"{name}.yaml").read_text(encoding="utf-8")
    return cast(dict[str, Any], yaml.load(text, Loader=FAST_LOADER))  # noqa: S506 - a safe loader
