"""HTTP/1.1 for API servers: many small requests, over connections that stay open.

This keeps the connections and chooses one for each request; ``http_connection`` is a single one. For why this is not
left to a whole client library, see docs/decisions/http-client.md.
"""

import asyncio
import errno
import gzip
import ipaddress
import os
import socket
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import lru_cache
from urllib.parse import quote, urlencode, urlsplit

from kumulus.kube.codecs import USER_AGENT
from kumulus.kube.http_connection import Broken, HttpAnswer, HttpConnection

# Servers close what was idle for long (Go's own after 90 s, load balancers after 60), so it is not used.
_LONGEST_IDLE_S = 30.0
# RFC 8305: when an address does not answer, the next one is tried in parallel.
_NEXT_ADDRESS_S = 0.25
_IN_PATHS = "/:@!$&'()*+,;=~%"
_NO_BREAKS = str.maketrans("", "", "\r\n")

Headers = Mapping[str, str | tuple[str, ...]]
"""By name, one value, or several that are each sent as a header of that name."""
Query = Headers
"""Likewise the parameters of a request."""


class Http:
    """Connections to one server.

    Args:
        server: its address, such as ``https://127.0.0.1:6443``; a path in it comes before that of each request.
        headers: sent with every request; they say who asks.
        compressed: let the server compress its answers.
        server_name: the name in the server's certificate, if it is not that of its address; empty otherwise.
    """

    def __init__(
        self,
        server: str,
        headers: Headers,
        tls: ssl.SSLContext | None,
        *,
        compressed: bool,
        server_name: str = "",
    ) -> None:
        parts = urlsplit(server)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._prefix = parts.path.rstrip("/")
        self._tls = tls
        self._server_name = server_name
        common = {"Host": parts.netloc.rpartition("@")[2], "User-Agent": USER_AGENT, **headers}
        self._common = _lines(common)
        self._coding = _lines({"Accept-Encoding": "gzip" if compressed else "identity"})
        # By the TLS context they were made with, the most recently used last.
        self._idle: dict[ssl.SSLContext | None, list[HttpConnection]] = {}
        self._busy: set[HttpConnection] = set()
        self._closed = False

    def close(self) -> None:
        """Close every connection; one that is opened later is not kept."""
        self._closed = True
        for connection in [*self._busy, *(each for idle in self._idle.values() for each in idle)]:
            connection.abort()
        self._busy.clear()
        self._idle.clear()

    async def request(
        self,
        verb: str,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        data: bytes | None,
        *,
        within: float,
        tls: ssl.SSLContext | None = None,
    ) -> HttpAnswer:
        """Send a request and read its whole answer.

        Args:
            path: without the server's address; escaped where needed.
            within: seconds for all of it.
            tls: another TLS context than the server's own.

        Raises:
            OSError: no connection, or it broke (:class:`Broken`), or TimeoutError. :func:`reason` says it in words.
        """
        request = self._encoded(verb, path, query, headers, data, self._coding)
        async with asyncio.timeout(within):
            connection = self._kept(tls)
            if connection is not None:
                try:
                    return _whole(await self._ask(connection, request))
                except ConnectionError:
                    # If nothing was heard, the server has closed the connection while it was idle. A request that
                    # changes nothing is sent again, on a new one.
                    if connection.heard or verb != "GET":
                        raise
            return _whole(await self._ask(await self._connect(tls), request))

    async def _ask(self, connection: HttpConnection, request: bytes) -> HttpAnswer:
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
    ) -> AsyncIterator[tuple[HttpAnswer, AsyncIterator[bytes]]]:
        """GET something and read it as it arrives, on a connection of its own.

        Yields the answer without its body, and the chunks of the body, which end with it.

        Args:
            path: as for :meth:`request`, like ``query``, ``headers`` and ``tls``.
            within: seconds until the answer has to begin.
            silence: seconds of silence after which the chunks raise a TimeoutError.

        Raises:
            OSError: as for :meth:`request`; the chunks raise it, too.
        """
        request = self._encoded("GET", path, query, headers, None, _lines({"Accept-Encoding": "identity"}))
        async with asyncio.timeout(within):
            connection = await self._connect(tls)
            self._busy.add(connection)
            try:
                answer = await connection.ask(request, whole=False)
            except BaseException:
                self._end(connection)
                raise
        try:
            async with aclosing(connection.chunks(silence)) as chunks:
                yield answer, chunks
        finally:
            self._end(connection)

    def _end(self, connection: HttpConnection) -> None:
        self._busy.discard(connection)
        connection.abort()

    def _encoded(
        self,
        verb: str,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        data: bytes | None,
        coding: str,
    ) -> bytes:
        """The bytes of a request, its body included."""
        target = f"{self._prefix}{quote(path, safe=_IN_PATHS)}{_query(tuple(query.items()))}"
        length = f"Content-Length: {len(data)}\r\n" if data is not None else ""
        head = f"{verb} {target} HTTP/1.1\r\n{self._common}{coding}{_lines(headers)}{length}\r\n".encode()
        return head if data is None else head + data

    def _kept(self, tls: ssl.SSLContext | None) -> HttpConnection | None:
        """The most recently used connection that is still good; those that were idle for too long are closed."""
        idle = self._idle.get(tls or self._tls)
        while idle:
            connection = idle.pop()
            idle_s = time.monotonic() - connection.idle_since
            if not connection.lost and idle_s < _LONGEST_IDLE_S:
                return connection
            connection.abort()
        return None

    async def _connect(self, tls: ssl.SSLContext | None) -> HttpConnection:
        context: ssl.SSLContext | None = None
        server_name: str | None = None
        if self._secure:
            context = tls or self._tls or _system_trust()
            server_name = self._server_name or None
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: HttpConnection(tls or self._tls),
            self._host,
            self._port,
            ssl=context,
            server_hostname=server_name,
            happy_eyeballs_delay=None if _is_address(self._host) else _NEXT_ADDRESS_S,
        )
        return connection


