"""Saying what is being downloaded or built, for a terminal and for a log."""

import sys
import time
from dataclasses import dataclass, field

# A log that is silent for minutes looks like a hang, and some CI systems end it.
_LOG_HEARTBEAT_SECONDS = 60
# Nobody can read a terminal's line that changes more often than that.
_REDRAW_SECONDS = 0.2
# A step that takes less than this needs no progress display.
_QUIET_SECONDS = 2.0


def say(line: str) -> None:
    """A line for the user, on standard error: standard output is for what commands print."""
    print(line, file=sys.stderr, flush=True)


def transferred(have: int, total: int | None, begun: float) -> str:
    """The progress of a transfer: `31 of 84 MB (37%), 5.2 MB/s`.

    Args:
        have: bytes so far.
        total: bytes in all, if known.
        begun: when it began, by the monotonic clock.
    """
    rate = f"{have / 1e6 / max(time.monotonic() - begun, 0.001):.1f} MB/s"
    if not total:
        return f"{have / 1e6:.0f} MB, {rate}"
    return f"{have / 1e6:.0f} of {total / 1e6:.0f} MB ({have * 100 // total}%), {rate}"


@dataclass
class ToolLine:
    """One tool's line: `[4/11] kube-apiserver v1.35.4 … built in 134 s`."""

    title: str
    begun: float = field(default_factory=time.monotonic)
    last_printed: float = field(default_factory=time.monotonic)
    last_drawn: float = 0.0

    def __post_init__(self) -> None:
        """Announce the step."""
        if sys.stderr.isatty():
            self._rewrite("")
        else:
            say(f"{self.title} …")

    @property
    def seconds(self) -> int:
        """Seconds since the step began."""
        return round(time.monotonic() - self.begun)

    def tick(self, so_far: str = "") -> None:
        """Call this about once a second or more often while the step runs; shows the given text, or the time."""
        now = time.monotonic()
        if sys.stderr.isatty():
            if now - self.begun >= _QUIET_SECONDS and now - self.last_drawn >= _REDRAW_SECONDS:
                self.last_drawn = now
                self._rewrite(so_far or f"{self.seconds} s")
        elif now - self.last_printed >= _LOG_HEARTBEAT_SECONDS:
            self.last_printed = now
            say(f"{self.title} … {so_far or f'{self.seconds} s'}")

    def end(self, outcome: str) -> None:
        """Finish the line."""
        if sys.stderr.isatty():
            self._rewrite(outcome)
            say("")
        else:
            say(f"{self.title} … {outcome}")

    def _rewrite(self, rest: str) -> None:
        print(f"\r\x1b[K{self.title} … {rest}", end="", file=sys.stderr, flush=True)
