"""What the nodes of a run cost: each node's price for as long as it is there, summed up as nodes come and go."""

from __future__ import annotations

from collections.abc import Callable

from kumulus.extras.lab.policies.pod import WHOLE_GPU
from kumulus.extras.watch.live.amounts import Amounts

_HOUR = 3600.0
# Prices are added up as whole billionths of a dollar: a million additions and removals leave no remainder.
_NANO = 1_000_000_000


class OverTime:
    """Adds up amounts of nodes over time, exact to the moment at which a node, or what pods have of it, changes.

    Between two events nothing changes, so that a sum over the events is the integral.

    Args:
        now: seconds, on any clock that does not go back.
    """

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self._now, self._ended = now, False
        self._nodes: dict[str, tuple[int, int, int]] = {}
        self._sums = [0, 0, 0]
        self.begin()

    def begin(self) -> None:
        """Count from now on: earlier time counts for nothing."""
        self._at, self._spent = self._now(), [0.0, 0.0, 0.0]

    def end(self) -> None:
        """Count until now: later time counts for nothing."""
        self._advance()
        self._ended = True

    def take(self, name: str) -> None:
        """Remove a node."""
        if not self._ended and (node := self._nodes.pop(name, None)):
            self._add(node, -1)

    def _set(self, name: str, node: tuple[int, int, int]) -> None:
        self._nodes[name] = node
        self._add(node, +1)

    def _add(self, node: tuple[int, int, int], sign: int) -> None:
        self._advance()
        self._sums = [total + sign * each for total, each in zip(self._sums, node, strict=True)]

    def _advance(self) -> None:
        if self._ended:
            return
        now = self._now()
        passed, self._at = now - self._at, now
        if passed:
            self._spent = [spent + passed * each for spent, each in zip(self._spent, self._sums, strict=True)]


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


class Meter(OverTime):
    """Adds up what nodes cost: their price, the part of it for which nothing runs, and the GPUs that pods have.

    Nodes without a price are counted separately and cost nothing.
    """

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self._without: set[str] = set()
        super().__init__(now)

    def begin(self) -> None:
        """Count from now on: earlier time costs nothing."""
        super().begin()
        self._peak = self._sums[0]
        self._most_without = len(self._without)
        self._any = bool(self._nodes)

    @property
    def hourly(self) -> float:
        """What the present nodes cost, in US dollars per hour."""
        return self._sums[0] / _NANO

    def put(self, name: str, hourly: float | None, has: Amounts, used: Amounts, shares: int = 0) -> None:
        """Add a node, or update what pods have of it.

        Args:
            hourly: its price in US dollars per hour; None where none is known.
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
        self._set(name, (price, round(price * idle_share(has, used, shares)), used.gpus * WHOLE_GPU + shares))
        self._any = True
        self._peak = max(self._peak, self._sums[0])

    def take(self, name: str) -> None:
        """Remove a node."""
        if not self._ended:
            self._without.discard(name)
        super().take(name)

    def measures(self) -> dict[str, float]:
        """The measures of cost; none if no node had a price."""
        if not self._any:
            return {}
        self._advance()
        priced, wasted, milli = self._spent
        spent = priced / _NANO / _HOUR
        found = {
            "cost.total": spent,
            "cost.perHourEnd": self.hourly,
            "cost.perHourPeak": self._peak / _NANO,
            "cost.wasted": wasted / _NANO / _HOUR,
            "cost.unpricedNodes": self._most_without,
        }
        if priced > 0:
            found["cost.wastedShare"] = wasted / priced
        if milli > 0:
            found["cost.perGpuHour"] = spent / (milli / WHOLE_GPU / _HOUR)
        return found
