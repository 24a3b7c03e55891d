"""A fleet kept up to date by watches, for as long as somebody looks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

from fleet import health
from fleet.model import Fleet
from fleet.node import Places, node_from
from fleet.pod import pod_from
from kube import ApiError, Client, Unreachable
from kube.messages import MessageCodec
from kube.watch import Event, Events, Interrupted, Synced, follow

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"


class Live:
    """What is known of a cluster, from moment to moment; an asynchronous context manager.

    Entering it waits for the first lists and raises what they fail with.

    Args:
        client: of the cluster.
        places: which labels say where nodes stand.
        endpoints: addresses of health checks by component, on this machine.

    Attributes:
        fleet: nodes, pods and their sums.
        checks: how each component of the control plane is.
        lost: why nothing can be heard at the moment; None when all is well.
        lost_at: since when, on the monotonic clock.
    """

    def __init__(self, client: Client, places: Places, endpoints: Mapping[str, str] | None = None) -> None:
        self.fleet = Fleet()
        self.checks: dict[str, health.Check] = {}
        self.lost: ApiError | Unreachable | None = None
        self.lost_at = 0.0
        self._client = client
        self._places = places
        self._endpoints = dict(endpoints or {})
        self._silent: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Live:
        nodes, pods = asyncio.Event(), asyncio.Event()
        self._tasks = [
            asyncio.create_task(self._follow(NODES, "Node", self._take_node, nodes)),
            asyncio.create_task(self._follow(PODS, "Pod", self._take_pod, pods)),
        ]
        ready = asyncio.create_task(_both(nodes, pods))
        try:
            await asyncio.wait([ready, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
            await self._raise_failure()
            self.checks = await health.look(self._client, self._endpoints)
            self._tasks.append(asyncio.create_task(self._look()))
        except BaseException:
            await self.__aexit__()
            raise
        finally:
            ready.cancel()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ended(self) -> None:
        """Wait for ever; raises what ends the watching, should anything do so."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        await self._raise_failure()

    async def _raise_failure(self) -> None:
        for task in self._tasks:
            if task.done():
                await task

    async def _follow(
        self, path: str, kind: str, take: Callable[[Event[Any], float | None], None], begun: asyncio.Event
    ) -> None:
        async with aclosing(follow(self._client, path, codec=MessageCodec(kind))) as news:
            async for each in news:
                if isinstance(each, Events):
                    at = None if each.listed else time.monotonic()
                    for event in each.events:
                        take(event, at)
                elif isinstance(each, Synced):
                    begun.set()
                else:
                    self._hear(path, each.error if isinstance(each, Interrupted) else None)

    def _take_node(self, event: Event[Any], _: float | None) -> None:
        self.fleet.set_node(event.key, None if event.kind == "DELETED" else node_from(event.item, self._places))

    def _take_pod(self, event: Event[Any], at: float | None) -> None:
        self.fleet.set_pod(event.key, None if event.kind == "DELETED" else pod_from(event.item), at)

    def _hear(self, path: str, error: ApiError | Unreachable | None) -> None:
        """One of the watches was interrupted, or goes on."""
        if error is None:
            self._silent.discard(path)
            if not self._silent:
                self.lost = None
            return
        if not self._silent:
            self.lost, self.lost_at = error, time.monotonic()
        self._silent.add(path)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(health.INTERVAL)
            self.checks = await health.look(self._client, self._endpoints)


async def _both(one: asyncio.Event, other: asyncio.Event) -> None:
    await one.wait()
    await other.wait()
