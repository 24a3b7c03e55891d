"""Ctrl-C, `kill` and a closed terminal let what was begun clean up; a second one ends a run at once."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_CODE = 130


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


def stop_event(say: Callable[[str], None], first: str, second: str) -> asyncio.Event:
    """An event of the running loop that SIGINT, SIGTERM or SIGHUP sets; a second signal ends this process.

    Args:
        say: called with a line for the user at each of the two.
        first: the line at the first signal.
        second: the line at the second one.
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def interrupt() -> None:
        if stop.is_set():
            # No more requests: the journal records what is left in the cluster, and everything that was started for
            # the run ends with this process.
            say(second)
            os._exit(EXIT_CODE)
        stop.set()
        say(first)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            # Under nohup, a closed terminal ends nothing.
            continue
        loop.add_signal_handler(number, interrupt)
    return stop
