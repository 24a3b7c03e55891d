"""A TCP proxy between a hub and a worker, whose connections can be cut."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

_LOCAL = "127.0.0.1"
# With more bytes than this waiting for a slow side, the other side is not read any further.
_MOST_WAITING = 1 << 20


class Proxy:
    """Forwards bytes in both directions without interpreting them: TLS is between the two ends.

    Attributes:
        port: of 127.0.0.1, on which it listens; the same from its start to its end.
        taken: how many connections it has accepted so far.
        cut_off: how many connections it has cut so far.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Transport] = set()
        self.port = 0
        self.taken = 0
        self.cut_off = 0

    async def start(self) -> None:
        """Accept connections, for the first time or again.

        Raises:
            OSError: there is no port, or another process has it by now.
        """
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(lambda: _End(self), _LOCAL, self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> int:
        """Sever every connection, both ways and at once, and refuse new ones; returns how many there were."""
        if self._server is not None:
            self._server.close()
            self._server = None
        ended = len(self._open)
        for transport in [*self._open]:
            # Both ends get a connection reset, and what is buffered is not sent.
            transport.abort()
        self._open.clear()
        self.cut_off += ended // 2
        return ended // 2

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{_LOCAL}:{self.port}"

    async def connect(self, end: _End) -> None:
        """Connect a caller with the worker; if the worker does not answer, abort the caller's connection."""
        self.taken += 1
        loop = asyncio.get_running_loop()
        other = _End(self, end)
        try:
            await loop.create_connection(lambda: other, *self._target)
        except OSError:
            if end.transport is not None:
                end.transport.abort()

    def opened(self, transport: asyncio.Transport) -> None:
        """A connection has been made."""
        if self._server is None:
            transport.abort()
            return
        self._open.add(transport)

    def closed(self, transport: asyncio.Transport | None) -> None:
        """A connection has ended."""
        if transport is not None:
            self._open.discard(transport)


class _End(asyncio.Protocol):
    """One end of a connection: what it receives is sent to the other."""

    def __init__(self, proxy: Proxy, other: _End | None = None) -> None:
        self._proxy = proxy
        self._other = other
        self._caller = other is None
        self._early: list[bytes] = []
        self._connecting: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(_MOST_WAITING)
        self._proxy.opened(self.transport)
        if self._caller:
            self._connecting = asyncio.get_running_loop().create_task(self._proxy.connect(self))
        elif self._other is not None:
            self._other.joined(self)

    def joined(self, other: _End) -> None:
        """The worker has answered: send what has arrived so far."""
        self._other = other
        if self.transport is None or self.transport.is_closing():
            other.end()
            return
        for data in self._early:
            other.send(data)
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        if self._other is None:
            self._early.append(data)
        else:
            self._other.send(data)

    def send(self, data: bytes) -> None:
        """Send data to this end."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def end(self) -> None:
        """Close it once everything is sent."""
        if self.transport is not None:
            self.transport.close()

    def pause_writing(self) -> None:
        if self._other is not None and self._other.transport is not None:
            with suppress(RuntimeError):
                self._other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None and self._other.transport is not None:
            with suppress(RuntimeError):
                self._other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._proxy.closed(self.transport)
        if self._other is not None:
            self._other.end()
