"""The Kubernetes client against a small HTTP server: what is tried again, what is not, and what the user is told."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from kumulus.kube import ApiError, Client, Connection, Unreachable, load_kubeconfig, objects
from kumulus.kube.bulk import for_all, for_each
from tests.support.apiserver import Answer, Server, cut, kubeconfig, ok, serving, silent, status, text

NODES = "/api/v1/nodes"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as found:
        yield found


# --- one request -----------------------------------------------------------------------------------------------------


async def test_verbs_send_what_the_api_server_expects(server: Server) -> None:
    server.answers = [ok({"kind": "Node"})]
    async with server.client() as client:
        assert await client.get(NODES, {"limit": "1"}) == {"kind": "Node"}
        await client.create(NODES, {"a": 1})
        await client.merge_patch(f"{NODES}/a", {"b": None})
        await client.delete(f"{NODES}/a", {"gracePeriodSeconds": 0})
        write: Callable[[str, str, bytes], Awaitable[object]] = client.write
        assert await write("POST", NODES, b'{"c":1}') is None
    got, post, patch, delete, raw = server.seen
    assert (got.verb, got.query, got.headers["Authorization"]) == ("GET", {"limit": "1"}, "Bearer t")
    assert (post.verb, post.query, post.body) == ("POST", {"fieldManager": "kumulus"}, b'{"a":1}')
    assert (patch.verb, patch.headers["Content-Type"]) == ("PATCH", "application/merge-patch+json")
    assert patch.body == b'{"b":null}'
    assert (delete.verb, delete.body) == ("DELETE", b'{"gracePeriodSeconds":0}')
    assert (raw.body, raw.headers["Content-Type"]) == (b'{"c":1}', "application/json")


async def test_an_answer_that_is_no_json_is_returned_as_text(server: Server) -> None:
    server.answers = [text(200, "ok")]
    async with server.client() as client:
        assert await client.get("/readyz") == "ok"


@pytest.mark.parametrize("page", [b"{not JSON", b"\xff\xfe", b"<html>"])
async def test_a_list_that_is_none_is_no_answer_of_an_api_server(server: Server, page: bytes) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=page)

    server.answers = [answer]
    async with server.client(patience=0.0) as client:
        with pytest.raises(ApiError, match="this is no answer of an API server; is something else between it and us"):
            [each async for each in client.pages(NODES)]


async def test_an_object_that_is_none_is_no_answer_of_an_api_server(server: Server) -> None:
    server.answers = [text(200, "{not JSON"), text(200, "<html>please sign in</html>")]
    async with server.client(patience=0.0) as client:
        with pytest.raises(ApiError, match="this is no answer of an API server"):
            await client.get(f"{NODES}/a")
        with pytest.raises(ApiError, match="this is no answer of an API server"):
            await objects.identity(client)


async def test_too_many_requests_are_tried_again_after_the_time_the_server_asked_for(server: Server) -> None:
    server.answers = [status(429, "TooManyRequests", "slow down", Retry_After="1"), ok({"done": True})]
    async with server.client() as client:
        assert await client.get(NODES) == {"done": True}
    first, second = server.seen
    assert second.at - first.at >= 1.0


@pytest.mark.parametrize("code", [500, 502, 503, 504])
async def test_the_servers_own_trouble_is_tried_again(server: Server, code: int) -> None:
    server.answers = [status(code, "InternalError", "etcd leader changed")] * 2 + [ok({"done": True})]
    async with server.client() as client:
        assert await client.create(NODES, {"name": "a"}) == {"done": True}
    assert [seen.body for seen in server.seen] == [b'{"name":"a"}'] * 3


@pytest.mark.parametrize("trouble", [cut, silent])
async def test_a_connection_that_is_cut_or_hangs_is_tried_again(server: Server, trouble: Answer) -> None:
    server.answers = [trouble, ok({"done": True})]
    async with server.client(request_timeout=0.1) as client:
        assert await client.get(NODES) == {"done": True}


@pytest.mark.parametrize(
    ("code", "reason"),
    [(400, "BadRequest"), (403, "Forbidden"), (404, "NotFound"), (409, "Conflict"), (401, "Unauthorized")],
)
async def test_a_refusal_is_not_tried_again(server: Server, code: int, reason: str) -> None:
    server.answers = [status(code, reason, "no")]
    async with server.client() as client:
        with pytest.raises(ApiError) as raised:
            await client.delete(f"{NODES}/a")
    remedy = "; the credentials may have expired: renew them" if code == 401 else ""
    assert str(raised.value) == f"DELETE {NODES}/a: {code} {reason}: no{remedy}"
    assert (raised.value.status, raised.value.reason, len(server.seen)) == (code, reason, 1)


@pytest.mark.parametrize(
    ("answer", "patience", "said", "least", "most"),
    [
        (text(403, "blocked by the proxy\n"), 5, "403 Error: blocked by the proxy", 1, 1),
        (status(503, "ServiceUnavailable", "starting"), 0.3, "503 ServiceUnavailable: starting", 2, 9),
        (status(503, "ServiceUnavailable", "starting"), 0, "503 ServiceUnavailable: starting", 1, 1),
        # It asks for a longer wait than the caller's patience, or for none.
        (status(429, "TooManyRequests", "come back later", Retry_After="30"), 5, "come back later", 1, 1),
        (status(429, "TooManyRequests", "again", Retry_After="0"), 1.0, "again", 3, 11),
        (status(500, "InternalError", "etcdserver: mvcc: database space exceeded"), 5, "space exceeded", 1, 1),
    ],
)
async def test_an_error_is_reported_once_its_callers_patience_is_over_or_trying_cannot_help(
    server: Server, answer: Answer, patience: float, said: str, least: int, most: int
) -> None:
    server.answers = [answer]
    started = time.monotonic()
    async with server.client(patience=60) as client:
        with pytest.raises(ApiError, match=said) as raised:
            await client.get(NODES, patience=patience)
    assert least <= len(server.seen) <= most
    assert raised.value.quota_exceeded == (said == "space exceeded")
    assert time.monotonic() - started < 5


async def test_a_port_nobody_listens_on_is_unreachable_after_patience(unused_tcp_port: int) -> None:
    async with Client(Connection(f"http://127.0.0.1:{unused_tcp_port}", "test"), patience=0.3) as client:
        started = time.monotonic()
        with pytest.raises(Unreachable) as raised:
            await client.get(NODES)
    assert 0.1 < time.monotonic() - started < 2
    assert str(raised.value) == (
        f"the Kubernetes API server at http://127.0.0.1:{unused_tcp_port} is not reachable: connection refused"
    )


async def test_a_silent_server_is_unreachable_after_patience(server: Server) -> None:
    server.answers = [silent]
    async with server.client(patience=0.3, request_timeout=0.1) as client:
        with pytest.raises(Unreachable, match=r"not reachable: no answer in time, after \d+\.\d s$"):
            await client.get(NODES)


@pytest.mark.parametrize("answers_others", [True, False])
async def test_a_server_that_answers_others_meanwhile_is_busy_and_waited_for_longer(
    server: Server, answers_others: bool
) -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        if request.path == NODES:
            await asyncio.sleep(0.7)
        return web.json_response({"path": request.path})

    server.answers = [slow]
    async with server.client(patience=0.5, request_timeout=0.3) as client:
        asked = asyncio.ensure_future(client.get(NODES))
        while answers_others and not asked.done():
            await client.get("/version")
            await asyncio.sleep(0.05)
        if answers_others:
            assert await asked == {"path": NODES}
        else:
            with pytest.raises(Unreachable, match="no answer in time"):
                await asked
    made = sum(seen.path == NODES for seen in server.seen)
    # On a busy machine the patience may be at its end before a second one is made.
    assert made == 2 if answers_others else 1 <= made <= 2


async def test_a_plain_http_server_behind_an_https_address_is_unreachable(server: Server, tmp_path: Path) -> None:
    server.answers = [ok({})]
    file = kubeconfig(tmp_path, server.address.replace("http:", "https:"))
    async with Client(load_kubeconfig(file), patience=0.2) as client:
        with pytest.raises(Unreachable, match=r"not reachable: no TLS connection: .*WRONG_VERSION_NUMBER"):
            await client.get(NODES)


async def test_no_more_requests_are_under_way_than_connections(server: Server) -> None:
    under_way, most = 0, 0

    async def count(_: web.Request) -> web.StreamResponse:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.005)
        under_way -= 1
        return web.json_response({})

    server.answers = [count]
    async with server.client(connections=3) as client:
        await asyncio.gather(*(client.get(NODES) for _ in range(20)))
    assert most == 3


# --- lists ---------------------------------------------------------------------------------------------------------


async def test_a_list_is_read_page_by_page(server: Server) -> None:
    server.answers = [
        ok({"metadata": {"continue": "t1"}, "items": [{"n": 1}, {"n": 2}]}),
        status(500, "InternalError", "etcd leader changed"),
        ok({"metadata": {"continue": "t2"}, "items": None}),
        ok({"metadata": {}, "items": [{"n": 3}]}),
    ]
    async with server.client() as client:
        pages = [page async for page in client.pages(NODES, {"labelSelector": "a=b"}, limit=2)]
    assert pages == [[{"n": 1}, {"n": 2}], [], [{"n": 3}]]
    assert [seen.query.get("continue") for seen in server.seen] == [None, "t1", "t1", "t2"]
    assert all(seen.query["limit"] == "2" and seen.query["labelSelector"] == "a=b" for seen in server.seen)


# --- many at once ----------------------------------------------------------------------------------------------------


async def test_every_item_is_acted_upon_once() -> None:
    done: list[int] = []
    counts: list[int] = []

    async def act(item: int) -> None:
        await asyncio.sleep(0)
        done.append(item)

    outcome = await for_each(iter(range(50)), act, workers=7, progress=counts.append)
    assert sorted(done) == sorted(outcome.done) == list(range(50))
    assert counts == list(range(1, 51))
    assert outcome.complete


async def test_no_more_tasks_are_made_than_there_are_items() -> None:
    before, seen = len(asyncio.all_tasks()), []

    async def act(_: int) -> None:
        seen.append(len(asyncio.all_tasks()) - before)

    await for_each(range(3), act, workers=50)
    assert seen[0] == 3


async def test_what_has_to_succeed_as_a_whole_raises_its_first_error() -> None:
    async def act(item: int) -> None:
        if item % 2:
            raise ValueError(item)

    await for_all([0, 2], act, workers=2)
    with pytest.raises(ValueError, match=r"^1$"):
        await for_all(range(10), act, workers=1)


async def test_a_stop_lets_what_is_under_way_finish_and_begins_nothing_new() -> None:
    stop = asyncio.Event()
    begun: list[int] = []

    async def act(item: int) -> None:
        begun.append(item)
        if item == 5:
            stop.set()
        await asyncio.sleep(0)

    outcome = await for_each(range(100), act, workers=3, stop=stop)
    assert sorted(outcome.done) == sorted(begun)
    assert 6 <= len(begun) <= 8
    assert outcome.skipped == 100 - len(begun)
    assert not outcome.complete


async def test_a_stop_does_not_wait_for_what_hangs() -> None:
    stop = asyncio.Event()

    async def act(item: int) -> None:
        if item == 3:
            stop.set()
            await asyncio.Event().wait()

    started = time.monotonic()
    outcome = await asyncio.wait_for(for_each(range(100), act, workers=2, stop=stop), 10)
    assert time.monotonic() - started < 5
    assert [(item, str(error)) for item, error in outcome.failed] == [(3, "given up after the stop")]
    assert len(outcome.done) + 1 + outcome.skipped == 100


async def test_a_few_failures_do_not_keep_the_others_from_their_work() -> None:
    async def act(item: int) -> None:
        if item % 10 == 0:
            raise ValueError(item)

    outcome = await for_each(range(50), act, workers=4, most_failures=10)
    assert sorted(item for item, _ in outcome.failed) == [0, 10, 20, 30, 40]
    assert len(outcome.done) == 45
    assert outcome.skipped == 0


async def test_many_failures_end_it() -> None:
    tried: list[int] = []

    async def act(item: int) -> None:
        tried.append(item)
        await asyncio.sleep(0)
        raise ValueError(item)

    outcome = await for_each(range(1000), act, workers=4, most_failures=10)
    assert 10 <= len(outcome.failed) == len(tried) < 14
    assert outcome.skipped == 1000 - len(tried)


async def test_cancelling_cancels_what_is_under_way() -> None:
    begun = asyncio.Event()
    ended: list[int] = []

    async def act(item: int) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(item)

    task = asyncio.create_task(for_each(range(10), act, workers=3))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [0, 1, 2]
