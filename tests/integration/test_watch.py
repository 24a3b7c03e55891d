"""Following a collection of a real API server: its restart, a version it has forgotten, and many objects."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from kumulus.kube import ApiError, Client, load_kubeconfig
from kumulus.kube.codecs import JsonCodec
from kumulus.kube.messages import MessageCodec
from kumulus.kube.watch import Events, News, Resumed, Synced, WatchEvent, WatchInterrupted, follow, watch
from tests.integration.conftest import NODES, Plane, Pools
from tests.support import processes

pytestmark = pytest.mark.integration


class Listener:
    """A task that follows a collection, and what it has heard."""

    def __init__(self, client: Client, path: str, **options: Any) -> None:
        self.heard: list[News[dict[str, Any]]] = []
        self.objects: dict[str, Any] = {}
        self._changed = asyncio.Condition()
        self.task = asyncio.ensure_future(self._listen(client, path, options))

    async def _listen(self, client: Client, path: str, options: dict[str, Any]) -> None:
        async with aclosing(follow(client, path, **options)) as news:
            async for each in news:
                async with self._changed:
                    self.heard.append(each)
                    for event in each.events if isinstance(each, Events) else ():
                        self._note(event)
                    self._changed.notify_all()

    def _note(self, event: WatchEvent[dict[str, Any]]) -> None:
        if event.kind == "DELETED":
            del self.objects[event.key]
        else:
            assert (event.kind == "ADDED") == (event.key not in self.objects)
            self.objects[event.key] = event.item

    async def until(self, holds: Any, seconds: float = 60) -> None:
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(holds)

    def of(self, kind: type) -> list[Any]:
        return [each for each in self.heard if isinstance(each, kind)]


@pytest.mark.parametrize("codec", [None, MessageCodec("Node")], ids=["json", "protobuf"])
async def test_nodes_are_listed_in_pages_and_then_watched(plane: Plane, pools: Pools, codec: Any) -> None:
    first, second = pools.inputs(25), pools.inputs(3)
    await pools.create(first)
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        listener = Listener(client, NODES, page=10, codec=codec)
        await listener.until(lambda: listener.of(Synced))
        assert len(listener.of(Events)) >= 3
        assert set(listener.objects) >= set(pools.nodes(first))
        await pools.create(second)
        await listener.until(lambda: set(pools.nodes(second)) <= set(listener.objects))
        await pools.delete(first)
        await listener.until(lambda: not set(listener.objects) & {f"{first['name']}-{n}" for n in range(25)})
        listener.task.cancel()


async def test_a_restart_of_the_api_server_loses_nothing(plane: Plane, pools: Pools) -> None:
    first = pools.inputs(5)
    old = await pools.create(first)
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        listener = Listener(client, NODES)
        await listener.until(lambda: listener.of(Synced))
        processes.kill(plane.processes()["kube-apiserver"])
        await listener.until(lambda: listener.of(WatchInterrupted))
        assert (await plane.repair()).health == "running"
        await pools.update({**first, "replicas": 3}, old)
        await listener.until(lambda: listener.of(Resumed) and f"{first['name']}-4" not in listener.objects)
        assert set(pools.nodes(first)) == {name for name in listener.objects if name.startswith(first["name"])}
        assert len(listener.of(WatchInterrupted)) == len(listener.of(Resumed)) == 1
        listener.task.cancel()


async def test_a_version_that_the_server_has_forgotten_is_gone(plane: Plane, pools: Pools) -> None:
    await pools.create(pools.inputs(2))
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        with pytest.raises(ApiError) as caught:
            async for _ in watch(client, NODES, {"resourceVersion": "1"}, codec=JsonCodec(), timeout=10):
                pass
    assert caught.value.status == 410
