"""The clock of a repetition, which also notes when the client stands still: what it then hears, it hears late."""

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


class Hearing:
    """Up to when a watch has heard all that happened.

    When it is resumed, what happened meanwhile comes first, as if it happened then. It is taken to have come when as
    much time again has passed as the watch was silent.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._silent = False
        self._silent_since = clock()
        self.begin()

    def begin(self) -> None:
        """Count from now on, where the clock starts anew."""
        self._until = self._clock()
        self._caught_up_at = 0.0

    def since(self, now: float, listed: bool = False) -> float:
        """Since when that may have happened which is heard now; now itself if it is heard at once.

        Args:
            listed: whether it comes from a list.
        """
        since = self._clock.heard_since(now)
        if listed or self._silent or now < self._caught_up_at:
            return min(since, self._until)
        self._until = since
        return since

    def interrupted(self) -> None:
        """Nothing is heard from now on."""
        self._silent, self._silent_since = True, self._clock()

    def resumed(self) -> None:
        """Something is heard again: a list, or a watch from where the last one ended."""
        self._silent = False
        self.synced()

    def synced(self) -> None:
        """A list is complete, and says how things were when it was asked for."""
        now = self._clock()
        self._caught_up_at, self._silent_since = now + (now - self._silent_since), now
