"""What a kube-scheduler's output goes through: decisions into a file, all else to the log as it is.

    kube-scheduler … 2>&1 | python -P -m kumulus.schedulers.decisions.reader decisions.jsonl >> kube-scheduler.log

It ends with the scheduler. A process of its own, since the run that measures the scheduler must not wait for it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from kumulus.schedulers.decisions.document import LIMIT, Decision
from kumulus.schedulers.decisions.log import Decisions


def read(lines: Iterable[bytes], file: Path, log: BinaryIO, limit: int = LIMIT) -> None:
    """Read a scheduler's output to its end.

    Args:
        lines: the output.
        file: takes the decisions; those of a start before stay in it.
        log: takes what is not about decisions.
        limit: bytes that the file may have.

    Raises:
        OSError: the file cannot be written.
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
                # A full disk: the scheduler, which would end if nobody read what it says, is worth more.
                dropped += 1
                return
            size += len(line)

        decisions = Decisions(take)
        for line in lines:
            if not decisions.line(line):
                log.write(line)
                log.flush()
        kept.write(json.dumps(asdict(decisions.totals(dropped))) + "\n")


if __name__ == "__main__":
    read(sys.stdin.buffer, Path(sys.argv[1]), sys.stdout.buffer)
