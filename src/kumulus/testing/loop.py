"""An event loop in a thread of its own, for callers without one."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """Run a function in a thread that does not outlive the process, however long it takes.

    The threads of ``asyncio.to_thread`` are waited for at the end of the process, which Ctrl-C could then not end: one
    that waits for another process's lock ends when that process does.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        report: Callable[[], None]
        try:
            report = partial(outcome.set_result, work())
        except BaseException as error:
            report = partial(outcome.set_exception, error)
        # The loop may have been closed meanwhile; then nobody waits for the outcome.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if outcome.done() else report())

    threading.Thread(target=run, name="kumulus-work", daemon=True).start()
    return await outcome


class Loop:
    """Runs coroutines, one caller's at a time, on an event loop that goes on between them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kumulus", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for it; Ctrl-C cancels it, and what it has begun to clean up is waited for.

        Raises:
            RuntimeError: it is called from the loop itself, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a Cluster cannot be used from its own event loop; use AsyncCluster there")
        tasks: list[asyncio.Task[Any] | None] = []

        async def tracked() -> T:
            tasks.append(asyncio.current_task())
            return await work

        future = asyncio.run_coroutine_threadsafe(tracked(), self._loop)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks if task])
                with suppress(asyncio.CancelledError, CancelledError, Exception):
                    future.result()
            raise

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        if not self._loop.is_running():
            self._loop.close()
