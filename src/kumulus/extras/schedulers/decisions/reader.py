"""The process that kube-scheduler's output is piped through: decisions go to a file, all else to the log unchanged.

    kube-scheduler … 2>&1 | python -P -m kumulus.extras.schedulers.decisions.reader decisions.jsonl asked.json >> log

It ends with the scheduler, and so does the extender that the scheduler calls (`asked`). It is a separate process, since
the run that measures the scheduler must not wait for it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from kumulus.extras.schedulers.decisions.asked import FilterCounts, ListenerSettings
from kumulus.extras.schedulers.decisions.attempts import SchedulingAttempts
from kumulus.extras.schedulers.decisions.document import LIMIT, Decision
from kumulus.extras.schedulers.decisions.log import REFUSED, Decisions

_ASKED = "kumulus.extras.schedulers.decisions.asked"
_ENDS_WITHIN = 10.0


class Observer:
    """The extender process that kube-scheduler calls, and its notes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._commands, self._output = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._output, False)
        os.set_blocking(self._commands, False)
        self._rest = b""

    def notes(self) -> list[FilterCounts]:
        """What was noted since the previous call."""
        parts = [self._rest]
        with suppress(BlockingIOError):
            while part := os.read(self._output, 1 << 16):
                parts.append(part)
        *lines, self._rest = b"".join(parts).split(b"\n")
        return [FilterCounts(**json.loads(line)) for line in lines]

    def now(self) -> None:
        """Ask it to note the counts now, or soon."""
        # The write fails if the process has ended, or if the pipe is full: then a request is pending already.
        with suppress(OSError):
            os.write(self._commands, b"\n")


@contextmanager
def observing(file: Path) -> Iterator[Observer]:
    """Start the extender process that kube-scheduler calls, and end it with the context."""
    command = [sys.executable, "-P", "-m", _ASKED, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr) as process:
        yield Observer(process)
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()


def read(
    lines: Iterable[bytes],
    file: Path,
    log: BinaryIO,
    limit: int = LIMIT,
    *,
    attempts: SchedulingAttempts | None = None,
    observer: Observer | None = None,
) -> None:
    """Read a scheduler's output to its end.

    Args:
        file: takes the decisions; those of an earlier start stay in it.
        log: takes the lines that are not about decisions.
        observer: notes the counts after an attempt that failed.
    """
    dropped = 0
    with file.open("a", encoding="utf-8", buffering=1) as kept:
        size = kept.tell()

        def take(decision: Decision) -> None:
            nonlocal size, dropped
            line = decision.line() + "\n"
            if size + len(line) > limit:
                dropped += 1
                return
            try:
                kept.write(line)
            except OSError:
                # A full disk: the scheduler would end if its output were not read, and matters more than this file.
                dropped += 1
                return
            size += len(line)

        decisions = Decisions(take, attempts)
        for line in lines:
            if not decisions.line(line):
                log.write(line)
                log.flush()
            elif observer is not None and REFUSED in line:
                observer.now()
        kept.write(json.dumps(asdict(decisions.totals(dropped))) + "\n")


def _main(decisions: Path, asked: Path) -> None:
    settings = ListenerSettings.read(asked)
    with observing(asked) as observer:
        attempts = SchedulingAttempts(settings.profiles, observer.notes, settings.parallelism)
        read(sys.stdin.buffer, decisions, sys.stdout.buffer, attempts=attempts, observer=observer)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]))
