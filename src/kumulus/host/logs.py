"""The logs of programs on this machine."""

from __future__ import annotations

import os
from pathlib import Path

_BYTES = 64 * 1024
_LONGEST_LINE = 300


def last_lines(log: Path, most: int) -> str:
    """The last lines of a log, indented and cut to a readable width; empty if there is none, or nothing in it.

    Args:
        most: how many lines at most; of long lines there may be fewer, as no more than 64 KiB are read.
    """
    try:
        with log.open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - _BYTES))
            # Before what was written since a rotation, there are only zero bytes.
            lines = opened.read().replace(b"\0", b"").decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"    {line[:_LONGEST_LINE]}" for line in lines[-most:])
