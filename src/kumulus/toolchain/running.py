"""Run a program that takes minutes: its progress is shown, its output goes to a log, and Ctrl-C ends it."""

import ctypes
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from kumulus.toolchain.progress import ToolLine

_LINES_OF_LOG = 15
_TICK_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1
# How long an interrupted process gets to clean up.
_GRACE_SECONDS = 5


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
        _await(process, step)
    if process.returncode != 0:
        raise Failed(process.returncode, last_lines(log))


def last_lines(log: Path) -> str:
    """The end of a log, indented, for an error message."""
    return "\n".join(f"  {line}" for line in log.read_text(errors="replace").splitlines()[-_LINES_OF_LOG:])


def _await(process: subprocess.Popen[bytes], step: ToolLine) -> None:
    try:
        while not _ended(process):
            step.tick()
    except BaseException:
        _stop(process)
        raise


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=_TICK_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    # Ctrl-C reaches the program as well, but a signal to this process alone does not.
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_with_parent() -> None:
    # If this process is killed outright, an orphaned compiler would compete with the next attempt.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
