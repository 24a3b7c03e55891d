"""What the nodes of a run cost: each node's price for as long as it is there, summed up as nodes come and go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kumulus.extras.lab.policies.pod import WHOLE_GPU
from kumulus.extras.watch.live.amounts import Amounts

_HOUR = 3600.0
# Prices are added up as whole billionths of a dollar: a million additions and removals leave no remainder.
_NANO = 1_000_000_000


@dataclass(slots=True)
class _Node:
    """A node that is counted: its price per hour, the part of that for which nothing runs, and milli-GPU of pods."""

    price: int
    idle: int
    milli: int


def idle_share(has: Amounts, used: Amounts, shares: int = 0) -> float:
    """The share of a node that nothing runs on: of its GPUs; without any, of CPU or memory, whichever is used more.

    Args:
        has: what pods can have of it.
        used: what pods have of it, in whole GPUs.
        shares: milli-GPU that pods have of it in addition.
    """
    if has.gpus:
        parts = [(used.gpus * WHOLE_GPU + shares) / (has.gpus * WHOLE_GPU)]
    else:
        parts = [taken / there for taken, there in ((used.cpu, has.cpu), (used.memory, has.memory)) if there]
    return min(1.0, max(0.0, 1.0 - max(parts, default=1.0)))


class Meter:
    """Adds up what nodes cost, exact to the moment at which each comes or goes.

    Between two events nothing changes, so that a sum over the events is the integral. Nodes without a price are counted
    separately and cost nothing.

    Args:
        now: seconds, on any clock that does not go back.
    """

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self._now = now
        self._nodes: dict[str, _Node] = {}
        self._without: set[str] = set()
        self._ended = False
        self._price = self._idle = self._milli = 0
        self.begin()

    def begin(self) -> None:
        """Count from now on: earlier time costs nothing."""
        self._at = self._now()
        self._spent = self._wasted = self._milli_seconds = 0.0
        self._peak = self._price
        self._most_without = len(self._without)
        self._any = bool(self._nodes)

    def end(self) -> None:
        """Count until now: later time costs nothing."""
        self._advance()
        self._ended = True

    @property
    def hourly(self) -> float:
        """What the present nodes cost, in US dollars per hour."""
        return self._price / _NANO

    def put(self, name: str, hourly: float | None, has: Amounts, used: Amounts, shares: int = 0) -> None:
        """Add a node, or update what pods have of it.

        Args:
            name: the node's.
            hourly: its price in US dollars per hour; None where none is known.
            has: what pods can have of it.
            used: what pods have of it, in whole GPUs.
            shares: milli-GPU that pods have of it in addition.
        """
        self.take(name)
        if self._ended:
            return
        if hourly is None:
            self._without.add(name)
            self._most_without = max(self._most_without, len(self._without))
            return
        price = round(hourly * _NANO)
        node = _Node(price, round(price * idle_share(has, used, shares)), used.gpus * WHOLE_GPU + shares)
        self._nodes[name] = node
        self._any = True
        self._add(node, +1)
        self._peak = max(self._peak, self._price)

    def take(self, name: str) -> None:
        """Remove a node."""
        if self._ended:
            return
        self._without.discard(name)
        if node := self._nodes.pop(name, None):
            self._add(node, -1)

    def measures(self) -> dict[str, float]:
        """The measures of cost; none if no node had a price."""
        if not self._any:
            return {}
        self._advance()
        spent = self._spent / _NANO / _HOUR
        found = {
            "cost.total": spent,
            "cost.perHourEnd": self.hourly,
            "cost.perHourPeak": self._peak / _NANO,
            "cost.wasted": self._wasted / _NANO / _HOUR,
            "cost.unpricedNodes": self._most_without,
        }
        if self._spent > 0:
            found["cost.wastedShare"] = self._wasted / self._spent
        if self._milli_seconds > 0:
            found["cost.perGpuHour"] = spent / (self._milli_seconds / WHOLE_GPU / _HOUR)
        return found

    def _add(self, node: _Node, sign: int) -> None:
        self._advance()
        self._price += sign * node.price
        self._idle += sign * node.idle
        self._milli += sign * node.milli

    def _advance(self) -> None:
        if self._ended:
            return
        now = self._now()
        passed, self._at = now - self._at, now
        self._spent += passed * self._price
        self._wasted += passed * self._idle
        self._milli_seconds += passed * self._milli
