"""Prices of nodes and pods over a period, for cluster-autoscaler's expander `price`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kumulus.kube.messages import message_classes
from kumulus.model.pools import Pool
from kumulus.model.quantity import ZERO, parse

_HOUR = 3600.0
# Each pod takes one of these, but they have no price.
_FREE = frozenset({"pods"})


def hours(start: Any, end: Any) -> float:
    """The time between two `Timestamp` messages, in hours."""
    seconds: float = end.seconds - start.seconds + (end.nanos - start.nanos) / 1e9
    return max(0.0, seconds) / _HOUR


def requested(pod: bytes) -> dict[str, int]:
    """What a pod's containers ask for together, in billionths of each resource's unit.

    Args:
        pod: a v1 Pod in protobuf. Requests of its init containers are ignored, as they are short-lived.
    """
    found: dict[str, int] = {}
    for container in message_classes()["Pod"].FromString(pod).spec.containers:
        for name, quantity in container.resources.requests.items():
            found[name] = found.get(name, 0) + parse(quantity.string).nanos
    return found


def cheapest(pools: Iterable[Pool], hourly: Mapping[str, float], wanted: Mapping[str, int]) -> float | None:
    """The lowest price of an hour of a pod, in US dollars: on the group where its share costs the least.

    Its share of a machine is the largest of its shares of the machine's resources.

    Args:
        pools: the groups.
        hourly: what an hour of a node costs, by pool.
        wanted: what the pod requests, from :func:`requested`.

    Returns:
        None if no group with a price has all of it.
    """
    found = []
    for pool in pools:
        has = {name: parse(pool.allocatable.get(name, "0")).nanos for name in wanted.keys() - _FREE}
        if pool.name in hourly and all(wanted[name] <= amount for name, amount in has.items()):
            shares = [wanted[name] / amount for name, amount in has.items() if amount > ZERO.nanos]
            found.append(hourly[pool.name] * max(shares, default=0.0))
    return min(found, default=None)
