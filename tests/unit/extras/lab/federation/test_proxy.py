"""The proxy between a hub and a worker: what it passes on, what a cut does, and what comes after it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from kumulus.extras.lab.federation.proxy import Proxy

LARGE = 8 << 20


@asynccontextmanager
async def echoing() -> AsyncIterator[tuple[Proxy, list[bytes]]]:
    """A server that sends back what it gets, behind a proxy; and what became of its connections."""
    ended: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            ended.append(b"closed")
        except ConnectionError:
            ended.append(b"severed")
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy = Proxy("127.0.0.1", server.sockets[0].getsockname()[1])
    await proxy.start()
    try:
        yield proxy, ended
    finally:
        proxy.cut()
        server.close()


async def connected(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"hello")
    assert await asyncio.wait_for(reader.readexactly(5), 5) == b"hello"
    return reader, writer


async def test_what_is_sent_arrives_whole_in_both_directions_however_much_it_is() -> None:
    async with echoing() as (proxy, _):
        reader, writer = await connected(proxy)
        sent = bytes(range(256)) * (LARGE // 256)
        writer.write(sent)
        assert await asyncio.wait_for(reader.readexactly(LARGE), 20) == sent
        writer.close()
        assert proxy.taken == 1


async def test_a_cut_severs_what_is_open_on_both_sides_and_refuses_what_is_new() -> None:
    async with echoing() as (proxy, ended):
        ends = [await connected(proxy) for _ in range(3)]
        assert proxy.cut() == 3
        for reader, _ in ends:
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(1), 5) == b""
        await asyncio.sleep(0.05)
        assert len(ended) == 3, "the worker's side is open still"
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", proxy.port)
        assert proxy.cut() == 0


async def test_after_a_cut_it_listens_at_the_same_port_again() -> None:
    async with echoing() as (proxy, _):
        port = proxy.port
        await connected(proxy)
        proxy.cut()
        await proxy.start()
        assert proxy.port == port
        await connected(proxy)


async def test_who_comes_to_a_worker_that_does_not_answer_is_sent_away() -> None:
    nobody = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = nobody.sockets[0].getsockname()[1]
    nobody.close()
    await nobody.wait_closed()
    proxy = Proxy("127.0.0.1", port)
    await proxy.start()
    try:
        reader, _ = await asyncio.open_connection("127.0.0.1", proxy.port)
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(1), 5) == b""
    finally:
        proxy.cut()
