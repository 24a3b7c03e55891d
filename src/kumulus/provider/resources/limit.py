"""Ends an operation when the user cancels it, or when the time that the user allowed for it is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from kumulus.provider.resources.base import Operation

# Seconds for running requests to end and report their progress.
_WINDING_UP = 1.0
# Seconds of the allowed time that are reserved for ending and for counting what was done.
_EARLY = 3.0


@asynccontextmanager
async def limited(op: Operation) -> AsyncIterator[asyncio.Event]:
    """An event that is set when nothing new may start; shortly after, operations still running are cancelled.

    It is set when the user cancels, and shortly before the end of the time that the user allowed.

    Raises:
        TimeoutError: something was still running.
    """
    stop = asyncio.Event()
    async with asyncio.timeout(None) as limit:
        watching = asyncio.ensure_future(_wind_up(op, stop, limit))
        try:
            yield stop
        finally:
            watching.cancel()


async def _wind_up(op: Operation, stop: asyncio.Event, limit: asyncio.Timeout) -> None:
    early = min(_EARLY, op.timeout / 2)
    with suppress(TimeoutError):
        async with asyncio.timeout(op.timeout - early if op.timeout else None):
            await op.stop.wait()
    stop.set()
    limit.reschedule(asyncio.get_running_loop().time() + (_WINDING_UP if op.stop.is_set() else early))


def why(op: Operation) -> str:
    """Why an operation was ended."""
    if op.stop.is_set() or not op.timeout:
        return "stopped on request"
    return f"not finished within {op.timeout:g} s, the time allowed for it (customTimeouts)"
