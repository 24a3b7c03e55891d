"""Components for programs in other languages: each is constructed by the Python classes, in isolation.

Pulumi's SDK keeps its state of a program in context variables, and waits in an event loop. Each request gets a thread
with its own context and loop, so that many are constructed at once without sharing state. The SDK is imported with
the first request, since every command waits for the plugin's start.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from contextlib import suppress

from kumulus.nodes.errors import ProviderError


class Constructor:
    """Constructs components.

    Args:
        engine: the engine's address; None when the plugin was started by hand.
    """

    def __init__(self, engine: str | None) -> None:
        self._engine = engine
        self._pending: set[asyncio.Future[bytes]] = set()

    def abandon(self) -> None:
        """Fail all pending requests: the engine, which is ending, would wait for them, and they for the engine."""
        for answer in self._pending:
            if not answer.done():
                answer.set_exception(ProviderError("the update has ended"))

    async def __call__(self, request: bytes) -> bytes:
        """Construct what a ConstructRequest asks for; returns the ConstructResponse.

        Raises:
            InvalidInputs: arguments are wrong.
            ProviderError: it cannot be constructed, or one of its resources failed, which has been reported.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()

        def settle(done: bytes | BaseException) -> None:
            if answer.done():
                return
            if isinstance(done, bytes):
                answer.set_result(done)
            else:
                answer.set_exception(done)

        def work() -> None:
            done: bytes | BaseException
            try:
                done = contextvars.Context().run(self._work, request)
            except BaseException as error:
                done = error
            # The loop is closed if the plugin has been ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, done)

        self._pending.add(answer)
        threading.Thread(target=work, name="construct", daemon=True).start()
        try:
            return await answer
        finally:
            self._pending.discard(answer)

    def _work(self, request: bytes) -> bytes:
        from kumulus.provider.plugin.constructing import constructed

        return asyncio.run(constructed(request, self._engine or ""))
