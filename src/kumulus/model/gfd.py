"""The labels of GPU nodes: those of NVIDIA's GPU Feature Discovery, and the fake GPU operator's.

Source: NVIDIA/k8s-device-plugin (2026-08), internal/lm: `resource.go`, `nvml.go`, `machine-type.go` and `vgpu.go`, for
whole GPUs without sharing. `nvidia.com/gfd.timestamp` is left out, since it differs on every node and is of no use.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from kumulus.model.checks import label_problems, problem, unknown_key_problems
from kumulus.model.errors import Problem, Where, shown

GPU_RESOURCE = "nvidia.com/gpu"
SHARE_RESOURCE = "kumulus.io/gpu-milli"
"""A pod's request for part of one GPU, in thousandths: an extended resource. Every scheduler counts it on nodes that
declare it, 1000 per GPU; with a policy, kube-scheduler ignores it (`ignoredResources` of NodeResourcesFit)."""
GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
SIMULATED_POOL_LABEL = "run.ai/simulated-gpu-node-pool"
"""Tells the fake GPU operator which of its pools a node belongs to."""
GPU_OPERATOR = {"gpu-status-updater": "status-updater", "kwok-gpu-device-plugin": "kwok-gpu-device-plugin"}
"""The fake GPU operator's programs that run alongside a cluster: as the toolchain calls them, and as its builds do."""
DRA_PLUGIN = "kwok-dra-plugin"
DRA_IMAGE = f"ghcr.io/run-ai/fake-gpu-operator/{DRA_PLUGIN}"
"""The image of its DRA plugin for KWOK's nodes, without a tag."""

UNKNOWN_MACHINE = "unknown"
# The labels from which the others follow, by their names in the compact form.
_COMPACT = {
    "product": GPU_PRODUCT_LABEL,
    "count": f"{GPU_RESOURCE}.count",
    "memory": f"{GPU_RESOURCE}.memory",
    "major": f"{GPU_RESOURCE}.compute.major",
    "minor": f"{GPU_RESOURCE}.compute.minor",
    "mig": "nvidia.com/mig.capable",
    "machine": f"{GPU_RESOURCE}.machine",
    "driver": "nvidia.com/cuda.driver-version.full",
    "cuda": "nvidia.com/cuda.runtime-version.full",
}
_NUMBER = "[0-9]{1,9}"
# Patterns of their values; others may have any.
_PATTERNS = {
    **dict.fromkeys(("count", "memory", "major", "minor"), _NUMBER),
    "mig": "true|false",
    "driver": rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}",
    "cuda": rf"{_NUMBER}\.{_NUMBER}",
}


@dataclass(frozen=True)
class GpuProduct:
    """A GPU as its driver describes it."""

    name: str
    """As in nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3."""
    model: str
    """As the driver names it: NVIDIA H100 80GB HBM3."""
    memory: int
    """In MiB, as nvidia-smi shows it."""
    compute: tuple[int, int]
    """Compute capability, major and minor."""
    mig: bool
    """Whether it can be divided into MIG devices."""
    driver: str
    """Version of the driver, 580.95.05."""
    cuda: str
    """Version of CUDA that the driver brings, 13.0."""
    source: str
    """Where the figures are from, a URL."""


def gfd_labels(product: GpuProduct, count: int, machine: str) -> dict[str, str]:
    """The labels that GPU Feature Discovery and the GPU operator set on a node; an empty `machine` is unknown."""
    major, minor = product.compute
    driver = product.driver.split(".")
    cuda = product.cuda.split(".")
    return {
        "nvidia.com/gpu.present": "true",
        GPU_PRODUCT_LABEL: product.name,
        f"{GPU_RESOURCE}.count": str(count),
        f"{GPU_RESOURCE}.replicas": "1",
        f"{GPU_RESOURCE}.sharing-strategy": "none",
        f"{GPU_RESOURCE}.memory": str(product.memory),
        f"{GPU_RESOURCE}.family": family(major, minor),
        f"{GPU_RESOURCE}.compute.major": str(major),
        f"{GPU_RESOURCE}.compute.minor": str(minor),
        f"{GPU_RESOURCE}.mode": "compute",
        f"{GPU_RESOURCE}.machine": machine or UNKNOWN_MACHINE,
        "nvidia.com/mig.capable": str(product.mig).lower(),
        "nvidia.com/mps.capable": "false",
        "nvidia.com/vgpu.present": "false",
        "nvidia.com/cuda.driver.major": driver[0],
        "nvidia.com/cuda.driver.minor": driver[1],
        "nvidia.com/cuda.driver.rev": driver[2],
        "nvidia.com/cuda.driver-version.major": driver[0],
        "nvidia.com/cuda.driver-version.minor": driver[1],
        "nvidia.com/cuda.driver-version.revision": driver[2],
        "nvidia.com/cuda.driver-version.full": product.driver,
        "nvidia.com/cuda.runtime.major": cuda[0],
        "nvidia.com/cuda.runtime.minor": cuda[1],
        "nvidia.com/cuda.runtime-version.major": cuda[0],
        "nvidia.com/cuda.runtime-version.minor": cuda[1],
        "nvidia.com/cuda.runtime-version.full": product.cuda,
    }


def family(major: int, minor: int) -> str:
    """The architecture of a compute capability: ada-lovelace for 8.9."""
    if major == 7:
        return "volta" if minor < 5 else "turing"
    if major == 8:
        return "ampere" if minor < 9 else "ada-lovelace"
    return {9: "hopper", 10: "blackwell", 12: "blackwell"}.get(major, "undefined")


def compacted(labels: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The labels without those of a GPU, and in their place the compact form: the few values that they follow from.

    The compact form is empty if not all labels of a GPU are there; no label is left out then. A stack's state has every
    pool twice, and the 26 labels of a GPU would be most of it.
    """
    gpu = {name: labels[label] for name, label in _COMPACT.items() if label in labels}
    if gpu_problems((), gpu):
        return dict(labels), {}
    derived = expanded(gpu)
    if not derived.keys() <= labels.keys():
        return dict(labels), {}
    return {key: value for key, value in labels.items() if derived.get(key) != value}, gpu


def expanded(gpu: Mapping[str, str]) -> dict[str, str]:
    """The labels that a compact form, already checked, stands for."""
    product = GpuProduct(
        name=gpu["product"],
        model="",
        memory=int(gpu["memory"]),
        compute=(int(gpu["major"]), int(gpu["minor"])),
        mig=gpu["mig"] == "true",
        driver=gpu["driver"],
        cuda=gpu["cuda"],
        source="",
    )
    return gfd_labels(product, int(gpu["count"]), gpu["machine"])


def gpu_problems(where: Where, raw: object) -> list[Problem]:
    """Problems of the compact form: a mapping with all of its keys, each value a string."""
    if wrong := label_problems(where, raw):
        return wrong
    gpu = cast(Mapping[str, str], raw)
    found = unknown_key_problems(where, gpu, _COMPACT)
    for name, label in _COMPACT.items():
        value = gpu.get(name)
        if value is None or not re.fullmatch(_PATTERNS.get(name, ".*"), value):
            found.append(problem((*where, name), f"is {shown(value)}", f"write the value of the label {label}"))
    return found
