"""Up to when a watch has heard all that happened: what a client did not hear has no time."""

from __future__ import annotations

from kumulus.extras.lab.measure.clock import Clock


class Hearing:
    """Up to when a watch has heard all that happened.

    When it is resumed, what happened meanwhile comes first, as if it happened then. It is taken to have come when as
    much time again has passed as the watch was silent.

    Args:
        clock: seconds since the experiment's start.
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
            now: by the clock.
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
        self._catch_up()

    def synced(self) -> None:
        """A list is complete, and says how things were when it was asked for."""
        self._catch_up()

    def _catch_up(self) -> None:
        now = self._clock()
        self._caught_up_at, self._silent_since = now + (now - self._silent_since), now
