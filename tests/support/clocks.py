"""A clock whose time a test sets, and waiting for what a task reaches."""

import asyncio
import math
from collections.abc import Callable

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


async def until(reached: Callable[[], object]) -> None:
    """Wait until something is so; it comes within twenty seconds."""
    for _ in range(2000):
        if reached():
            return
        await asyncio.sleep(0.01)
    raise AssertionError
