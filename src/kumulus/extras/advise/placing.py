"""Placing pods one by one as kube-scheduler does by default, since it may not find a packing that exists.

The scores are those of NodeResourcesFit with LeastAllocated and of NodeResourcesBalancedAllocation; ties are random.
Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources, least_allocated.go and balanced_allocation.go.
Offline runs of experiments place by policies for GPUs, and know neither selectors nor the limit of pods on a node.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kumulus.extras.advise.demand import Shape
from kumulus.extras.advise.offers import Offer

_SCORED = ("cpu", "memory")
# What the scheduler's scores assume for a container that requests nothing: 100m and 200 MiB.
_LEAST = {"cpu": 100, "memory": 200 << 20}
# Below every score.
_NONE = -1.0


@dataclass(frozen=True)
class Packing:
    """The result of placing pods.

    Args:
        pending: how many of each shape found no node.
        used: how many nodes have pods.
    """

    pending: tuple[int, ...]
    used: int


def place(offers: Sequence[Offer], nodes: Sequence[int], shapes: Sequence[Shape], seed: int = 0) -> Packing:
    """Place pods, one shape after the other, in the given order.

    Args:
        offers: the machines.
        nodes: how many of each there are.
        shapes: the pods.
        seed: for the random choice among equal nodes.
    """
    kinds = np.repeat(np.arange(len(offers)), nodes)
    resources = sorted({resource for shape in shapes for resource in shape.wants} | set(_SCORED))
    has = np.array([[offer.has.get(resource, 0) for resource in resources] for offer in offers], dtype=np.int64)
    free = has[kinds]
    scored = [resources.index(resource) for resource in _SCORED]
    there = np.maximum(free[:, scored], 1).astype(float)
    counted = np.zeros_like(there)
    source = random.Random(seed)
    pending = []
    touched = np.zeros(len(kinds), dtype=bool)
    # By group, the nodes that have their one pod of it.
    taken = {shape.apart: np.zeros(len(kinds), dtype=bool) for shape in shapes if shape.apart}
    for shape in shapes:
        wants = np.array([shape.wants.get(resource, 0) for resource in resources], dtype=np.int64)
        weight = np.array([shape.wants.get(resource) or _LEAST[resource] for resource in _SCORED], dtype=float)
        open_to = np.array([offer.takes(shape) for offer in offers])[kinds]
        fitting = open_to & (free >= wants).all(axis=1)
        if shape.apart:
            fitting &= ~taken[shape.apart]
        # Among pods of one shape, only the score of the node that took the last pod changes.
        scores = np.where(fitting, _scores(counted + weight, there), _NONE)
        left = shape.count
        while left and (top := scores.max(initial=_NONE)) > _NONE:
            best = np.flatnonzero(scores == top)
            chosen = int(best[source.randrange(len(best))])
            free[chosen] -= wants
            counted[chosen] += weight
            touched[chosen] = True
            left -= 1
            if shape.apart:
                taken[shape.apart][chosen] = True
            full = bool(shape.apart) or bool((free[chosen] < wants).any())
            one = slice(chosen, chosen + 1)
            scores[chosen] = _NONE if full else _scores(counted[one] + weight, there[one])[0]
        pending.append(left)
    return Packing(tuple(pending), int(touched.sum()))


def _scores(asked: npt.NDArray[np.double], there: npt.NDArray[np.double]) -> npt.NDArray[np.double]:
    shares = np.minimum(asked / there, 1.0)
    least = np.floor(((1.0 - shares) * 100).mean(axis=1))
    scores: npt.NDArray[np.double] = least + np.floor((1.0 - shares.std(axis=1)) * 100)
    return scores
