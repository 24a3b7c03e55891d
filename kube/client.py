"""A small asynchronous client of the Kubernetes API: verbs, paging, watching, and retries that a user can trust."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp

from kube.config import Connection
from kube.errors import ApiError, Unreachable, api_error

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"

# What the connection itself can fail with: refused, reset, cut in the middle of an answer, silent, or no HTTP at all.
_BROKEN = (
    aiohttp.ClientConnectionError,
    aiohttp.ClientPayloadError,
    aiohttp.ClientResponseError,
    asyncio.TimeoutError,
    ConnectionError,
)
_LONGEST_PAUSE = 5.0


class Client:
    """A connection to one API server, to be used as an asynchronous context manager or closed by :meth:`close`.

    Args:
        connection: where the server is, from :func:`kube.load_kubeconfig`.
        connections: the greatest number of connections kept open at once, and so of requests under way.
        field_manager: the name under which the server records who set a field.
        patience: seconds for which a request is tried again while the server is unreachable or answers with a
            transient error (429, 5xx). Verbs take their own ``patience`` too.
        request_timeout: seconds after which one attempt is given up.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        connections: int = 64,
        field_manager: str = "kumulus",
        patience: float = 60.0,
        request_timeout: float = 30.0,
    ) -> None:
        self.connection = connection
        self.connections = connections
        self.field_manager = field_manager
        self.patience = patience
        self._request_timeout = request_timeout
        self._session: aiohttp.ClientSession | None = None
        # More callers than connections would only queue inside the connector with a timeout already running.
        self._slots = asyncio.Semaphore(connections)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0, ssl=self.connection.tls if self.connection.tls is not None else True, ttl_dns_cache=300
            )
            self._session = aiohttp.ClientSession(
                connector=connector, headers=self.connection.headers, auto_decompress=True
            )
        return self._session

    async def get(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        patience: float | None = None,
        accept: str = JSON,
    ) -> Any:
        """GET an object or a list; returns the decoded JSON. ``accept`` can ask for another representation."""
        return await self.request("GET", path, params=params, patience=patience, accept=accept)

    async def create(self, path: str, body: Mapping[str, Any] | bytes, patience: float | None = None) -> Any:
        """POST an object, given as a mapping or as already encoded JSON; returns the object as stored."""
        return await self.request("POST", path, body=body, patience=patience)

    async def write(self, verb: str, path: str, body: Mapping[str, Any] | bytes, *, content_type: str = JSON) -> None:
        """POST or PATCH without wanting the stored object back: its answer is read but not decoded."""
        await self.request(verb, path, body=body, content_type=content_type, decode=False)

    async def merge_patch(self, path: str, body: Mapping[str, Any] | bytes, patience: float | None = None) -> Any:
        """Apply a JSON merge patch (RFC 7386): null removes a key, lists are replaced whole."""
        return await self.request("PATCH", path, body=body, content_type=MERGE_PATCH, patience=patience)

    async def delete(
        self, path: str, body: Mapping[str, Any] | None = None, params: Mapping[str, str] | None = None
    ) -> Any:
        """DELETE an object; ``body`` are DeleteOptions."""
        return await self.request("DELETE", path, body=body, params=params)

    async def request(
        self,
        verb: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | bytes | None = None,
        content_type: str = JSON,
        patience: float | None = None,
        accept: str = JSON,
        decode: bool = True,
    ) -> Any:
        """Send one request and decode its answer, trying again while that can help.

        A repeated POST may meet its own first attempt (409 AlreadyExists), and a repeated DELETE its own success
        (404): callers that create or delete handle these, as they must in any case.

        Raises:
            ApiError: the server refused, or kept answering with a transient error past ``patience``.
            Unreachable: no answer within ``patience`` seconds.
        """
        data = body if body is None or isinstance(body, bytes) else _encoded(body)
        headers = {"Accept": accept}
        if data is not None:
            headers["Content-Type"] = content_type
        query = dict(params or {})
        if verb in ("POST", "PATCH", "PUT"):
            query.setdefault("fieldManager", self.field_manager)
        allowed = self.patience if patience is None else patience
        give_up = time.monotonic() + allowed
        # Who is not patient must not wait for one silent attempt longer than that either.
        limits = aiohttp.ClientTimeout(total=min(self._request_timeout, max(allowed, 1.0)))
        attempt = 0
        while True:
            try:
                async with self._slots:
                    return await self._once(verb, path, query, data, headers, limits, decode)
            except ApiError as error:
                pause = error.retry_after if error.retry_after is not None else _backoff(attempt)
                if not error.transient or time.monotonic() + pause > give_up:
                    raise
            except _BROKEN as error:
                pause = _backoff(attempt)
                if time.monotonic() + pause > give_up:
                    raise Unreachable(self.connection.server, _plain(error)) from error
            attempt += 1
            await asyncio.sleep(pause)

    async def _once(
        self,
        verb: str,
        path: str,
        query: dict[str, str],
        data: bytes | None,
        headers: dict[str, str],
        limits: aiohttp.ClientTimeout,
        decode: bool,
    ) -> Any:
        async with self._open().request(
            verb, self.connection.server + path, params=query or None, data=data, headers=headers, timeout=limits
        ) as response:
            raw = await response.read()
            if response.status < 300:
                if not decode:
                    return None
                return json.loads(raw) if raw.startswith((b"{", b"[")) else raw.decode()
            after = response.headers.get("Retry-After", "")
            raise api_error(response.status, _decoded(raw), verb, path, float(after) if after.isdigit() else None)

    async def pages(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        limit: int = 500,
        patience: float | None = None,
        accept: str = JSON,
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the items of a list, page by page, so that a large list is never held whole.

        Args:
            path: the collection, such as ``/api/v1/nodes``.
            params: selectors, such as ``{"labelSelector": "kumulus.io/pool=a"}``.
            limit: items a page.
            patience: as for :meth:`request`, for each page.
            accept: another representation, such as ``PartialObjectMetadataList``.
        """
        query = dict(params or {}) | {"limit": str(limit)}
        while True:
            page = await self.get(path, query, patience, accept)
            yield page.get("items") or []
            token = page.get("metadata", {}).get("continue")
            if not token:
                return
            query["continue"] = token

    async def watch(
        self, path: str, params: Mapping[str, str] | None = None, timeout: float = 300.0
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of a watch until the server ends it or ``timeout`` seconds have passed.

        Args:
            path: the collection to watch.
            params: selectors and ``resourceVersion``.
            timeout: seconds.

        Raises:
            ApiError: the server refused the watch, or sent an ERROR event (410 Gone: list again).
            Unreachable: the connection broke.
        """
        query = dict(params or {}) | {"watch": "1", "timeoutSeconds": str(max(1, int(timeout)))}
        limits = aiohttp.ClientTimeout(total=timeout + 10)
        try:
            async with self._open().get(
                self.connection.server + path, params=query, timeout=limits, read_bufsize=2**20
            ) as response:
                if response.status >= 300:
                    raise api_error(response.status, _decoded(await response.read()), "WATCH", path, None)
                async for line in response.content:
                    if line.strip():
                        event = json.loads(line)
                        if event.get("type") == "ERROR":
                            status = event.get("object") or {}
                            raise api_error(int(status.get("code") or 500), status, "WATCH", path, None)
                        yield event
        except _BROKEN as error:
            raise Unreachable(self.connection.server, _plain(error)) from error


def _backoff(attempt: int) -> float:
    """Seconds to wait before the next attempt: exponential from 50 ms, with full jitter so that many do not march."""
    ceiling: float = min(_LONGEST_PAUSE, 0.05 * 2 ** min(attempt, 10))
    return ceiling * (0.5 + random.random() / 2)


def _plain(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = error.certificate_error
        return f"its certificate is not trusted: {getattr(reason, 'verify_message', '') or reason}"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return f"no TLS connection: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        return os.strerror(number).lower() if number else str(error.os_error)
    return str(error) or type(error).__name__


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")
