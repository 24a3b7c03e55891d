"""Keep the components' logs from growing for ever: long ones are rotated whenever a cluster is looked at.

kwokctl has each component write into a file of its own, which it empties at the component's start (v0.8.0,
pkg/kwokctl/runtime/exec.go). A component continues to write at its old offset: the part that was cut off before it is
a hole that takes no space.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from kumulus.host import inotify
from kumulus.runtimes.kwok.layout import Layout

FLAGS = {"kwok-controller": {"v": "WARN"}}
"""By default, kwok-controller writes 320 bytes for each renewal of a lease: 10 GB a week for 2,550 nodes."""
MOST_BYTES = 16 << 20
"""How much disk space a log may take, and also its predecessor next to it, which a rotation replaces."""
_BLOCK = 512


def rotate(layout: Layout) -> None:
    """Rotate the logs that take more than :data:`MOST_BYTES`; a full disk, or a file that is gone, is no error."""
    for log in (layout.directory / "logs").glob("*.log"):
        if _taken(log) <= MOST_BYTES:
            continue
        with suppress(OSError):
            _keep(log, log.with_suffix(".log.1"))
        # Also if there was no space to keep it: then all the more.
        with suppress(OSError):
            os.truncate(log, 0)


def _keep(log: Path, kept: Path) -> None:
    """Copy the end of a log; lines that are written between this and the truncation are lost."""
    kept.unlink(missing_ok=True)
    descriptor = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as to, log.open("rb") as of:
        of.seek(max(0, of.seek(0, os.SEEK_END) - MOST_BYTES))
        shutil.copyfileobj(of, to)


def _taken(file: Path) -> int:
    try:
        return file.stat().st_blocks * _BLOCK
    except OSError:
        return 0


def with_log(message: str, layout: Layout, component: str) -> str:
    """Add the last lines of a component's log to a message, if there are any, and what to do about a known cause."""
    tail = layout.log_tail(component)
    if not tail:
        return message
    if remedy := inotify.shortage(tail):
        message += f"\n  {remedy}"
    return f"{message}\n  last lines of the log of {component}:\n{tail}"
