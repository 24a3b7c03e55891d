"""Follow everything that happens in a collection while the caller listens: a list, then watches, despite failures.

A list gives the state of a collection and its resourceVersion. A watch reports what happens from there on, and ends
after some minutes; the next one begins where it ended. When the server does not know that version any more (410 Gone),
the list is read again.
Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import asyncio
import math
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast

from kumulus.kube.client import Client
from kumulus.kube.codecs import Codec, JsonCodec
from kumulus.kube.errors import ApiError, Unreachable, api_error, backoff

T = TypeVar("T")
Kind = Literal["ADDED", "MODIFIED", "DELETED"]

# A watch that ends sooner counts as an attempt without success.
_SHORTEST_S = 1.0
# For a page of a further list: the caller is to hear soon that the connection is lost.
_PAGE_PATIENCE_S = 5.0
_GONE = 410


class WatchEvent(NamedTuple, Generic[T]):
    """Something that happened to one object."""

    kind: Kind
    """ADDED, MODIFIED or DELETED. What a list names for the first time is ADDED; what a later list names again is
    MODIFIED, whether it differs or not."""
    key: str
    """``namespace/name``, or the name alone where there is no namespace."""
    item: T | None
    """The object afterwards; for a deleted one its last state, or None if a new list just did not have it."""


@dataclass(frozen=True, slots=True)
class Events(Generic[T]):
    """Events in their order, as many as arrived at once."""

    events: list[WatchEvent[T]]
    """What happened."""
    listed: bool = False
    """Whether they come from a list: they give the present state, and it is not known since when it is so."""


@dataclass(frozen=True, slots=True)
class Synced:
    """The events so far are the whole collection; those from here on are what happens in it.

    Comes after the first list, and again after each further one.
    """

    version: str
    """The collection's resourceVersion."""


