"""Following a collection: what a listener hears of it, whatever happens to the server meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from kumulus.kube import ApiError, Client, Unreachable
from kumulus.kube.codecs import JsonCodec
from kumulus.kube.watch import Events, News, Resumed, Synced, WatchEvent, WatchInterrupted, follow, watch
from tests.support.apiserver import Answer, Server, ok, serving, silent, status, stream

NODES = "/api/v1/nodes"
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
Item = dict[str, Any]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as found:
        yield found


def item(name: str, version: int, **fields: Any) -> Item:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, **fields}


def page(version: int, *items: Item, more: str = "") -> Answer:
    return ok({"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)})


def happens(kind: str, *items: Item) -> list[Item]:
    return [{"type": kind, "object": each} for each in items]


async def hear(client: Client, count: int, **options: Any) -> list[News[Item]]:
    """The first news of a collection, single events one by one."""
    heard: list[News[Item]] = []
    async with asyncio.timeout(20), aclosing(follow(client, NODES, **options)) as news:
        async for each in news:
            heard += [Events([event], each.listed) for event in each.events] if isinstance(each, Events) else [each]
            if len(heard) >= count:
                break
    return heard


def one(kind: Any, found: Item) -> Events[Item]:
    """An event that a watch told."""
    return Events([WatchEvent(kind, found["metadata"]["name"], found)])


def listed(kind: Any, name: str, found: Item | None) -> Events[Item]:
    """What a list says."""
    return Events([WatchEvent(kind, name, found)], listed=True)


# --- one watch -------------------------------------------------------------------------------------------------------


async def test_a_watch_yields_events_until_the_server_ends_it(server: Server) -> None:
    events = happens("ADDED", *(item(f"n{n}", n) for n in range(3)))
    server.answers = [stream(*events)]
    async with server.client() as client:
        watching = watch(client, NODES, {"resourceVersion": "7"}, codec=JsonCodec(), timeout=60)
        batches = [batch async for batch in watching]
    assert batches[0] == []
    assert [found for batch in batches for found in batch] == [("ADDED", event["object"]) for event in events]
    assert server.seen[0].query == {"watch": "1", "timeoutSeconds": "60", "resourceVersion": "7"}


async def test_events_come_as_they_happen_though_they_come_in_pieces(server: Server) -> None:
    more = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"ADDED","object":{}}\n{"type":')
        await more.wait()
        await response.write(b'"DELETED","object":{}}\n')
        return response

    server.answers = [answer]
    async with server.client() as client, aclosing(watch(client, NODES, codec=JsonCodec())) as batches:
        assert await anext(batches) == []
        assert await anext(batches) == [("ADDED", {})]
        more.set()
        assert await anext(batches) == [("DELETED", {})]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (stream({"type": "ERROR", "object": GONE}), "410 Expired: too old resource version"),
        (status(403, "Forbidden", "no"), f"GET {NODES}: 403 Forbidden: no"),
    ],
    ids=["an error event", "a refusal"],
)
async def test_what_ends_a_watch_is_said(server: Server, answer: Answer, said: str) -> None:
    server.answers = [answer]
    async with server.client() as client:
        with pytest.raises(ApiError, match=said):
            [batch async for batch in watch(client, NODES, codec=JsonCodec())]


async def test_a_watch_whose_connection_breaks_says_so(server: Server) -> None:
    server.answers = [stream(*happens("ADDED", item("a", 1)), end=False)]
    async with server.client() as client:
        with pytest.raises(Unreachable):
            [batch async for batch in watch(client, NODES, codec=JsonCodec())]


async def test_a_server_that_takes_no_watch_is_not_waited_for_without_end(server: Server) -> None:
    server.answers = [silent]
    async with server.client(request_timeout=0.3) as client:
        with pytest.raises(Unreachable, match=r"no answer in time, after \d+\.\d s$"):
            [batch async for batch in watch(client, NODES, codec=JsonCodec())]


# --- a list, then watches --------------------------------------------------------------------------------------------


async def test_a_list_is_read_page_by_page_and_watched_from_its_version(server: Server) -> None:
    a, b, c = item("a", 3), item("b", 4), item("c", 12)
    server.answers = [page(10, a, more="t"), page(10, b), stream(*happens("ADDED", c)), silent]
    async with server.client() as client:
        heard = await hear(client, 4, params={"labelSelector": "x=y"}, page=1)
    assert heard == [listed("ADDED", "a", a), listed("ADDED", "b", b), Synced("10"), one("ADDED", c)]
    first, second, watched = server.seen[:3]
    assert first.query == {"labelSelector": "x=y", "limit": "1"}
    assert second.query == {"labelSelector": "x=y", "limit": "1", "continue": "t"}
    assert (watched.query["resourceVersion"], watched.query["labelSelector"]) == ("10", "x=y")
    assert watched.query["allowWatchBookmarks"] == "true"


async def test_the_next_watch_begins_after_the_last_event_or_bookmark(server: Server) -> None:
    a, changed = item("a", 3), item("a", 11)
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}}
    server.answers = [page(10, a), stream(*happens("MODIFIED", changed)), stream(bookmark)]
    server.answers += [stream(*happens("DELETED", item("a", 21))), silent]
    async with server.client() as client:
        heard = await hear(client, 4)
    assert heard == [listed("ADDED", "a", a), Synced("10"), one("MODIFIED", changed), one("DELETED", item("a", 21))]
    assert [seen.query["resourceVersion"] for seen in server.seen[1:4]] == ["10", "11", "20"]


async def test_what_was_deleted_while_the_server_forgot_is_told_after_a_new_list(server: Server) -> None:
    a, b, c = item("a", 3), item("b", 4), item("c", 30)
    server.answers = [page(10, a, b), stream({"type": "ERROR", "object": GONE}), page(31, b, c), silent]
    async with server.client() as client:
        heard = await hear(client, 9)
    assert heard[:3] == [listed("ADDED", "a", a), listed("ADDED", "b", b), Synced("10")]
    assert isinstance(heard[3], WatchInterrupted), "what came and went before the new list is never heard of"
    assert "410 Expired" in str(heard[3].error)
    assert heard[4:] == [
        Resumed(),
        listed("MODIFIED", "b", b),
        listed("ADDED", "c", c),
        listed("DELETED", "a", None),
        Synced("31"),
    ]


async def test_a_page_that_expired_begins_the_list_anew(server: Server) -> None:
    a, b = item("a", 3), item("b", 4)
    server.answers = [page(10, a, more="t"), status(410, "Expired", "continue is too old"), page(20, b), silent]
    async with server.client() as client:
        heard = await hear(client, 4)
    assert heard == [listed("ADDED", "a", a), listed("ADDED", "b", b), listed("DELETED", "a", None), Synced("20")]


async def test_an_interruption_is_told_once_and_so_is_its_end(server: Server) -> None:
    a, c = item("a", 3), item("c", 12)
    unwell = status(503, "ServiceUnavailable", "starting")
    server.answers = [page(10, a), stream(end=False), unwell, unwell, stream(*happens("ADDED", c)), silent]
    async with server.client() as client:
        heard = await hear(client, 5)
    assert heard[:2] == [listed("ADDED", "a", a), Synced("10")]
    assert isinstance(heard[2], WatchInterrupted)
    assert isinstance(heard[2].error, Unreachable)
    assert heard[3:] == [Resumed(), one("ADDED", c)]
    assert {seen.query["resourceVersion"] for seen in server.seen[1:]} == {"10"}


async def test_a_refusal_after_the_first_list_is_an_interruption(server: Server) -> None:
    # A server that has just started does not know the roles yet.
    server.answers = [page(10), status(403, "Forbidden", "not yet"), page(11), silent]
    async with server.client() as client:
        heard = await hear(client, 3)
    assert isinstance(heard[1], WatchInterrupted)
    assert heard[2] == Resumed()


@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (500, "InternalError")])
async def test_a_first_list_that_is_refused_or_fails_is_an_error(server: Server, code: int, reason: str) -> None:
    server.answers = [status(code, reason, "no nodes")]
    async with server.client(patience=0.2) as client:
        with pytest.raises(ApiError, match=f"{code} {reason}: no nodes"):
            await hear(client, 1)


@pytest.mark.parametrize(
    "with_the_news", [[], [*happens("DELETED", item("a", 101)), *happens("ADDED", item("b", 102))]], ids=len
)
async def test_a_server_put_back_to_an_earlier_state_is_listed_anew(server: Server, with_the_news: list[Item]) -> None:
    """Its versions begin again; a watch from the version of the old state would wait in silence."""
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "50"}}}
    server.answers = [page(100, item("a", 3)), stream(*with_the_news, bookmark), page(51, item("b", 4)), silent]
    async with server.client() as client:
        heard = await hear(client, 7)
    assert isinstance(heard[2], WatchInterrupted)
    assert heard[3:] == [Resumed(), listed("ADDED", "b", item("b", 4)), listed("DELETED", "a", None), Synced("51")]


@pytest.mark.parametrize("always", [stream(), status(503, "ServiceUnavailable", "etcd", Retry_After="0")])
async def test_a_server_that_ends_every_watch_at_once_is_not_hammered(server: Server, always: Answer) -> None:
    server.answers = [page(10), always]
    async with server.client() as client:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await hear(client, 100)
    assert time.monotonic() - began < 5
    assert len(server.seen) < 12


async def test_keys_have_the_namespace_where_there_is_one(server: Server) -> None:
    pod = {"metadata": {"name": "p", "namespace": "default", "resourceVersion": "5"}}
    server.answers = [page(10, pod), silent]
    async with server.client() as client:
        assert await hear(client, 1) == [listed("ADDED", "default/p", pod)]
