"""What a user's manifest says of pods: their templates, and how many its controller makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Object = dict[str, Any]
COUNTED = ("Pod", "Job", "Deployment", "ReplicaSet", "StatefulSet", "JobSet")
"""Kinds of which it is known how many pods their objects have."""


def pod_templates(node: Any) -> Iterator[Object]:
    """Every pod template within an object, however deep; a Pod is its own."""
    if isinstance(node, Mapping):
        spec = node.get("spec")
        if isinstance(spec, Mapping) and isinstance(spec.get("containers"), list):
            assert isinstance(node, dict)
            yield node
            return
        for each in node.values():
            yield from pod_templates(each)
    elif isinstance(node, list):
        for each in node:
            yield from pod_templates(each)


def expected_pods(each: Object) -> int:
    """How many pods an object's controller makes; 0 where that is not known."""
    kind, spec = each.get("kind"), each.get("spec") or {}
    if kind == "Pod":
        return 1
    if kind == "Job":
        parallelism = spec.get("parallelism", 1)
        return int(min(parallelism, spec.get("completions", parallelism)))
    if kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        return int(spec.get("replicas", 1))
    if kind == "JobSet":
        return sum(
            int(part.get("replicas", 1)) * int(part.get("template", {}).get("spec", {}).get("parallelism", 1))
            for part in spec.get("replicatedJobs") or []
        )
    return 0
