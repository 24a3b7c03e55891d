"""Options of the kwok runtime that the rest of a stack file requires, in addition to its section ``kwok``."""

from __future__ import annotations

from typing import Any

from kumulus.stackfile.load import Loaded
from kumulus.stackfile.machine_prices import machine_prices
from kumulus.stackfile.model import ClusterSpec


def local_options(loaded: Loaded) -> dict[str, Any]:
    """All of them; a fault of pods is a stage, which KWOK has to read from the cluster."""
    stages = {"stageObjects": True} if any(fault.pods for fault in loaded.faults) else {}
    asked = loaded.spec.observability
    measured = {"observability": asked.options(), "prices": machine_prices(loaded)} if asked else {}
    queued = {"kueue": dict(loaded.kueue)} if loaded.kueue is not None else {}
    scaled = {"autoscaler": loaded.autoscaler} if loaded.autoscaler else {}
    return {**stages, **cluster_options(loaded.spec), **measured, **queued, **scaled}


def cluster_options(spec: ClusterSpec) -> dict[str, Any]:
    """Those that pod lifecycles and usage require: applied in place."""
    options: dict[str, Any] = {"stageObjects": True} if spec.podLifecycles else {}
    # Prometheus and metrics-server read the usage of nodes and pods even where it is zero.
    if spec.podUsage or spec.observability:
        has_gpus = any(float(group.nodeTemplate.capacity.get("nvidia.com/gpu", 0)) for group in spec.nodeGroups)
        options["podUsage"] = "gpus" if has_gpus else "pods"
    return options
