"""How often something happens, second by second."""

from __future__ import annotations

import time
from collections import Counter

KEPT = 60
"""Seconds that a rate remembers."""

_WINDOW = 10
_SLACK = 5


class Rate:
    """Counts events by second, for the last minute.

    Attributes:
        total: how often it has happened since the counting began.
    """

    def __init__(self) -> None:
        self.total = 0
        self._counts: Counter[int] = Counter()

    def note(self, at: float) -> None:
        """Count an event at a time on the monotonic clock."""
        second = int(at)
        self.total += 1
        if second not in self._counts:
            for old in [known for known in self._counts if known <= second - KEPT - _SLACK]:
                del self._counts[old]
        self._counts[second] += 1

    def per_second(self, now: float | None = None) -> float:
        """The mean of the last ten whole seconds."""
        return sum(self.history(now)[-_WINDOW:]) / _WINDOW

    def history(self, now: float | None = None) -> list[int]:
        """How often in each of the last sixty whole seconds, the latest last."""
        current = int(time.monotonic() if now is None else now)
        return [self._counts[second] for second in range(current - KEPT, current)]
