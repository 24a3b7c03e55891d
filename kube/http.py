"""HTTP/1.1 as API servers are asked by it: many small requests, over connections that stay open.

asyncio carries the bytes, httptools (the parser of Node.js) reads the answers; what is here brings the two together.
Why that is not left to a whole client library: docs/decisions/http-client.md.
"""

from __future__ import annotations

import asyncio
import errno
import gzip
import ipaddress
import os
import socket
import ssl
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urlencode, urlsplit

import httptools

# Servers close what was silent for long (Go's own after 90 s, load balancers after 60): it is not tried.
_LONGEST_IDLE = 30.0
# A stream whose reader is slower than the server holds this much, and lets the server wait.
_MOST_UNREAD = 2**20
# RFC 8305: when an address does not answer, the next one is tried beside it.
_NEXT_ADDRESS_S = 0.25
_IN_PATHS = "/:@!$&'()*+,;=~%"
_NO_BREAKS = str.maketrans("", "", "\r\n")


class Broken(ConnectionError):
    """The connection ended before the answer did, or what came is no HTTP."""


@dataclass(slots=True)
class Answer:
    """What a server answered.

    Attributes:
        status: the HTTP status.
        headers: by their names in lower case.
        body: all of it; of a stream nothing.
    """

    status: int
    headers: dict[str, str]
    body: bytes = b""


class Http:
    """Connections to one server.

    Args:
        server: its address, such as ``https://127.0.0.1:6443``; a path in it comes before that of each request.
        headers: sent with every request.
        tls: the TLS context of an ``https`` server.
        compressed: let the server compress its answers.
    """

    def __init__(
        self, server: str, headers: Mapping[str, str], tls: ssl.SSLContext | None, *, compressed: bool
    ) -> None:
        parts = urlsplit(server)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._prefix = parts.path.rstrip("/")
        self._tls = tls
        common = {"Host": parts.netloc.rpartition("@")[2], "User-Agent": "kumulus", **headers}
        self._common = _lines(common)
        self._coding = _lines({"Accept-Encoding": "gzip" if compressed else "identity"})
        # By the TLS context they were made with, the latest used last.
        self._idle: dict[ssl.SSLContext | None, list[_Connection]] = {}
        self._busy: set[_Connection] = set()
        self._closed = False

    def close(self) -> None:
        """End every connection; one that is made later is not kept."""
        self._closed = True
        for connection in [*self._busy, *(each for idle in self._idle.values() for each in idle)]:
            connection.abort()
        self._busy.clear()
        self._idle.clear()

    async def request(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        data: bytes | None,
        *,
        within: float,
        tls: ssl.SSLContext | None = None,
    ) -> Answer:
        """Send a request and read its whole answer.

        Args:
            verb: the method.
            path: without the server's address; escaped where needed.
            query: the parameters.
            headers: besides those of every request.
            data: the body.
            within: seconds for all of it.
            tls: another TLS context than the server's own.

        Raises:
            OSError: no connection, or it broke (:class:`Broken`), or TimeoutError. :func:`reason` says it in words.
        """
        head = self._head(verb, path, query, headers, data, self._coding)
        async with asyncio.timeout(within):
            connection = self._kept(tls)
            if connection is not None:
                try:
                    return _whole(await self._ask(connection, head))
                except ConnectionError:
                    # What the server had closed meanwhile is no failure of a request that changes nothing.
                    if connection.heard or verb != "GET":
                        raise
            return _whole(await self._ask(await self._connect(tls), head))

    async def _ask(self, connection: _Connection, request: bytes) -> Answer:
        self._busy.add(connection)
        try:
            answer = await connection.ask(request)
        except BaseException:
            connection.abort()
            raise
        finally:
            self._busy.discard(connection)
        if connection.reusable and not self._closed:
            self._idle.setdefault(connection.tls, []).append(connection)
        else:
            connection.abort()
        return answer

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        *,
        within: float,
        silence: float,
        tls: ssl.SSLContext | None = None,
    ) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """GET something and read it as it arrives, on a connection of its own.

        Gives the answer without its body, and the chunks of the body, which end with it.

        Args:
            path: as for :meth:`request`, like ``query``, ``headers`` and ``tls``.
            query: the parameters.
            headers: besides those of every request.
            within: seconds until the answer has to begin.
            silence: seconds without a word after which the chunks end by a TimeoutError.
            tls: another TLS context than the server's own.

        Raises:
            OSError: as for :meth:`request`; also by the chunks.
        """
        head = self._head("GET", path, query, headers, None, _lines({"Accept-Encoding": "identity"}))
        async with asyncio.timeout(within):
            connection = await self._connect(tls)
            self._busy.add(connection)
            try:
                answer = await connection.ask(head, whole=False)
            except BaseException:
                self._end(connection)
                raise
        try:
            async with aclosing(connection.chunks(silence)) as chunks:
                yield answer, chunks
        finally:
            self._end(connection)

    def _end(self, connection: _Connection) -> None:
        self._busy.discard(connection)
        connection.abort()

    def _head(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        data: bytes | None,
        coding: str,
    ) -> bytes:
        """The request, its body included."""
        target = f"{self._prefix}{quote(path, safe=_IN_PATHS)}{_query(tuple(query.items()))}"
        length = f"Content-Length: {len(data)}\r\n" if data is not None else ""
        head = f"{verb} {target} HTTP/1.1\r\n{self._common}{coding}{_lines(headers)}{length}\r\n".encode()
        return head if data is None else head + data

    def _kept(self, tls: ssl.SSLContext | None) -> _Connection | None:
        """The connection that was used last, if it is still good; those that were idle for too long go."""
        idle = self._idle.get(tls or self._tls)
        while idle:
            connection = idle.pop()
            if not connection.lost and time.monotonic() - connection.idle_since < _LONGEST_IDLE:
                return connection
            connection.abort()
        return None

    async def _connect(self, tls: ssl.SSLContext | None) -> _Connection:
        context = (tls or self._tls or _system_trust()) if self._secure else None
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(tls or self._tls),
            self._host,
            self._port,
            ssl=context,
            happy_eyeballs_delay=None if _is_address(self._host) else _NEXT_ADDRESS_S,
        )
        return connection


