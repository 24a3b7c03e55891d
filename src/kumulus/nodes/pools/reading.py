"""Few pools of a fleet are read at a time, so that the first can be changed while the others are read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_AT_ONCE = 2
_LONGEST_WAIT_S = 3.0


class ReadLimit:
    """Admits two at a time.

    Reading thousands of nodes takes the plugin's CPU, changing them the API server's. If all pools read at once, none
    would change anything during that time. After waiting for three seconds, a pool continues all the same, so that
    all pools time out together, instead of one after the other, when the server does not answer.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(_AT_ONCE)

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Wait until fewer than two are read, and count as one until the end of the block."""
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S):
                await self._free.acquire()
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            self._free.release()