@dataclass(frozen=True, slots=True)
class WatchInterrupted:
    """Nothing is heard at the moment; the follower keeps trying."""

    error: ApiError | Unreachable
    """Why: the connection is lost, or the server has forgotten where the last watch ended (410 Gone)."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """After an interruption: events arrive again.

    If the watch goes on from where it ended, all that happened meanwhile comes first, as if it happened now. If a new
    list was needed, only the present state comes: what came and went meanwhile is never heard of.
    """


News: TypeAlias = Events[T] | Synced | WatchInterrupted | Resumed


async def watch(
    client: Client,
    path: str,
    params: Mapping[str, str] | None = None,
    *,
    codec: Codec[T],
    timeout: float = 300.0,
) -> AsyncGenerator[list[tuple[str, T]], None]:
    """Send one watch and yield its events, as many as arrive at once, until the server ends it.

    Yields an empty list first, as soon as the server has accepted the watch.

    Args:
        params: selectors, ``resourceVersion`` and ``allowWatchBookmarks``.
        timeout: seconds after which the server ends the watch.

    Raises:
        ApiError: the server refused the watch, or sent an ERROR event (410 Gone: list again).
    """
    query = dict(params or {}) | {"watch": "1", "timeoutSeconds": str(max(1, int(timeout)))}
    received = bytearray()
    async with client.stream(path, query, accept=codec.watch_type, timeout=timeout + 10) as chunks:
        yield []
        async for chunk in chunks:
            received += chunk
            if batch := [codec.event(frame) for frame in codec.frames(received)]:
                for kind, item in batch:
                    if kind == "ERROR":
                        raise api_error(int(item.get("code") or 500), item, "WATCH", path, None)
                yield batch


def follow(
    client: Client,
    path: str,
    params: Mapping[str, str] | None = None,
    *,
    codec: Codec[T] | None = None,
    page: int = 500,
    timeout: float = 300.0,
) -> AsyncGenerator[News[T], None]:
    """Yield the state of a collection and everything that happens in it, until the caller stops.

    Use it with ``contextlib.aclosing``, or cancel the task that listens.

    Args:
        params: ``labelSelector`` and ``fieldSelector``.
        codec: the representation; JSON by default.
        page: objects per page of a list.
        timeout: seconds that one watch lasts; it is up to a quarter more, so that many do not end at once.

    Raises:
        ApiError: the first list is refused. Later refusals are reported as :class:`WatchInterrupted`.
        Unreachable: the server does not answer the first list within the client's patience.
    """
    chosen = codec or cast(Codec[T], JsonCodec())
    return _Follower(client, path, dict(params or {}), chosen, page, timeout).news()


class _Follower(Generic[T]):
    """The state of one :func:`follow`."""

    def __init__(
        self, client: Client, path: str, params: dict[str, str], codec: Codec[T], page: int, timeout: float
    ) -> None:
        self._client = client
        self._path = path
        self._params = params
        self._codec = codec
        self._page = page
        self._timeout = timeout
        self._known: set[str] = set()
        # Where the next watch begins; empty when the collection has to be listed.
        self._version = ""
        self._synced = False
        self._interrupted = False
        # Attempts without success since the last event; they make the pause before the next one longer.
        self._failed_attempts = 0

    async def news(self) -> AsyncGenerator[News[T], None]:
        while True:
            try:
                steps = self._watching() if self._version else self._listing()
                async with aclosing(steps):
                    async for each in steps:
                        yield each
            except (ApiError, Unreachable) as error:
                if self._synced and not self._interrupted:
                    self._interrupted = True
                    yield WatchInterrupted(error)
                if isinstance(error, ApiError) and error.status == _GONE:
                    self._version = ""
                    # The first new list is asked for at once.
                    await self._pause(None if self._failed_attempts else 0)
                    continue
                if not self._synced:
                    raise
                retry_after = error.retry_after if isinstance(error, ApiError) else None
                # Not at once, even if the server asks for no pause (0).
                await self._pause(retry_after or None)

    async def _pause(self, seconds: float | None = None) -> None:
        await asyncio.sleep(backoff(self._failed_attempts) if seconds is None else seconds)
        self._failed_attempts += 1

    async def _listing(self) -> AsyncGenerator[News[T], None]:
        """List page by page; known objects that are not listed have been deleted."""
        query = {**self._params, "limit": str(self._page)}
        gone = set(self._known)
        while True:
            patience = _PAGE_PATIENCE_S if self._synced else None
            page = await self._client.request(
                "GET",
                self._path,
                params=query,
                patience=patience,
                accept=self._codec.list_type,
                decode=self._codec.listed,
            )
            for news in self._resumed():
                yield news
            events = [self._listed(item) for item in page.items]
            gone.difference_update(event.key for event in events)
            yield Events(events, listed=True)
            if not page.token:
                break
            query["continue"] = page.token
        if gone:
            self._known -= gone
            yield Events([WatchEvent("DELETED", key, None) for key in sorted(gone)], listed=True)
        # The whole list is as of the first page's version, which every page repeats.
        self._version, self._synced = page.version, True
        yield Synced(page.version)

    def _listed(self, item: T) -> WatchEvent[T]:
        key = self._codec.key(item)
        kind: Kind = "MODIFIED" if key in self._known else "ADDED"
        self._known.add(key)
        return WatchEvent(kind, key, item)

    async def _watching(self) -> AsyncGenerator[News[T], None]:
        """Send one watch from where the last one ended."""
        query = {**self._params, "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        lasts = self._timeout * (1 + random.random() / 4)
        clock = asyncio.get_running_loop().time
        # When the server accepted the watch.
        began = math.inf
        batches = watch(self._client, self._path, query, timeout=lasts, codec=self._codec)
        try:
            async with aclosing(batches):
                async for batch in batches:
                    began = min(began, clock())
                    for news in self._resumed():
                        yield news
                    if events := self._happened(batch):
                        self._failed_attempts = 0
                        yield Events(events)
        finally:
            was_short = clock() - began < _SHORTEST_S
            if not was_short:
                self._failed_attempts = 0
        if was_short:
            # A server that ends each watch at once would otherwise be asked thousands of times a second.
            await self._pause()

    def _resumed(self) -> list[Resumed]:
        """What to report now that the server has answered: that events arrive again, if they were interrupted."""
        if not self._interrupted:
            return []
        self._interrupted = False
        return [Resumed()]

    def _happened(self, batch: list[tuple[str, T]]) -> list[WatchEvent[T]]:
        """The events of a batch that are about objects; the next watch then begins after the batch."""
        if batch:
            # Before anything of it is reported: if this ends the watch, the new list has what the batch would report.
            self._advance(*batch[-1])
        events = []
        for kind, item in batch:
            if kind not in ("ADDED", "MODIFIED", "DELETED"):
                continue
            key = self._codec.key(item)
            if kind == "DELETED":
                self._known.discard(key)
            else:
                self._known.add(key)
            events.append(WatchEvent(cast(Kind, kind), key, item))
        return events

    def _advance(self, kind: str, item: T) -> None:
        """Begin the next watch after this event.

        Raises:
            ApiError: the server went back to an earlier state (410 Gone).
        """
        version = self._codec.version(item)
        # The versions of a collection only rise (https://kep.k8s.io/5504), unless its etcd was restored to an earlier
        # state: then its history is a different one, and nothing that is known about it holds.
        if kind == "BOOKMARK" and version.isdigit() and self._version.isdigit() and int(version) < int(self._version):
            raise ApiError(_GONE, "Expired", "the server went back to an earlier state", "WATCH", self._path)
        self._version = version or self._version
