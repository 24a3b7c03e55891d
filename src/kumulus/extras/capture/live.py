"""Reads a live cluster without changing anything: lists page by page at the allowed rate, resuming if interrupted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kumulus.extras.capture.encoded import Unreadable, page
from kumulus.extras.capture.kinds import KINDS
from kumulus.extras.capture.reading import captured
from kumulus.extras.schedulers.kinds import ObjectKind
from kumulus.kube import ApiError, Client
from kumulus.kube.codecs import JSON, PROTOBUF
from kumulus.kube.errors import no_answer
from kumulus.kube.namespaces import NAMESPACES

if TYPE_CHECKING:
    from kumulus.extras.capture.spool import Spool
    from kumulus.kube import Connection

PAGE = 500
# A server serves others too: after each page, it is left alone for so many times as long as the page took, but no more
# than so many seconds, as over a slow network most of that time is not the server's.
_REST, _LONGEST_REST_S = 9, 0.5
ACCEPT = f"{PROTOBUF},{JSON}"
"""Protobuf first, which costs an API server a fraction of JSON; custom resources are only available in JSON."""
Progress = Callable[[str, int], None]
"""Takes a kind and how many of its objects have been read."""


class Expired(Exception):
    """The server does not, or no longer, accept the credentials."""


class Reader:
    """Reads everything of one cluster into a spool."""

    def __init__(self, client: Client, spool: Spool, rate: float, progress: Progress) -> None:
        self._client, self._spool, self._progress = client, spool, progress
        self._pause, self._next = 1 / rate, 0.0
        self.requests = 0

    async def read(self) -> None:
        """Read what is not in the spool yet.

        Raises:
            Expired: the credentials are not accepted (401).
            ApiError: the server refused a request for a reason that is not about a kind.
        """
        for kind in KINDS:
            while not await self._kind(kind):
                self._spool.restart(kind.kept_as)

    async def _kind(self, kind: ObjectKind) -> bool:
        """Read the rest of a kind; False if the server no longer accepts the last page's continue token."""
        token = self._spool.token(kind.kept_as)
        count = sum(1 for _ in self._spool.items(kind.kept_as))
        while token is not None:
            try:
                version, (items, following) = await self._page(kind, token)
            except ApiError as error:
                if error.status == 410 and token:
                    return False
                self._refused(kind, error)
                return True
            kept = [found for raw in items if (found := captured(kind.name, raw, version)) is not None]
            self._spool.add(kind.kept_as, kept, following)
            count += len(kept)
            self._progress(kind.plural, count)
            token = following or None
        return True

    async def _page(self, kind: ObjectKind, token: str) -> tuple[str, tuple[list[dict[str, Any]], str]]:
        """The API version of a page, its objects, and the token of the next page."""
        query = {"limit": str(PAGE), **({"continue": token} if token else {})}
        for version in kind.versions:
            await self._pace()
            try:
                asked = kind.api_version(version)
                decode = partial(self._decoded, kind.name, asked, time.monotonic())
                path = kind.path(version)
                return asked, await self._client.request("GET", path, params=query, accept=ACCEPT, decode=decode)
            except ApiError as error:
                if error.status != 404 or version == kind.versions[-1]:
                    raise
        raise AssertionError("a kind has a version")

    def _refused(self, kind: ObjectKind, error: ApiError) -> None:
        """Note a kind that cannot be read, and continue with the others, unless the error is not about the kind."""
        if error.status == 401:
            raise Expired(error.message) from None
        if error.status == 404:
            # The cluster does not have this kind.
            self._spool.add(kind.kept_as, [], "")
        elif error.status == 403:
            group = f" of {kind.group}" if kind.group else ""
            self._spool.add(kind.kept_as, [], "", f"forbidden: the right to list {kind.plural}{group} is missing")
        else:
            raise error

    def _decoded(self, kind: str, version: str, began: float, raw: bytes) -> tuple[list[dict[str, Any]], str]:
        """Decode a page, and set when the next one may be requested."""
        now = time.monotonic()
        self._next = max(self._next, now + min(_LONGEST_REST_S, _REST * (now - began)))
        try:
            return page(kind, version, raw)
        except Unreadable:
            raise no_answer(kind) from None

    async def _pace(self) -> None:
        """Wait until the next request may be sent."""
        now = time.monotonic()
        if self._next > now:
            await asyncio.sleep(self._next - now)
        self._next = max(now, self._next) + self._pause
        self.requests += 1


async def read_cluster(connection: Connection, spool: Spool, rate: float, patience: float, progress: Progress) -> None:
    """Read everything of a cluster that is not in the spool yet; the rest as of :class:`Reader`."""
    async with Client(connection, patience=patience, connections=1) as client:
        await Reader(client, spool, rate, progress).read()


async def identity(connection: Connection, patience: float) -> str | None:
    """The identity of a cluster, by the rights of a capture alone, which may list and not get; None without these.

    Raises:
        Expired: the credentials are not accepted (401).
    """
    try:
        async with Client(connection, patience=patience, connections=1) as client:
            found = await client.get(NAMESPACES, {"fieldSelector": "metadata.name=kube-system"})
    except ApiError as error:
        if error.status == 401:
            raise Expired(error.message) from None
        if error.status == 403:
            return None
        raise
    return next((str(each["metadata"]["uid"]) for each in found["items"]), None)
