"""GPU-hours: what pods had, what nobody had, and the part of the latter that nobody could have used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kumulus.extras.lab.measure.cost import OverTime
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.fragmentation import typical_kinds
from kumulus.extras.lab.policies.pod import WHOLE_GPU
from kumulus.extras.watch.live.amounts import Amounts

_HOUR = 3600.0


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
