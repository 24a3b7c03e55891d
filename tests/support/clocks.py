"""A clock whose time a test sets."""

from __future__ import annotations

import math

from kumulus.extras.lab.measure.clock import Clock


class SetClock(Clock):
    """Shows the time that it was set to.

    Args:
        now: seconds since the beginning.

    Attributes:
        stands_since: since when the client stands still; never unless it is set.
    """

    def __init__(self, now: float) -> None:
        super().__init__()
        self.now = now
        self.stands_since = math.inf

    def __call__(self) -> float:
        """The time that was set."""
        return self.now

    def heard_since(self, now: float) -> float:
        """See :meth:`Clock.heard_since`."""
        return min(now, self.stands_since)
