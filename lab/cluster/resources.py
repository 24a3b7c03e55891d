"""What a node has and a pod requests, as the few numbers that are accounted for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from spec.quantity import ZERO, Quantity, QuantityError, parse
from spec.totals import is_gpu

if TYPE_CHECKING:
    from kube import Client


class Amount(NamedTuple):
    """GPUs, CPUs and bytes of memory."""

    gpus: float = 0.0
    cpus: float = 0.0
    memory: float = 0.0

    def plus(self, other: Amount, times: float = 1.0) -> Amount:
        """The sum of this and so many times another."""
        return Amount(*(mine + times * theirs for mine, theirs in zip(self, other, strict=True)))


@lru_cache(maxsize=4096)
def _number(written: str) -> float:
    try:
        return float(parse(written).nanos) / 1e9
    except QuantityError:
        return 0.0


def amount(resources: Mapping[str, Any]) -> Amount:
    """The amount of a mapping of resources to quantities."""
    gpus = sum(_number(str(value)) for name, value in resources.items() if is_gpu(name))
    return Amount(gpus, _number(str(resources.get("cpu", 0))), _number(str(resources.get("memory", 0))))


def requested(pod: Mapping[str, Any]) -> Amount:
    """What a pod requests of its node: its containers together, or more where an init container wants more.

    Source: k8s.io/component-helpers/resource `PodRequests`; sidecars are counted as containers.
    """
    spec = pod["spec"]
    total = Amount()
    for container in spec["containers"]:
        total = total.plus(amount((container.get("resources") or {}).get("requests") or {}))
    largest = Amount()
    for container in spec.get("initContainers") or ():
        wanted = amount((container.get("resources") or {}).get("requests") or {})
        if container.get("restartPolicy") == "Always":
            total = total.plus(wanted)
        else:
            largest = Amount(*map(max, largest, wanted))
    return Amount(*map(max, total, largest))


async def allocatable(client: Client) -> dict[str, str]:
    """What all nodes have for pods together, by resource; without the number of pods, which is no request.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    total: dict[str, Quantity] = {}
    async for page in client.pages("/api/v1/nodes"):
        for node in page:
            for resource, written in (node["status"].get("allocatable") or {}).items():
                total[resource] = total.get(resource, ZERO) + parse(written)
    return {resource: str(amount) for resource, amount in sorted(total.items()) if resource != "pods"}
