"""A fleet kept up to date by watches, also of collections that a cluster may not have, such as a scheduler's queues."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from kumulus.extras.watch.live import health
from kumulus.extras.watch.live.devices import claim_from, published_from
from kumulus.extras.watch.live.model import Fleet
from kumulus.extras.watch.live.node import PlaceLabels, node_from
from kumulus.extras.watch.live.pod import pod_from
from kumulus.extras.watch.live.refusals import EVENTS, Refusals
from kumulus.kube import ApiError, Client, Unreachable
from kumulus.kube.codecs import Codec, JsonCodec
from kumulus.kube.errors import tolerating
from kumulus.kube.messages import MessageCodec
from kumulus.kube.objects import NODES
from kumulus.kube.pods import PODS
from kumulus.kube.watch import Events, News, Synced, WatchEvent, WatchInterrupted, follow
from kumulus.nodes.catalog.prices import Prices

SLICES, CLAIMS = (f"/apis/resource.k8s.io/v1/{each}" for each in ("resourceslices", "resourceclaims"))
_NOT_FOR_US = (403, 404)
Take = Callable[[WatchEvent[Any]], None]
_TakeAt = Callable[[WatchEvent[Any], float | None], None]
_T = TypeVar("_T")
_AGAIN = 5.0


class Live:
    """What is known of a cluster, kept up to date; an asynchronous context manager.

    Entering it waits for the first lists and raises their errors. :meth:`move` switches to another cluster.

    Args:
        places: the labels that say where nodes stand.
        endpoints: addresses of health checks by component, on this machine.

    Attributes:
        fleet: nodes, pods and their sums.
        checks: the health of each component of the control plane.
        refused: pods that controllers want and the API server refuses, by who lacks them and why.
        lost: why a watch is interrupted; None when all is well.
        lost_at: since when, on the monotonic clock.
    """

    def __init__(
        self,
        client: Client,
        places: PlaceLabels,
        endpoints: Mapping[str, str] | None = None,
        prices: Prices | None = None,
    ) -> None:
        self._prices = prices
        self.fleet = Fleet()
        self.checks: dict[str, health.HealthCheck] = {}
        self.refused = Counter[str]()
        self.lost: ApiError | Unreachable | None = None
        self.lost_at = 0.0
        self._client = client
        self._places = places
        self._endpoints = dict(endpoints or {})
        self._refusals = Refusals()
        self._silent: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._over = asyncio.Event()
        self._failure: BaseException | None = None
        self._also: dict[str, Take] = {}
        self._cleared: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Live:
        await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    @property
    def client(self) -> Client:
        """The client of the cluster that it describes now."""
        return self._client

    def follow_also(self, collections: Mapping[str, Take], cleared: Callable[[], None]) -> None:
        """Follow more than nodes and pods from now on; a collection that the server does not have may appear later.

        By path, each collection has what gets its events, with objects in their JSON form. When another cluster is
        followed, all of it is gone, and ``cleared`` is called.
        """
        self._also, self._cleared = dict(collections), cleared
        others = self._others()
        for task in others:
            task.add_done_callback(self._note_end)
        self._tasks += others

    def _others(self) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(follow_when_there(self._client, path, take)) for path, take in self._also.items()]

    async def ended(self) -> None:
        """Wait for ever; raises whatever error ends the watching."""
        await self._over.wait()
        if self._failure is not None:
            raise self._failure

    async def move(self, client: Client, places: PlaceLabels, endpoints: Mapping[str, str]) -> None:
        """Follow another cluster from now on; all that was known of this one is then forgotten."""
        await client.get(NODES, {"limit": "1"})
        await self._stop()
        self._client, self._places, self._endpoints = client, places, dict(endpoints)
        self.fleet.clear()
        self._refusals = Refusals()
        self._cleared()
        self._silent.clear()
        await self._begin()
        if not self._silent:
            self.lost = None

    async def _begin(self) -> None:
        fleet, begun = self.fleet, [asyncio.Event() for _ in range(5)]
        follow, follow_if = self._follow, self._follow_if
        read_node = partial(node_from, places=self._places, prices=self._prices)
        followed = [
            follow(NODES, "Node", _set(read_node, fleet.set_node), begun[0]),
            follow(PODS, "Pod", self._take_pod, begun[1]),
            follow_if(SLICES, "ResourceSlice", _set(published_from, fleet.set_slice), begun[2]),
            follow_if(CLAIMS, "ResourceClaim", _set(claim_from, fleet.set_claim), begun[3]),
            follow_if(EVENTS, "", lambda event, _: self._refusals.take(event), begun[4]),
        ]
        self._tasks = [asyncio.create_task(each) for each in followed]
        ready = asyncio.create_task(_all(begun))
        try:
            await asyncio.wait([ready, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in self._tasks:
                if task.done():
                    await task
            await self._look()
        except BaseException:
            await self._stop()
            raise
        finally:
            ready.cancel()
        self._tasks += [asyncio.create_task(self._keep_looking()), *self._others()]
        for task in self._tasks:
            task.add_done_callback(self._note_end)

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._failure = self._failure or task.exception()
            self._over.set()

    async def _follow(self, path: str, kind: str, take: _TakeAt, begun: asyncio.Event) -> None:
        codec: Codec[Any] = MessageCodec(kind) if kind else JsonCodec()
        collection, _, query = path.partition("?")
        async with aclosing(follow(self._client, collection, dict(parse_qsl(query)), codec=codec)) as news:
            async for each in news:
                if isinstance(each, Events):
                    at = None if each.listed else time.monotonic()
                    for event in each.events:
                        take(event, at)
                elif isinstance(each, Synced):
                    begun.set()
                else:
                    self._hear(path, each.error if isinstance(each, WatchInterrupted) else None)

    async def _follow_if(self, path: str, kind: str, take: _TakeAt, begun: asyncio.Event) -> None:
        """Like :meth:`_follow`, but silent for ever if the server lacks such objects or forbids them to this user."""
        with tolerating(*_NOT_FOR_US):
            await self._follow(path, kind, take, begun)
        begun.set()
        await asyncio.Event().wait()

    def _take_pod(self, event: WatchEvent[Any], at: float | None) -> None:
        self.fleet.set_pod(event.key, None if event.kind == "DELETED" else pod_from(event.item), at)

    def _hear(self, path: str, error: ApiError | Unreachable | None) -> None:
        """One of the watches was interrupted, or has resumed."""
        if error is None:
            self._silent.discard(path)
            if not self._silent:
                self.lost = None
            return
        if not self._silent:
            self.lost, self.lost_at = error, time.monotonic()
        self._silent.add(path)

    async def _look(self) -> None:
        self.checks = await health.look(self._client, self._endpoints)
        self.refused = await self._refusals.look(self._client)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(health.INTERVAL)
            await self._look()


def _set(read: Callable[[Any], _T], set_one: Callable[[str, _T | None], None]) -> _TakeAt:
    """What sets an object's current state, None if it is gone, from an event about it."""
    return lambda event, _: set_one(event.key, None if event.kind == "DELETED" else read(event.item))


async def _all(events: Iterable[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


def together(one: Mapping[str, Take], other: Mapping[str, Take]) -> dict[str, Take]:
    """What two followers want, by path; a path that both want is followed once."""
    both: dict[str, Take] = {path: partial(_both, one[path], other[path]) for path in one.keys() & other.keys()}
    return {**one, **other, **both}


def _both(one: Take, other: Take, event: WatchEvent[Any]) -> None:
    one(event)
    other(event)


async def follow_when_there(client: Client, path: str, take: Take) -> None:
    """Follow a collection until cancelled; if the server does not have it, it may appear later.

    The path may have a query; ``take`` gets the events, with objects in their JSON form.
    """
    path, _, query = path.partition("?")
    while True:
        try:
            listening: AsyncGenerator[News[Any], None] = follow(client, path, dict(parse_qsl(query)))
            async with aclosing(listening) as news:
                async for each in news:
                    for event in each.events if isinstance(each, Events) else ():
                        take(event)
        except (ApiError, Unreachable):
            # It does not exist, is forbidden or unavailable; the watches of nodes and pods show a lost connection.
            await asyncio.sleep(_AGAIN)
