"""The clock of a repetition, which also notes when the client stands still: what it then hears, it hears late."""

from __future__ import annotations

import asyncio
import time

from kumulus.extras.lab.measure.statistics import RESOLUTION

_EVERY = 0.1


class Clock:
    """Seconds since the repetition began, by a monotonic clock."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Count from now on."""
        self._began = time.monotonic()
        self._late = 0.0
        # When the event loop last came round; None while that is not watched.
        self._round: float | None = None
        self._stood_since = self._caught_up_at = 0.0

    def __call__(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    async def watch_itself(self) -> None:
        """Note until cancelled how late the event loop comes round: it is busy, or the process was stopped."""
        try:
            while True:
                self._round = self()
                await asyncio.sleep(_EVERY)
                self._note(self._round, self())
        finally:
            self._round = None

    def _note(self, before: float, now: float) -> None:
        late = now - before - _EVERY
        self._late = max(self._late, late)
        if late > RESOLUTION:
            # One that stands still again before it has caught up is as late as from the first time on.
            self._stood_since = min(self._stood_since, before) if before < self._caught_up_at else before
            self._caught_up_at = max(self._caught_up_at, now + late)

    @property
    def stall(self) -> float:
        """The longest time, in seconds, for which the client stood still."""
        return max(self._late, self._lateness(self()))

    def heard_since(self, now: float) -> float:
        """Since when that may have happened which is heard now: now, unless the client stood still until just now.

        For as long again as it stood still, it is taken to read what has gathered meanwhile.
        """
        if self._round is not None and self._lateness(now) > RESOLUTION:
            return self._round
        return self._stood_since if now < self._caught_up_at else now

    def _lateness(self, now: float) -> float:
        return 0.0 if self._round is None else max(0.0, now - self._round - _EVERY)
