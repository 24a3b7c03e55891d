"""Sums over time, as nodes and their pods come and go: what the nodes of a run cost, and its GPU-hours."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.fragmentation import typical_kinds
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
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


class CostMeter(OverTime):
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


class _Wanted(NamedTuple):
    """The least that a pod of some GPUs asks for: milli-GPU of one or of each, how many, models, milli-CPU."""

    milli: int
    gpus: int
    models: frozenset[str]
    cpu: int


class GpuHours(OverTime):
    """Adds up GPU-hours: used, idle and stranded.

    Stranded is what is free on nodes where no typical pod fits: by CPU, GPU model, and the node's free GPUs. Parts of
    GPUs count as requested. Which GPU they are on is not known here, so a node with parts on several GPUs counts as
    stranded later than it is.
    """

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__(now)
        self._wanted: list[_Wanted] = []

    def expect(self, pods: Iterable[Pod]) -> None:
        """Set the typical pods, before the first node is put: the kinds that together make up 95 % of these pods."""
        least: dict[tuple[int, int, frozenset[str]], int] = {}
        for (cpu, milli, gpus, models), _ in typical_kinds(pods):
            if gpus:
                key = (milli, gpus, models)
                least[key] = min(cpu, least.get(key, cpu))
        self._wanted = [_Wanted(*key, cpu) for key, cpu in least.items()]

    def put(self, name: str, model: str, has: Amounts, used: Amounts, shares: int) -> None:
        """Add a node, or update what pods have of it.

        Args:
            has: what pods can have of it.
            used: what they have of it, in whole GPUs.
            shares: milli-GPU that pods have of it in addition.
        """
        self.take(name)
        if self._ended or not has.gpus:
            return
        taken = used.gpus * WHOLE_GPU + shares
        idle = max(0, has.gpus * WHOLE_GPU - taken)
        fits = idle and any(self._fits(each, model, has.cpu - used.cpu, idle) for each in self._wanted)
        self._set(name, (taken, idle, 0 if fits else idle))

    def measures(self) -> dict[str, float]:
        """The measures; none without GPUs, and none of stranded GPUs if no typical pod wants any.

        Hours are those of the cluster's clock: a trace that is replayed faster has fewer of them.
        """
        self._advance()
        used, idle, stranded = (spent / WHOLE_GPU / _HOUR for spent in self._spent)
        if not used + idle:
            return {}
        found = {"gpuHours.used": used, "gpuHours.idle": idle}
        return {**found, "gpuHours.stranded": stranded} if self._wanted else found

    @staticmethod
    def _fits(wanted: _Wanted, model: str, cpu: int, idle: int) -> bool:
        if wanted.cpu > cpu or (wanted.models and model not in wanted.models):
            return False
        return idle >= wanted.milli if wanted.milli < WHOLE_GPU else idle // WHOLE_GPU >= wanted.gpus
