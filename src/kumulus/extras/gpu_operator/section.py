"""The fake GPU operator of a stack, `gpuOperator`: its programs, and its pools, which follow from the node groups."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from kumulus.model.checks import problem
from kumulus.model.devices import NVIDIA_DRIVER
from kumulus.model.errors import Problem
from kumulus.model.gfd import DRA_IMAGE, DRA_PLUGIN, GPU_OPERATOR, GPU_PRODUCT_LABEL, GPU_RESOURCE, SIMULATED_POOL_LABEL
from kumulus.model.quantity import NANO, parse
from kumulus.runtimes import registry
from kumulus.stackfile.plain import runtime_of
from kumulus.stackfile.section import ClusterSection

if TYPE_CHECKING:
    from kumulus.stackfile.load import LoadedCluster

CHART = "oci://ghcr.io/run-ai/fake-gpu-operator/fake-gpu-operator"


class FakeGpuOperator(ClusterSection):
    """Runs the fake GPU operator alongside the cluster, for the node groups with `gpuOperator` (docs/fleets.md)."""

    after: ClassVar[str] = "podUsage"
    binaries: str = Field(default="", examples=["bin"])
    """The folder with your own builds of its programs, status-updater and kwok-gpu-device-plugin, relative to the
    project's directory; by default those of `kumulus tools --with fake-gpu-operator`."""
    dra: bool = Field(default=False, examples=["true"])
    """Whether its DRA plugin for KWOK's nodes publishes their GPUs as ResourceSlices, as a pod that is a process:
    `kwok.processes` names its image (docs/fleets.md)."""

    @classmethod
    def rules(cls, raw: Mapping[str, object]) -> Iterator[Problem]:
        """See :meth:`ClusterSection.rules`: it is for a cluster whose components run next to it."""
        runtime, own = runtime_of(raw), raw.get("gpuOperator")
        if isinstance(own, Mapping) and own.get("dra") is True:
            yield from _dra_problems(raw)
        if runtime and not runtime.local and own is not None:
            remedy = f"install its chart by clusterAddons, {CHART}, or write runtime: {registry.DEFAULT}"
            yield problem(
                ("gpuOperator",), f"is not for the runtime {runtime.name}, whose nodes run its images", remedy
            )

    def parts(self, loaded: LoadedCluster) -> Sequence[str]:
        """See :meth:`ClusterSection.parts`: none with programs of the user's own."""
        return () if self.binaries else ("gpuOperator",)

    def runtime_option(self, loaded: LoadedCluster, base: Path) -> tuple[dict[str, Any], list[Problem]]:
        """See :meth:`ClusterSection.runtime_option`: its programs' folder, if it is the user's, and its pools."""
        groups = [group.name for group in loaded.spec.nodeGroups]
        found: dict[str, dict[str, Any]] = {}
        problems = []
        for pool in loaded.pools:
            if not (name := pool.labels.get(SIMULATED_POOL_LABEL)):
                continue
            has = _gpus(pool.capacity, pool.labels)
            path = f"nodeGroups[{groups.index(pool.group)}].gpuOperator"
            if has is None:
                remedy = "write gpuProduct and the capacity's nvidia.com/gpu, or an instanceType with GPUs"
                problems.append(Problem(path, "is without GPUs that the operator could know of", remedy))
            elif found.setdefault(name, has) != has:
                message = f"{name} has other GPUs in another group, and the nodes of a pool have the same"
                problems.append(Problem(f"{path}.simulatedPool", message, "write another simulatedPool"))
        if not found and not problems:
            remedy = "write gpuOperator: {} on the node groups that it is for"
            problems.append(Problem("gpuOperator", "has nothing to do: no node group has one", remedy))
        programs, missing = _programs(self, base)
        return {"pools": found, **programs, **({"dra": True} if self.dra else {})}, [*dict.fromkeys(problems), *missing]


def _dra_problems(raw: Mapping[str, object]) -> Iterator[Problem]:
    """What is wrong between the DRA plugin and the rest of a cluster's mapping."""
    kwok, groups = raw.get("kwok"), raw.get("nodeGroups")
    named = kwok.get("processes") if isinstance(kwok, Mapping) else None
    if not (isinstance(named, Mapping) and DRA_IMAGE in named):
        message = "runs as a pod that is a process, and kwok.processes does not name its image"
        remedy = f"write kwok: {{processes: {{{DRA_IMAGE}: ./bin/{DRA_PLUGIN}}}}}"
        yield problem(("gpuOperator", "dra"), message, remedy)
    for index, group in enumerate(groups if isinstance(groups, list | tuple) else ()):
        slices = group.get("resourceSlices") if isinstance(group, Mapping) else None
        if isinstance(slices, Mapping) and slices.get("driver", NVIDIA_DRIVER) == NVIDIA_DRIVER:
            message = f"are of {NVIDIA_DRIVER}, whose devices the operator's DRA plugin publishes"
            where = ("nodeGroups", index, "resourceSlices")
            yield problem(where, message, "leave them out, or gpuOperator.dra")


def _gpus(capacity: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, Any] | None:
    """What the operator knows of a pool: how many GPUs a node has, and which; None if that is not known."""
    product, memory = labels.get(GPU_PRODUCT_LABEL), labels.get(f"{GPU_RESOURCE}.memory", "")
    count = parse(capacity.get(GPU_RESOURCE, "0")).nanos // NANO
    if not (count and product and memory.isdecimal()):
        return None
    return {"gpuProduct": product, "gpuCount": count, "gpuMemory": int(memory)}


def _programs(asked: FakeGpuOperator, base: Path) -> tuple[dict[str, Any], list[Problem]]:
    if not asked.binaries:
        return {}, []
    folder = Path(base, os.path.expanduser(asked.binaries)).absolute()
    programs = {tool: folder / name for tool, name in GPU_OPERATOR.items()}
    remedy = "write the folder of its programs, which its `make build` calls bin, or leave it out"
    problems = [
        Problem("gpuOperator.binaries", f"{file} is no program that can be run", remedy)
        for file in programs.values()
        if not (file.is_file() and os.access(file, os.X_OK))
    ]
    return {"programs": {tool: str(file) for tool, file in programs.items()}}, problems
