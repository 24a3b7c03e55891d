"""The clock of a repetition."""

from __future__ import annotations

import time


class Clock:
    """Seconds since the repetition began, by a clock that nobody sets."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def restart(self) -> None:
        """Begin now."""
        self._began = time.monotonic()

    def __call__(self) -> float:
        """Seconds since then."""
        return time.monotonic() - self._began
