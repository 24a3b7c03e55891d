"""Options that pod lifecycles and usage require of a cluster on the kwok runtime."""

from __future__ import annotations

from typing import Any

from kumulus.stackfile.model import ClusterSpec


def cluster_options(spec: ClusterSpec) -> dict[str, Any]:
    """Options of the kwok runtime in addition to the stack file's section ``kwok``: applied in place."""
    options: dict[str, Any] = {"stageObjects": True} if spec.podLifecycles else {}
    # Prometheus and metrics-server read the usage of nodes and pods even where it is zero.
    if spec.podUsage or spec.observability:
        has_gpus = any(float(group.nodeTemplate.capacity.get("nvidia.com/gpu", 0)) for group in spec.nodeGroups)
        options["podUsage"] = "gpus" if has_gpus else "pods"
    return options
