"""Pools that are looked at side by side."""

from __future__ import annotations

import asyncio

from aiohttp import web

from kumulus.cluster.pools.observe import Observation, observe
from kumulus.kube.media import PROTOBUF
from kumulus.kube.messages import message_classes
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, Pool
from tests.support.apiserver import serving

EMPTY = b"k8s\x00" + message_classes()["Unknown"](raw=b"").SerializeToString()


def pool(name: str) -> Pool:
    return Pool(name, "l40s", "a", "", 60, {CLUSTER_LABEL: "lab", POOL_LABEL: name})


async def test_pools_observed_at_once_ask_for_all_names_once_and_later_ones_anew() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if "labelSelector" in request.query:
            return web.Response(body=EMPTY, content_type=PROTOBUF)
        await asyncio.sleep(0.2)
        return web.json_response({"items": [{"metadata": {"name": "real-0"}}]})

    async with serving() as server:
        server.answers = [answer]
        client = server.client()

        def listings() -> int:
            return sum("labelSelector" not in seen.query for seen in server.seen)

        stopped = asyncio.ensure_future(observe(client, pool("p0")))
        others = [asyncio.ensure_future(observe(client, pool(f"p{n}"))) for n in range(1, 4)]
        await asyncio.sleep(0.1)
        stopped.cancel()
        seen: list[Observation] = await asyncio.gather(*others)
        assert [len(each.missing) for each in seen] == [60] * 3
        assert listings() == 1
        await observe(client, pool("p4"))
        assert listings() == 2
        await client.close()
