"""Where pods go that have to run: not to nodes that would only emulate them."""

from __future__ import annotations

from typing import Any

from spec.pools import POOL_LABEL


def affinity() -> dict[str, Any]:
    """The ``affinity`` of a pod that a kubelet has to run: neither a stack's nodes nor others that KWOK plays."""
    terms = [
        {"key": POOL_LABEL, "operator": "DoesNotExist"},
        {"key": "type", "operator": "NotIn", "values": ["kwok"]},
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
