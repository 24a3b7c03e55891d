"""Where pods go that have to run: not to nodes that would only emulate them."""

from __future__ import annotations

from typing import Any

from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL

SELECTOR = f"!{POOL_LABEL},!{CLUSTER_LABEL},type!=kwok"
"""The same as :func:`affinity`, as a selector of nodes by their labels."""


def affinity() -> dict[str, Any]:
    """The ``affinity`` of a pod that a kubelet has to run: neither a stack's nodes nor others that KWOK plays."""
    terms = [
        {"key": POOL_LABEL, "operator": "DoesNotExist"},
        # An autoscaler's are of no pool.
        {"key": CLUSTER_LABEL, "operator": "DoesNotExist"},
        {"key": "type", "operator": "NotIn", "values": ["kwok"]},
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
