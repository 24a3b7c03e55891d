"""Affinity of pods that really have to run, to keep them off emulated nodes."""

from __future__ import annotations

from typing import Any

from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL

SELECTOR = f"!{POOL_LABEL},!{CLUSTER_LABEL},type!=kwok"
"""The same as :func:`affinity`, as a label selector of nodes."""


def affinity() -> dict[str, Any]:
    """The ``affinity`` of a pod that needs a real kubelet: neither a stack's nodes nor others emulated by KWOK."""
    terms = [
        {"key": POOL_LABEL, "operator": "DoesNotExist"},
        # An autoscaler's nodes belong to no pool.
        {"key": CLUSTER_LABEL, "operator": "DoesNotExist"},
        {"key": "type", "operator": "NotIn", "values": ["kwok"]},
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
