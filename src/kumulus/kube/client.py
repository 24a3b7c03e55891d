"""A small asynchronous client of the Kubernetes API: verbs, paging, streaming, and retries that a user can trust."""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kumulus.kube.bodies import content, encoded, nothing, refusal
from kumulus.kube.codecs import JSON, MERGE_PATCH, PROTOBUF, USER_AGENT, Codec, JsonCodec
from kumulus.kube.config import Connection
from kumulus.kube.errors import ApiError, RequestAttempts, Unreachable, api_error, no_answer
from kumulus.kube.exec_credentials import Credential
from kumulus.kube.http import Http, Query, reason
from kumulus.kube.http_connection import HttpAnswer

T = TypeVar("T")
# For answers that nobody reads: the least that a server can give, as client-go's metadata client asks for it.
_UNREAD = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1, {JSON}"
_CONNECTIONS, _LOCAL_CONNECTIONS = 64, 192
# A watch with bookmarks receives one each minute (k8s.io/apiserver, storage/cacher: defaultBookmarkFrequency).
_LONGEST_SILENCE_S = 150.0


class Client:
    """A connection to one API server, to be used as an asynchronous context manager or closed by :meth:`close`.

    Args:
        connections: the greatest number of connections kept open at once, and so of requests under way; None for
            64, or for 192 with a server on this machine: the more writes wait, the more of them share one of etcd's
            fsyncs, and the less CPU time its controllers get (docs/performance.md).
        patience: seconds for which a request is tried again while the server is unreachable or answers with a
            transient error (429, 5xx). Verbs take their own ``patience`` too.
        request_timeout: seconds after which one attempt is abandoned.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        connections: int | None = None,
        patience: float = 60.0,
        request_timeout: float = 30.0,
    ) -> None:
        local = urlsplit(connection.server).hostname in ("127.0.0.1", "::1", "localhost")
        self.connection = connection
        self.connections = connections or (_LOCAL_CONNECTIONS if local else _CONNECTIONS)
        self.patience = patience
        self._request_timeout = request_timeout
        # When the latest answer came, by time.monotonic.
        self._answered_at = -math.inf
        self.date = ""  # The server's clock in its latest answer, as HTTP writes it.
        # The API server compresses long lists, which costs it more time than a local socket saves.
        self._http = Http(
            connection.server,
            connection.headers,
            connection.tls,
            compressed=not local,
            server_name=connection.server_name,
        )
        # A request waits here for a connection, before its timeout begins.
        self._slots = asyncio.Semaphore(self.connections)
        # For operations on many objects (`bulk`), which share the connections and can be stopped between objects.
        self.lanes = asyncio.Semaphore(self.connections)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        self._http.close()

    async def get(
        self,
        path: str,
        params: Query | None = None,
        patience: float | None = None,
        accept: str = JSON,
    ) -> Any:
        """GET an object or a list; returns the decoded JSON. ``accept`` can ask for another representation."""
        return await self.request("GET", path, params=params, patience=patience, accept=accept)

    async def create(self, path: str, body: Mapping[str, Any] | bytes, patience: float | None = None) -> Any:
        """POST an object, given as a mapping or as already encoded JSON; returns the object as stored."""
        return await self.request("POST", path, body=body, patience=patience)

    async def write(self, verb: str, path: str, body: Mapping[str, Any] | bytes, *, content_type: str = JSON) -> None:
        """POST or PATCH without wanting the stored object back: its answer is read but not decoded.

        It is asked for as metadata only and in protobuf, which costs both sides a fraction of the whole in JSON.
        """
        await self.request(verb, path, body=body, content_type=content_type, accept=_UNREAD, decode=nothing)

    async def merge_patch(self, path: str, body: Mapping[str, Any] | bytes) -> Any:
        """Apply a JSON merge patch (RFC 7386): null removes a key, lists are replaced whole."""
        return await self.request("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def delete(
        self, path: str, body: Mapping[str, Any] | None = None, params: Mapping[str, str] | None = None
    ) -> None:
        """DELETE an object; ``body`` are DeleteOptions. The answer is read but not decoded, as :meth:`write` does."""
        await self.request("DELETE", path, params=params, body=body, accept=_UNREAD, decode=nothing)

    async def request(
        self,
        verb: str,
        path: str,
        *,
        params: Query | None = None,
        body: Mapping[str, Any] | bytes | None = None,
        content_type: str = JSON,
        patience: float | None = None,
        accept: str = JSON,
        decode: Callable[[bytes], Any] | None = None,
    ) -> Any:
        """Send one request and decode its answer, as JSON unless set otherwise, trying again while that can help.

        A repeated POST may meet its own first attempt (409 AlreadyExists), and a repeated DELETE its own success
        (404): callers that create or delete handle these, as they must in any case.

        Raises:
            ApiError: the server refused, or kept answering with a transient error past ``patience``.
            CredentialsError: the command that gives credentials failed.
            Unreachable: no answer within ``patience`` seconds, or within a minute more from a server that is at work.
        """
        data = body if body is None or isinstance(body, bytes) else encoded(body)
        headers = {"Accept": accept}
        if data is not None:
            headers["Content-Type"] = content_type
        query = dict(params or {})
        if verb in ("POST", "PATCH", "PUT"):
            query.setdefault("fieldManager", USER_AGENT)
        attempts = RequestAttempts(self.patience if patience is None else patience, self._request_timeout)
        started = attempt_started = time.monotonic()
        has_new_credentials = False
        while True:
            try:
                async with self._slots:
                    attempt_started = time.monotonic()
                    return await self._once(verb, path, query, headers, data, attempts.within, decode or content)
            except ApiError as error:
                if error.status == 401 and self.connection.credentials is not None and not has_new_credentials:
                    # The credentials were revoked before they expired; the next attempt asks for new ones.
                    has_new_credentials = True
                    continue
                pause = attempts.pause(error.retry_after) if error.transient else None
                if pause is None:
                    raise
            except OSError as error:
                has_answered_others = self._answered_at > attempt_started
                if isinstance(error, TimeoutError) and has_answered_others:
                    attempts.server_is_busy()
                # Asking again does not make a certificate a trusted one.
                pause = None if isinstance(error, ssl.SSLCertVerificationError) else attempts.pause()
                if pause is None:
                    raise Unreachable(self.connection.server, reason(error, time.monotonic() - started)) from error
            await asyncio.sleep(pause)

    async def _once(
        self,
        verb: str,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        data: bytes | None,
        within: float,
        decode: Callable[[bytes], Any],
    ) -> Any:
        credential, tls = await self._credential()
        signed = {**headers, **credential.headers}
        answer = await self._http.request(verb, path, query, signed, data, within=within, tls=tls)
        self._answered_at, self.date = time.monotonic(), answer.headers.get("date", "")
        if answer.status >= 300:
            raise self._refused(answer, answer.body, verb, path, credential)
        try:
            return decode(answer.body)
        except ValueError:
            raise no_answer(path) from None

    async def _credential(self) -> tuple[Credential, ssl.SSLContext | None]:
        """Credentials that change, and the TLS context with their certificate; None for the connection's own context.

        They are empty if nothing changes: then the connection's headers say who asks.
        """
        if self.connection.credentials is None:
            return Credential(), None
        return await self.connection.credentials.current()

    def _refused(self, answer: HttpAnswer, body: bytes, verb: str, path: str, credential: Credential) -> ApiError:
        if answer.status == 401 and self.connection.credentials is not None:
            self.connection.credentials.refused(credential)
        seconds = answer.headers.get("retry-after", "")
        retry_after = float(seconds) if seconds.isdigit() else None
        return api_error(answer.status, refusal(body), verb, path, retry_after)

    async def pages(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        limit: int = 500,
        patience: float | None = None,
        accept: str = JSON,
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the items of a list, page by page, so that a large list is never in memory as a whole.

        Args:
            params: selectors, such as ``{"labelSelector": "kumulus.io/pool=a"}``.
            limit: items per page.
            patience: as for :meth:`request`, for each page.
            accept: another representation, such as ``PartialObjectMetadataList``.
        """
        async for items in self.listed(path, JsonCodec(accept), params, limit, patience):
            yield items

    async def listed(
        self,
        path: str,
        codec: Codec[T],
        params: Mapping[str, str] | None = None,
        limit: int = 500,
        patience: float | None = None,
    ) -> AsyncIterator[list[T]]:
        """Like :meth:`pages`, in another representation.

        Args:
            codec: how its lists are asked for and read, such as :class:`kumulus.kube.messages.MessageCodec`.
        """
        query = dict(params or {}) | {"limit": str(limit)}
        while True:
            page = await self.request(
                "GET", path, params=query, patience=patience, accept=codec.list_type, decode=codec.listed
            )
            yield page.items
            if not page.token:
                return
            query["continue"] = page.token

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str] | None = None, *, accept: str = JSON, timeout: float = 300.0
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET a long-lived stream, such as a watch; it is not retried.

        Yields the chunks of the answer as they arrive. They end with the answer, after ``timeout`` seconds, or when the
        server was silent for so long that it may be gone.
        """
        server = self.connection.server
        credential, tls = await self._credential()
        headers = {"Accept": accept, **credential.headers}
        silence = min(timeout, _LONGEST_SILENCE_S)
        started = time.monotonic()
        streaming = self._http.stream(
            path, params or {}, headers, within=self._request_timeout, silence=silence, tls=tls
        )
        async with AsyncExitStack() as stack:
            try:
                answer, chunks = await stack.enter_async_context(streaming)
                if answer.status >= 300:
                    body = b"".join([chunk async for chunk in chunks])
                    raise self._refused(answer, body, "GET", path, credential)
            except OSError as error:
                raise Unreachable(server, reason(error, time.monotonic() - started)) from error
            yield await stack.enter_async_context(aclosing(_until(chunks, started + timeout, server)))


async def _until(chunks: AsyncIterator[bytes], ends: float, server: str) -> AsyncGenerator[bytes, None]:
    """The chunks, until it is time to end or the server was silent for too long.

    Args:
        ends: by ``time.monotonic``.
    """
    try:
        while True:
            async with asyncio.timeout(ends - time.monotonic()):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk
    except TimeoutError:
        return
    except OSError as error:
        raise Unreachable(server, reason(error)) from error
