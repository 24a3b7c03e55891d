"""Steps that take minutes: what is said of them, in a terminal and in a log; and running a program to its end."""

import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from kumulus.host.files import last_lines

# A log that is silent for minutes looks like a hang, and some CI systems end it.
_LOG_HEARTBEAT_S = 60
# Nobody can read a terminal's line that changes more often than that.
_REDRAW_S = 0.2
# A step that takes less than this needs no progress display.
_QUIET_S = 2.0


def say(line: str) -> None:
    """A line for the user, on standard error: standard output is for what commands print."""
    print(line, file=sys.stderr, flush=True)


def transferred(have: int, total: int | None, begun: float, before: int = 0) -> str:
    """The progress of a transfer of bytes: `31 of 84 MB (37%), 5.2 MB/s`.

    Args:
        have: bytes so far.
        total: bytes in the end; None if that is not known.
        begun: when it began, by ``time.monotonic``.
        before: bytes that an earlier transfer had left; they say nothing of how fast this one is.
    """
    rate = f"{(have - before) / 1e6 / max(time.monotonic() - begun, 0.001):.1f} MB/s"
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
        """Show how far the step is; to be called once a second or more often while it runs.

        Args:
            so_far: what to show; the seconds so far by default.
        """
        now = time.monotonic()
        if sys.stderr.isatty():
            if now - self.begun >= _QUIET_S and now - self.last_drawn >= _REDRAW_S:
                self.last_drawn = now
                self._rewrite(so_far or f"{self.seconds} s")
        elif now - self.last_printed >= _LOG_HEARTBEAT_S:
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


def answer(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program without input and return what it says; it may fail.

    Args:
        options: of :func:`subprocess.run`.
    """
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False, **options
    )


_LINES_OF_LOG = 15
_TICK_S = 1.0
_PR_SET_PDEATHSIG = 1
# How long an interrupted process gets to clean up.
_GRACE_S = 5


class Failed(Exception):
    """A program ended with an exit code other than 0.

    Attributes:
        tail: the last lines of the log, indented.
    """

    def __init__(self, code: int, tail: str) -> None:
        super().__init__(f"exit code {code}\n{tail}")
        self.code = code
        self.tail = tail


def run(
    command: Sequence[str | Path],
    step: ToolLine,
    log: Path,
    *,
    stdout: Path | None = None,
    stdin: IO[bytes] | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a program to its end.

    Args:
        log: a file to which the command and its standard error are appended.
        stdout: a file that its standard output is appended to; the log by default.
        stdin: a file to read from; nothing by default.
        env: its whole environment; this process's own by default.

    Raises:
        Failed: it ended with an exit code other than 0.
    """
    with log.open("ab") as messages, (stdout or log).open("ab") as answers:
        messages.write(f"$ {' '.join(map(str, command))}\n".encode())
        messages.flush()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=stdin if stdin is not None else subprocess.DEVNULL,
            stdout=answers,
            stderr=messages,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - there are no threads here
        )
        try:
            while not _ends(process, _TICK_S):
                step.tick()
        except BaseException:
            # Ctrl-C reaches the program as well, but a signal to this process alone does not.
            process.send_signal(signal.SIGINT)
            if not _ends(process, _GRACE_S):
                process.kill()
                process.wait()
            raise
    if process.returncode != 0:
        raise Failed(process.returncode, last_lines(log, _LINES_OF_LOG))


def _ends(process: subprocess.Popen[bytes], within: float) -> bool:
    try:
        process.wait(timeout=within)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end_with_parent() -> None:
    # If this process is killed outright, an orphaned compiler would compete with the next attempt.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
