"""The clock of a repetition."""

from __future__ import annotations

import time


class Clock:
    """Seconds since the repetition began, by a monotonic clock."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def restart(self) -> None:
        """Count from now on."""
        self._began = time.monotonic()

    def __call__(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began
