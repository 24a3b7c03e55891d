"""`kill` and a closed terminal, taken as Ctrl-C: what was begun is ended in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as SIGINT in this block, except where they are ignored, as under nohup.

    Only the main thread can: in another one, the block just runs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        # To whatever takes Ctrl-C at the moment, as asyncio does; a shell's background job ignores it.
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)
        else:
            raise KeyboardInterrupt

    earlier = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    taken = {number: handler for number, handler in earlier.items() if handler is not signal.SIG_IGN}
    try:
        for number in taken:
            signal.signal(number, interrupt)
        yield
    finally:
        for number, handler in taken.items():
            signal.signal(number, handler)
