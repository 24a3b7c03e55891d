"""Pools that are looked at side by side."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from kumulus.kube.media import PROTOBUF
from kumulus.kube.messages import message_classes
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, Pool
from kumulus.nodes.pools.observe import Observation, observe
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


@pytest.mark.parametrize(("missing", "more", "pages"), [(30, False, 1), (30, True, 1), (4, False, 0)])
async def test_a_small_pools_names_are_sought_on_one_page_or_where_there_are_more_one_by_one(
    missing: int, more: bool, pages: int
) -> None:
    wanted = Pool("p0", "l40s", "a", "", missing, {CLUSTER_LABEL: "lab", POOL_LABEL: "p0"})
    names = list(wanted.node_names())

    async def answer(request: web.Request) -> web.StreamResponse:
        if "labelSelector" in request.query:
            return web.Response(body=EMPTY, content_type=PROTOBUF)
        if request.path == "/api/v1/nodes":
            # One of the pool's names is a node that has lost its label.
            items = [{"metadata": {"name": name}} for name in ("real-0", names[2])]
            return web.json_response({"metadata": {"continue": "next"} if more else {}, "items": items})
        if request.path.endswith(names[2]):
            return web.json_response({"metadata": {"name": names[2]}, "spec": {}, "status": {}})
        return web.json_response({}, status=404)

    async with serving() as server:
        server.answers = [answer]
        client = server.client()
        seen = await observe(client, wanted)
        await client.close()
    assert [*seen.altered] == [2]
    assert len(seen.missing) == missing - 1
    singly = [request.path.rpartition("/")[2] for request in server.seen if request.path != "/api/v1/nodes"]
    lists = [request for request in server.seen if request.path == "/api/v1/nodes"]
    assert sum("labelSelector" not in request.query for request in lists) == pages
    assert sorted({*singly}) == ([names[2]] if pages and not more else sorted(names))