class _Connection(asyncio.Protocol):
    """One connection, with at most one request under way.

    Attributes:
        tls: the context it was made with.
        heard: whether something of an answer to the latest request came.
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
        self._asked: asyncio.Future[Answer] | None = None
        self._whole = True
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._unread = 0
        # Its headers are there, and its end is not.
        self._begun = False
        self._ended = False
        self._error: OSError | None = None
        self._news: asyncio.Future[None] | None = None

    def ask(self, request: bytes, *, whole: bool = True) -> asyncio.Future[Answer]:
        """Send a request; its answer comes when it is complete, or, if not ``whole``, when its headers are there."""
        self._asked = self._loop.create_future()
        self._whole, self._ended, self.heard, self.reusable = whole, False, False, False
        self._headers, self._body = {}, []
        if self._transport is None or self.lost:
            self._asked.set_exception(Broken("the connection was closed"))
        else:
            self._transport.write(request)
        return self._asked

    async def chunks(self, silence: float) -> AsyncGenerator[bytes, None]:
        """The body as it comes, all that there is at once."""
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
        """End it at once."""
        self.lost = True
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._error = Broken(f"what it says is no HTTP: {error}")
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if self._error is None and isinstance(exc, OSError):
            self._error = exc
        if self._begun and not {"content-length", "transfer-encoding"} & self._headers.keys():
            # RFC 9112, section 6.3: such an answer ends with its connection.
            self._complete()
        elif self._asked is not None and not self._asked.done():
            where = "in the middle of" if self.heard else "before"
            self._asked.set_exception(self._error or Broken(f"the connection ended {where} an answer"))
        self._tell()

    # What httptools calls.

    def on_message_begin(self) -> None:
        if self._asked is None:
            # A server that ends a connection may say why; nothing that follows is an answer to us.
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._begun = self._final()
        if not self._whole and self._asked is not None and not self._asked.done() and self._begun:
            self._asked.set_result(Answer(self._parser.get_status_code(), self._headers))

    def on_body(self, body: bytes) -> None:
        self._body.append(body)
        if not self._whole:
            before, self._unread = self._unread, self._unread + len(body)
            if before <= _MOST_UNREAD < self._unread and self._transport is not None:
                self._transport.pause_reading()
            self._tell()

    def on_message_complete(self) -> None:
        if not self._final():
            self._headers = {}
            return
        self.reusable = self._parser.should_keep_alive()
        self._complete()

    def _final(self) -> bool:
        """Whether this is the answer, and not "100 Continue" and the like before it."""
        return self._parser.get_status_code() >= 200

    def _complete(self) -> None:
        asked, self._ended, self._begun, self.idle_since = self._asked, True, False, time.monotonic()
        if asked is not None and not asked.done():
            asked.set_result(Answer(self._parser.get_status_code(), self._headers, b"".join(self._body)))
        self._asked = None
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


def reason(error: OSError) -> str:
    """Why no answer came, in words for the person who reads it."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {getattr(error, 'verify_message', '') or error}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS connection: {error.strerror or error}"
    if isinstance(error, socket.gaierror):
        return str(error.strerror or error).lower()
    if isinstance(error, ConnectionResetError):
        return os.strerror(errno.ECONNRESET).lower()
    if error.errno:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__


def _whole(answer: Answer) -> Answer:
    """The answer with its body as it was before it was compressed."""
    if answer.headers.get("content-encoding", "").lower() == "gzip":
        try:
            answer.body = gzip.decompress(answer.body)
        except (OSError, EOFError, zlib.error) as error:
            raise Broken(f"what it compressed cannot be read: {error}") from error
    return answer


# Thousands of requests differ in nothing but their bodies: what they have in common is made once.
@lru_cache(maxsize=64)
def _query(query: tuple[tuple[str, str], ...]) -> str:
    return f"?{urlencode(query, quote_via=quote)}" if query else ""


def _lines(headers: Mapping[str, str]) -> str:
    # A token with a line break in it must not become a header of its own; the server refuses what is left of it.
    return "".join([f"{name}: {value.translate(_NO_BREAKS)}\r\n" for name, value in headers.items()])


@lru_cache(maxsize=1)
def _system_trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
