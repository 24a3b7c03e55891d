"""Ctrl-C, `kill` and a closed terminal end a run in order; a second one ends it at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

EXIT_CODE = 130


def stop_event(say: Callable[[str], None], first: str, second: str) -> asyncio.Event:
    """An event of the running loop that SIGINT, SIGTERM or SIGHUP sets; the second of them ends this process.

    Args:
        say: takes a line for the user.
        first: what to say when the event is set.
        second: what to say at the end.
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
