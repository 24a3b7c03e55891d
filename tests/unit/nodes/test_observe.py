"""Pools that are looked at side by side."""

import asyncio
from dataclasses import replace

import pytest
from aiohttp import web

from kumulus.kube.codecs import PROTOBUF
from kumulus.kube.messages import message_classes
from kumulus.model.consequences import consequences
from kumulus.model.pools import CLUSTER_LABEL, POOL_LABEL, Bounds, Pool
from kumulus.nodes.pools.observe import PoolObservation, observe
from kumulus.nodes.pools.scaled import free, with_ordinals, within_bounds
from tests.support.apiserver import serving

EMPTY = b"k8s\x00" + message_classes()["Unknown"](raw=b"").SerializeToString()
POOL = Pool("web-z", "web", "z", "", 3, {}, capacity={"cpu": "4"}, allocatable={"cpu": "4"}, bounds=Bounds(2, 5))


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
        seen: list[PoolObservation] = await asyncio.gather(*others)
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


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ([0, 4, 7], [0, 4, 7]),
        ([4], [0, 4]),
        ([], [0, 1]),
        ([1, 2, 3, 5, 8, 9], [1, 2, 3, 5, 8]),
    ],
)
def test_what_there_is_stays_and_the_bounds_are_kept(there: list[int], wanted: list[int]) -> None:
    assert within_bounds(POOL, there) == wanted


def test_a_pool_of_some_numbers_has_just_those() -> None:
    pool = with_ordinals(POOL, [1, 4])
    assert (pool.replicas, pool.absent, pool.count) == (5, frozenset({0, 2, 3}), 2)
    assert with_ordinals(POOL, []).count == 0
    # What holds at the moment is not part of what the stack says.
    assert pool == replace(POOL, replicas=5)
    meaning = consequences(pool, with_ordinals(POOL, [1, 4, 0]), hourly=lambda _: 0.5)
    assert meaning.describe() == "group web, zone z: +1 node (2 → 3): +4 cpu, +$0.50/h"


def test_the_lowest_free_numbers_come_first() -> None:
    assert free({0, 2, 3}, 3) == [1, 4, 5]


@pytest.mark.parametrize("name", ["web-z-01", "web-z-", "web-z-x", "web-y-1", "web-z--1", "web-z-1-2", "web-z-²"])
def test_other_names_are_no_numbers_of_a_pool(name: str) -> None:
    assert POOL.ordinal_of(name) is None
    assert POOL.ordinal_of("web-z-12") == 12
