"""Amounts of what nodes have and pods ask for, as whole numbers that are quick to add up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kumulus.extras.schedulers.pod_requests import Requests
from kumulus.model.quantity import NANO, ZERO, Quantity, QuantityError, parse
from kumulus.model.totals import is_gpu


class Amounts(NamedTuple):
    """What a node has to offer, or what is requested from it."""

    cpu: int = 0
    """Thousandths of a core."""
    memory: int = 0
    """Bytes."""
    gpus: int = 0
    """Pieces, of every resource whose name ends in ``/gpu``."""
    pods: int = 0

    def plus(self, other: Amounts) -> Amounts:
        """The sum."""
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.gpus + other.gpus, self.pods + other.pods)

    def minus(self, other: Amounts) -> Amounts:
        """The difference."""
        return Amounts(self.cpu - other.cpu, self.memory - other.memory, self.gpus - other.gpus, self.pods - other.pods)

    def most(self, other: Amounts) -> Amounts:
        """The greater of each."""
        return Amounts(*map(max, self, other))


NOTHING = Amounts()


def amounts(resources: Mapping[str, Any]) -> Amounts:
    """Read a map of quantities by name, in its protobuf form."""
    cpu = memory = gpus = slots = 0
    for name, quantity in resources.items():
        if name == "cpu":
            cpu = _scaled(quantity.string, 1000)
        elif name == "memory":
            memory = _scaled(quantity.string, 1)
        elif name == "pods":
            slots = _scaled(quantity.string, 1)
        elif is_gpu(name):
            gpus += _scaled(quantity.string, 1)
    return Amounts(cpu, memory, gpus, slots)


def of_requests(requests: Requests) -> Amounts:
    """What a pod requests, in these units, rounded up as the scheduler does."""
    return Amounts(
        cpu=_ceiling(requests.get("cpu", ZERO), 1000),
        memory=_ceiling(requests.get("memory", ZERO), 1),
        gpus=sum(_ceiling(amount, 1) for name, amount in requests.items() if is_gpu(name)),
    )


# A fleet has few distinct quantities, each thousands of times.
@lru_cache(maxsize=8192)
def _scaled(written: str, factor: int) -> int:
    """A quantity times a factor, rounded up as the scheduler does; 0 for an invalid one."""
    try:
        return _ceiling(parse(written), factor)
    except QuantityError:
        return 0


def _ceiling(amount: Quantity, factor: int) -> int:
    return -(-amount.nanos * factor // NANO)
