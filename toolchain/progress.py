"""Saying what is being built, for a terminal and for a log."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

# A log that is silent for minutes looks like a hang, and some CI systems end it.
_LOG_HEARTBEAT_SECONDS = 60


def say(line: str) -> None:
    """A line for the user, on standard error: standard output is for what commands print."""
    print(line, file=sys.stderr, flush=True)


@dataclass
class Step:
    """One tool's line: `[4/11] kube-apiserver v1.35.4 … built in 134 s`."""

    title: str
    begun: float = field(default_factory=time.monotonic)
    last_said: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Announce the step."""
        if sys.stderr.isatty():
            self._rewrite("")
        else:
            say(f"{self.title} …")

    @property
    def seconds(self) -> int:
        """Since the step began."""
        return round(time.monotonic() - self.begun)

    def tick(self) -> None:
        """To be called about once a second while the step goes on."""
        if sys.stderr.isatty():
            self._rewrite(f"{self.seconds} s")
        elif time.monotonic() - self.last_said >= _LOG_HEARTBEAT_SECONDS:
            self.last_said = time.monotonic()
            say(f"{self.title} … {self.seconds} s")

    def end(self, outcome: str) -> None:
        """Finish the line."""
        if sys.stderr.isatty():
            self._rewrite(outcome)
            say("")
        else:
            say(f"{self.title} … {outcome}")

    def _rewrite(self, rest: str) -> None:
        print(f"\r\x1b[K{self.title} … {rest}", end="", file=sys.stderr, flush=True)
