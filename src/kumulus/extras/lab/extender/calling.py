"""Call a policy with a time limit that holds whatever the policy does."""

from __future__ import annotations

import asyncio
import ctypes
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from kumulus.extras.lab.policies.load import PolicyFailed, PolicyTimeout

T = TypeVar("T")
# Seconds that interrupted Python code has to return; code that sleeps or runs outside Python does not.
_GRACE = 0.5


class Caller:
    """Makes calls in a thread of its own, one at a time.

    Python code that takes too long is interrupted by an exception. A call that cannot be interrupted, such as a long
    sleep, is abandoned with its thread: its answer is ignored, and the next call gets a new thread.

    Args:
        limit: seconds that one call may take.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._thread: threading.Thread | None = None
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], _Answer] | None] = queue.SimpleQueue()

    async def call(self, work: Callable[[], T]) -> T:
        """Do some work in the thread."""
        answer = _Answer(asyncio.get_running_loop())
        self._started().put((work, answer))
        try:
            found: T = await self._within(answer, self._limit)
        except TimeoutError:
            self._interrupt()
        else:
            return found
        try:
            await self._within(answer, _GRACE)
        except TimeoutError:
            self.close()
            raise PolicyFailed(
                f"the policy took longer than {self._limit:g} s and did not let itself be interrupted"
            ) from None
        raise PolicyFailed(f"the policy took longer than {self._limit:g} s")

    def close(self) -> None:
        """End the thread as soon as it has nothing to do."""
        self._work.put(None)
        self._thread = None

    async def _within(self, answer: _Answer, seconds: float) -> Any:
        async with asyncio.timeout(seconds):
            return await asyncio.shield(answer.future)

    def _started(self) -> queue.SimpleQueue[tuple[Callable[[], Any], _Answer] | None]:
        if self._thread is None:
            self._work = queue.SimpleQueue()
            # A daemon, so that a call that never returns does not keep the process from ending.
            self._thread = threading.Thread(target=_serve, args=(self._work,), name="policy", daemon=True)
            self._thread.start()
        return self._work

    def _interrupt(self) -> None:
        if self._thread is not None and self._thread.ident is not None:
            raised = ctypes.py_object(PolicyTimeout)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), raised)


class _Answer:
    """The result of a call, passed to the event loop that waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[Any] = loop.create_future()
        # asyncio must not log an error that is no longer awaited.
        self.future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._loop = loop

    def give(self, value: Any, error: BaseException | None) -> None:
        def set_it() -> None:
            if self.future.done():
                return
            if error is None:
                self.future.set_result(value)
            else:
                self.future.set_exception(error)

        # The loop may have ended by now.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(set_it)


def _serve(work: queue.SimpleQueue[tuple[Callable[[], Any], _Answer] | None]) -> None:
    while True:
        # An interruption may come when there is nothing left to interrupt.
        with suppress(PolicyTimeout):
            item = work.get()
            if item is None:
                return
            try:
                item[1].give(item[0](), None)
            except PolicyTimeout:
                item[1].give(None, PolicyFailed("the policy was interrupted"))
            except BaseException as error:  # the caller judges what the policy raised
                item[1].give(None, error)
