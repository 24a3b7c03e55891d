"""One HTTP/1.1 connection with its TLS: asyncio carries the bytes, httptools (Node.js' parser) reads the answers."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import httptools

# A stream whose reader is slower than the server buffers this many bytes, and then makes the server wait.
_MOST_UNREAD = 2**20


class Broken(ConnectionError):
    """The connection ended before the answer did, or what came is not HTTP."""


@dataclass(slots=True)
class HttpAnswer:
    """What a server answered."""

    status: int
    """The HTTP status."""
    headers: dict[str, str]
    """By their names in lower case."""
    body: bytes = b""
    """All of it; empty for a stream."""


class HttpConnection(asyncio.Protocol):
    """One connection, with at most one request under way.

    Attributes:
        tls: the context it was made with; None for the system's, or without TLS.
        heard: whether any part of an answer to the latest request has arrived.
        reusable: whether another request may follow.
        lost: whether it has ended.
        idle_since: when its latest answer was complete (``time.monotonic``).
    """

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.tls = tls
        self.heard = self.reusable = self.lost = False
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._asked: asyncio.Future[HttpAnswer] | None = None
        self._whole = True
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        # Bytes of a stream that its reader has not taken.
        self._unread = 0
        # The answer's headers have arrived, and its end has not.
        self._begun = False
        self._ended = False
        # Why the connection was lost.
        self._error: OSError | None = None
        # Wakes the reader of a stream.
        self._news: asyncio.Future[None] | None = None

    def ask(self, request: bytes, *, whole: bool = True) -> asyncio.Future[HttpAnswer]:
        """Send a request; the answer comes when it is complete or, if not ``whole``, when its headers have arrived."""
        self._asked = self._loop.create_future()
        self._whole = whole
        self._ended = self.heard = self.reusable = False
        self._headers, self._body = {}, []
        if self._transport is None or self.lost:
            self._asked.set_exception(Broken("the connection was closed"))
        else:
            self._transport.write(request)
        return self._asked

    async def chunks(self, silence: float) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, all that has arrived at once."""
        while True:
            if self._body:
                chunk = b"".join(self._body)
                self._body.clear()
                if self._unread > _MOST_UNREAD and self._transport is not None:
                    self._transport.resume_reading()
                self._unread = 0
                yield chunk
            elif self._ended:
                return
            elif self.lost:
                raise self._error or Broken("the connection ended in the middle of an answer")
            else:
                self._news = self._loop.create_future()
                async with asyncio.timeout(silence):
                    await self._news

    def abort(self) -> None:
        """Close it at once."""
        self.lost = True
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        self.heard = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._error = Broken(f"what it says is no HTTP: {error}")
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        self.lost = True
        if self._error is None and isinstance(exc, OSError):
            self._error = exc
        has_length = not {"content-length", "transfer-encoding"}.isdisjoint(self._headers)
        if self._begun and not has_length:
            # RFC 9112, section 6.3: such an answer ends with its connection.
            self._complete()
        elif self._asked is not None and not self._asked.done():
            where = "in the middle of" if self.heard else "before"
            self._asked.set_exception(self._error or Broken(f"the connection ended {where} an answer"))
        self._notify()

    # What httptools calls.

    def on_message_begin(self) -> None:
        """See :class:`httptools.HttpResponseParser`."""
        if self._asked is None:
            # A server that closes a connection may say why; nothing that follows answers a request of ours.
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """See :class:`httptools.HttpResponseParser`."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """See :class:`httptools.HttpResponseParser`."""
        self._begun = self._is_final()
        if self._begun and not self._whole and self._asked is not None and not self._asked.done():
            self._asked.set_result(HttpAnswer(self._parser.get_status_code(), self._headers))

    def on_body(self, body: bytes) -> None:
        """See :class:`httptools.HttpResponseParser`."""
        self._body.append(body)
        if not self._whole:
            self._unread += len(body)
            if self._unread > _MOST_UNREAD and self._transport is not None:
                self._transport.pause_reading()
            self._notify()

    def on_message_complete(self) -> None:
        """See :class:`httptools.HttpResponseParser`."""
        if not self._is_final():
            self._headers = {}
            return
        self.reusable = self._parser.should_keep_alive()
        self._complete()

    def _is_final(self) -> bool:
        """Whether this is the answer, and not "100 Continue" and the like before it."""
        return self._parser.get_status_code() >= 200

    def _complete(self) -> None:
        self._begun, self._ended = False, True
        self.idle_since = time.monotonic()
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(HttpAnswer(self._parser.get_status_code(), self._headers, b"".join(self._body)))
        self._asked = None
        self._notify()

    def _notify(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class ResumingContext(ssl.SSLContext):
    """A TLS context whose connections, after the first, resume its session (RFC 8446, section 2.2).

    A full handshake costs the server and the client each a signature and the verification of the other's certificate:
    with hundreds of connections to an API server that is a noticeable part of all work (docs/performance.md). If the
    server rejects a ticket, a full handshake follows.
    """

    _newest: ssl.SSLObject | None = None
    _session: ssl.SSLSession | None = None

    @classmethod
    def for_client(cls, cafile: str | None = None, cadata: str | None = None) -> ResumingContext:
        """Like :func:`ssl.create_default_context`: the server's certificate and its host name are verified.

        Args:
            cafile: PEM file of the certificate authorities to trust; the system's when neither is given.
            cadata: the same as a text.

        Raises:
            ssl.SSLError, OSError: they cannot be read.
        """
        context = cls(ssl.PROTOCOL_TLS_CLIENT)
        if cafile or cadata:
            context.load_verify_locations(cafile, cadata=cadata)
        else:
            context.load_default_certs()
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """See :class:`ssl.SSLContext`; asyncio calls it, and has no other way to pass a session."""
        # A ticket comes after the handshake, with the first answer: it is looked for when the next connection is made.
        # Before the end of the handshake there is no version yet, and the session cannot be read.
        newest = self._newest
        latest = newest.session if newest is not None and newest.version() is not None else None
        if latest is not None and latest.has_ticket:
            self._session = latest
        self._newest = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session or self._session)
        return self._newest