# OpenSSL's X509_V_ERR_ codes: the signature fails, self-signed (18, 19), issuer unknown (20, 21).
_OTHER_AUTHORITY = frozenset({7, 18, 19, 20, 21})


def reason(error: OSError, waited: float = 0.0) -> str:
    """Why no answer came, in words for the user.

    Args:
        waited: seconds for which it was waited for; 0 to leave them out.
    """
    if isinstance(error, TimeoutError):
        return "no answer in time" + (f", after {waited:.1f} s" if waited else "")
    if isinstance(error, ssl.SSLCertVerificationError):
        other = getattr(error, "verify_code", 0) in _OTHER_AUTHORITY
        anew = "; a cluster that was made anew has another kubeconfig" if other else ""
        return f"its certificate is not trusted: {getattr(error, 'verify_message', '') or error}{anew}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS connection: {error.strerror or error}"
    if isinstance(error, socket.gaierror):
        return str(error.strerror or error).lower()
    if isinstance(error, ConnectionResetError):
        return os.strerror(errno.ECONNRESET).lower()
    if error.errno:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__


def _whole(answer: HttpAnswer) -> HttpAnswer:
    """The answer, with its body decompressed if the server compressed it."""
    if answer.headers.get("content-encoding", "").lower() == "gzip":
        try:
            answer.body = gzip.decompress(answer.body)
        except (OSError, EOFError, zlib.error) as error:
            raise Broken(f"what it compressed cannot be read: {error}") from error
    return answer


# Thousands of requests differ only in their bodies, so what they share is built once.
@lru_cache(maxsize=64)
def _query(query: tuple[tuple[str, str | tuple[str, ...]], ...]) -> str:
    return f"?{urlencode(query, doseq=True, quote_via=quote)}" if query else ""


def _lines(headers: Headers) -> str:
    # A line break in a token must not start another header; the server refuses what is left of the token.
    return "".join(
        [
            f"{name}: {value.translate(_NO_BREAKS)}\r\n"
            for name, values in headers.items()
            for value in ((values,) if isinstance(values, str) else values)
        ]
    )


@lru_cache(maxsize=1)
def _system_trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
