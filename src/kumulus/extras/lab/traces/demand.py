"""What the tasks of a trace ask for at one time, from their arrivals and durations."""

from __future__ import annotations

import heapq

from kumulus.extras.lab.traces.task import Task

Amounts = tuple[float, float, float]
"""Milli-CPU, MiB and milli-GPU."""
_NOTHING = (0.0, 0.0, 0.0)


class Demand:
    """Follows the tasks in the order of their arrival, as if each got what it asks for at once.

    It holds only the tasks that run, so that a long trace needs no more memory than a short one. A task of unknown
    duration runs to the end.

    Attributes:
        peak: the most of each resource that was asked for at one time.
        ordered: whether all arrivals were in order; otherwise neither peak nor mean is known.
    """

    def __init__(self) -> None:
        self.peak: Amounts = _NOTHING
        self.ordered = True
        self._now: Amounts = _NOTHING
        self._area: Amounts = _NOTHING
        self._first: float | None = None
        self._at = 0.0
        self._ends: list[tuple[float, Amounts]] = []

    def add(self, task: Task) -> None:
        """Add the next task."""
        if self._first is None:
            self._first = self._at = task.arrival
        if task.arrival < self._at:
            self.ordered = False
        if not self.ordered:
            return
        self._pass(task.arrival)
        workers = task.workers
        asked = (workers * task.cpu, workers * task.memory, workers * task.gpus * task.gpu_milli)
        self._now = _sum(self._now, asked, 1.0)
        self.peak = (max(self.peak[0], self._now[0]), max(self.peak[1], self._now[1]), max(self.peak[2], self._now[2]))
        if task.duration is not None:
            heapq.heappush(self._ends, (task.arrival + task.duration, asked))

    def mean(self) -> Amounts:
        """The mean from the first arrival to the last known end; nothing may be added afterwards."""
        last = max((end for end, _ in self._ends), default=self._at)
        self._pass(last)
        lasted = last - (self._first or 0.0)
        return _sum(_NOTHING, self._area, 1 / lasted) if lasted > 0 else self._now

    def _pass(self, until: float) -> None:
        while self._ends and self._ends[0][0] <= until:
            end, asked = heapq.heappop(self._ends)
            self._advance(end)
            self._now = _sum(self._now, asked, -1.0)
        self._advance(until)

    def _advance(self, to: float) -> None:
        self._area = _sum(self._area, self._now, to - self._at)
        self._at = to


def _sum(one: Amounts, other: Amounts, times: float) -> Amounts:
    return one[0] + times * other[0], one[1] + times * other[1], one[2] + times * other[2]
