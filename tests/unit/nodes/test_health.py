"""How a control plane is judged by what its components answer."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from kumulus.extras.watch.live.health import HealthCheck, look
from kumulus.kube import Client, Connection
from kumulus.nodes.pools import reading
from kumulus.nodes.pools.reading import ReadLimit
from tests.support.apiserver import Server, serving

WELL = "[+]ping ok\n[+]etcd ok\n[+]poststarthook/start-apiextensions ok\nreadyz check passed\n"
ILL = "[+]ping ok\n[-]etcd failed: reason withheld\n[-]shutdown failed: reason withheld\nreadyz check failed\n"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as found:
        yield found


def answers(server: Server, ready: str, leases: dict[str, float]) -> None:
    """``ready`` at /readyz; leases by holder, renewed so many seconds ago."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/readyz":
            return web.Response(text=ready, status=500 if "[-]" in ready else 200)
        ago = leases.get(request.path.rpartition("/")[2])
        if ago is None:
            return web.json_response({"reason": "NotFound", "message": "no"}, status=404)
        renewed = (datetime.now(UTC) - timedelta(seconds=ago)).isoformat().replace("+00:00", "Z")
        body: dict[str, Any] = {"spec": {"renewTime": renewed, "leaseDurationSeconds": 15}}
        return web.json_response(body)

    server.answers = [answer]


async def test_a_control_plane_that_is_well(server: Server) -> None:
    answers(server, WELL, {"kube-scheduler": 1, "kube-controller-manager": 3})
    async with server.client() as client:
        assert set((await look(client, {})).values()) == {HealthCheck("ok")}
        assert list(await look(client, {})) == ["kube-apiserver", "etcd", "kube-scheduler", "kube-controller-manager"]


async def test_the_check_that_fails_is_named_and_etcds_is_etcds(server: Server) -> None:
    answers(server, ILL, {})
    async with server.client() as client:
        found = await look(client, {})
    assert found["etcd"] == HealthCheck("failing", "failing: etcd")
    assert found["kube-apiserver"] == HealthCheck("failing", "failing: shutdown")


async def test_a_leader_whose_lease_is_old_is_failing_and_one_without_is_not_judged(server: Server) -> None:
    answers(server, WELL, {"kube-scheduler": 90})
    async with server.client() as client:
        found = await look(client, {})
    # An answer's date has whole seconds.
    assert found["kube-scheduler"] in [HealthCheck("failing", f"its lease is {seconds} s old") for seconds in (89, 90)]
    assert "kube-controller-manager" not in found


async def test_an_endpoint_answers_fails_or_is_silent(server: Server) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/bad":
            return web.Response(text="not ready\nmore", status=500)
        return web.Response(text=WELL if request.path == "/readyz" else "ok")

    server.answers = [answer]
    endpoints = {"a": f"{server.address}/good", "b": f"{server.address}/bad", "c": "http://127.0.0.1:1/healthz"}
    async with server.client() as client:
        found = await look(client, endpoints)
    assert found["a"] == HealthCheck("ok")
    assert found["b"] == HealthCheck("failing", "not ready")
    assert found["c"] == HealthCheck("down", "does not answer")


async def test_an_api_server_that_is_gone_is_down_and_etcd_is_not_known() -> None:
    async with Client(Connection("http://127.0.0.1:1", "none"), patience=0.1) as client:
        found = await look(client, {})
    assert found["kube-apiserver"] == HealthCheck("down", "connection refused")
    assert found["etcd"].status == "down"


async def test_two_have_their_turn_at_once_and_the_others_after_them() -> None:
    order, admitted = ReadLimit(), []

    async def look(number: int, end: asyncio.Event) -> None:
        async with order.admitted():
            admitted.append(number)
            await end.wait()

    ends = [asyncio.Event() for _ in range(4)]
    looks = [asyncio.ensure_future(look(number, end)) for number, end in enumerate(ends)]
    await asyncio.sleep(0.05)
    assert admitted == [0, 1]
    ends[1].set()
    await asyncio.sleep(0.05)
    assert admitted == [0, 1, 2]
    looks[0].cancel()
    await asyncio.sleep(0.05)
    assert admitted == [0, 1, 2, 3]
    for end in ends:
        end.set()
    await asyncio.gather(*looks, return_exceptions=True)


async def test_who_waited_for_long_goes_on_anyhow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LONGEST_WAIT_S", 0.1)
    order, inside, everybody = ReadLimit(), 0, asyncio.Event()

    async def look() -> None:
        nonlocal inside
        async with order.admitted():
            inside += 1
            if inside == 6:
                everybody.set()
            # Nobody leaves before all are in: without an end to the waiting, that is never.
            await everybody.wait()

    async with asyncio.timeout(30):
        await asyncio.gather(*(look() for _ in range(6)))
    assert inside == 6
