"""Connections to a server that speaks HTTP, byte by byte as a test tells it to."""

import asyncio
import contextlib
import gzip
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from kumulus.kube import http
from kumulus.kube.http import Http, reason
from kumulus.kube.http_connection import Broken

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
END = b""
"""In place of an answer: the connection is closed."""
SILENT = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
"""In place of an answer: it is begun, and nothing follows."""


@dataclass
class Scripted:
    """A server whose connections each have their own answers, one for each request."""

    scripts: list[list[bytes]]
    port: int = 0
    """Where it listens."""
    heads: list[list[str]] = field(default_factory=list)
    """What it was asked, as lines, in the order of arrival."""
    connections: int = 0
    """How many were made."""
    clients: list[Http] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = self.scripts[min(self.connections, len(self.scripts) - 1)]
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            for answer in script:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
                self.heads.append(head)
                length = next((line.split(": ")[1] for line in head if line.startswith("Content-Length")), "0")
                await reader.readexactly(int(length))
                writer.write(answer)
                await writer.drain()
                if answer is END or b"Connection: close" in answer or b"Content-Length" not in answer:
                    break
            else:
                await reader.read()
        writer.close()

    def http(self, prefix: str = "", *, compressed: bool = False, **headers: str) -> Http:
        self.clients.append(Http(f"http://127.0.0.1:{self.port}{prefix}", headers, None, compressed=compressed))
        return self.clients[-1]


@asynccontextmanager
async def scripted(*scripts: Sequence[bytes]) -> AsyncIterator[Scripted]:
    made = Scripted([list(script) for script in scripts])
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made
        for each in made.clients:
            each.close()


async def asked(of: Http, verb: str = "GET", body: bytes | None = None) -> bytes:
    return (await of.request(verb, "/api", {}, {}, body, within=5)).body


@pytest.mark.parametrize(
    ("scripts", "verbs", "connections"),
    [
        ([[OK, OK, OK]], ["GET", "POST", "GET"], 1),
        # It says that it closes the connection, or closes it while it is idle.
        ([[OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")], [OK]], ["GET", "POST"], 2),
        ([[OK, END], [OK]], ["GET", "GET"], 2),
        # What nobody asked for is not taken for the next answer.
        ([[OK + OK.replace(b"ok", b"no"), OK], [OK]], ["POST", "POST"], 2),
    ],
)
async def test_requests_that_follow_one_another_share_a_connection_while_it_is_good(
    scripts: list[list[bytes]], verbs: list[str], connections: int
) -> None:
    async with scripted(*scripts) as server:
        client = server.http()
        for verb in verbs:
            assert await asked(client, verb, None if verb == "GET" else b"{}") == b"ok"
    assert server.connections == connections


async def test_a_request_says_what_a_server_needs_to_know() -> None:
    async with scripted([OK]) as server:
        client = server.http("/k8s/c-1/", Authorization="Bearer t\r\nX-Injected: yes")
        await client.request(
            "POST",
            "/api/v1/nodes/ä b",
            {"labelSelector": "a=b,c in (d)", "not": ("a", "b")},
            {"Accept": "a/b"},
            b"",
            within=5,
        )
    assert server.heads == [
        [
            "POST /k8s/c-1/api/v1/nodes/%C3%A4%20b?labelSelector=a%3Db%2Cc%20in%20%28d%29&not=a&not=b HTTP/1.1",
            f"Host: 127.0.0.1:{server.port}",
            "User-Agent: kumulus",
            "Authorization: Bearer tX-Injected: yes",
            "Accept-Encoding: identity",
            "Accept: a/b",
            "Content-Length: 0",
            "",
        ]
    ]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nok",
    ],
    ids=["in chunks", "after 100 Continue", "ended by the connection's end", "HTTP/1.0"],
)
async def test_an_answer_may_have_any_of_the_forms_of_http(answer: bytes) -> None:
    async with scripted([answer]) as server:
        client = server.http()
        assert await asked(client) == b"ok"


async def test_a_compressed_answer_is_read_and_one_that_cannot_be_is_broken() -> None:
    packed = gzip.compress(b"a long list")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    async with scripted([head + packed, head + packed[:-4] + b"\0\0\0\0"]) as server:
        client = server.http(compressed=True)
        assert await asked(client) == b"a long list"
        with pytest.raises(Broken, match="what it compressed cannot be read"):
            await asked(client)
    assert "Accept-Encoding: gzip" in server.heads[0]


async def test_a_post_without_an_answer_is_told_since_it_may_have_been_carried_out() -> None:
    async with scripted([OK, END], [OK]) as server:
        client = server.http()
        await asked(client)
        with pytest.raises(Broken, match="the connection ended before an answer"):
            await asked(client, "POST", b"{}")
    assert server.connections == 1


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-", END], "the connection ended in the middle of an answer"),
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], "what it says is no HTTP"),
    ],
)
async def test_an_answer_that_is_cut_or_no_http_is_broken(answers: list[bytes], said: str) -> None:
    async with scripted(answers) as server:
        client = server.http()
        with pytest.raises(Broken, match=said):
            await asked(client)


async def test_a_connection_that_was_idle_for_long_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_LONGEST_IDLE_S", 0.0)
    async with scripted([OK, OK]) as server:
        client = server.http()
        await asked(client)
        await asked(client)
    assert server.connections == 2


async def test_a_server_that_says_nothing_is_given_up_and_its_connection_with_it() -> None:
    async with scripted([SILENT, OK], [OK]) as server:
        client = server.http()
        with pytest.raises(TimeoutError):
            await client.request("GET", "/api", {}, {}, None, within=0.1)
        assert await asked(client) == b"ok"
    assert server.connections == 2


async def test_closing_ends_what_is_under_way_and_keeps_no_later_connection() -> None:
    async with scripted([SILENT], [OK, OK]) as server:
        client = server.http()
        waiting = asyncio.ensure_future(asked(client))
        await asyncio.sleep(0.1)
        assert server.heads
        client.close()
        with pytest.raises(Broken):
            await waiting
        await asked(client)
        await asked(client)
    assert server.connections == 3


async def test_a_stream_gives_what_arrives_and_lets_a_fast_server_wait() -> None:
    sent, most = 0, 64 * 2**20

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % most)
        with contextlib.suppress(ConnectionError):
            while sent < most:
                writer.write(bytes(2**16))
                await writer.drain()
                sent += 2**16
        writer.close()

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with server:
        client = Http(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", {}, None, compressed=False)
        async with client.stream("/api", {}, {}, within=5, silence=5) as (answer, chunks):
            assert answer.status == 200
            await asyncio.sleep(0.5)
            assert sent < most / 2
            assert sum([len(chunk) async for chunk in chunks]) == most
        client.close()


async def test_a_stream_that_breaks_or_falls_silent_says_so() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"
    async with scripted([head, END], [head, OK]) as server:
        client = server.http()
        async with client.stream("/api", {}, {}, within=5, silence=5) as (_, chunks):
            assert await anext(chunks) == b"ok"
            server.heads.clear()
            client.close()
            with pytest.raises(Broken, match="the connection ended in the middle of an answer"):
                await anext(chunks)
        async with client.stream("/api", {}, {}, within=5, silence=0.1) as (_, chunks):
            assert await anext(chunks) == b"ok"
            with pytest.raises(TimeoutError):
                await anext(chunks)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "no answer in time"),
        (ConnectionRefusedError(111, "Connect call failed"), "connection refused"),
        (ConnectionResetError(), "connection reset by peer"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), "no TLS connection: [SSL: WRONG_VERSION_NUMBER]"),
        (OSError("Multiple exceptions: one, two"), "Multiple exceptions: one, two"),
    ],
)
def test_why_no_answer_came_is_said_in_words(error: OSError, words: str) -> None:
    assert reason(error) == words


async def test_a_host_that_does_not_exist_is_told_in_words() -> None:
    with pytest.raises(OSError) as raised:  # noqa: PT011  # which words it has is what is tested
        await asked(Http("http://nowhere.invalid", {}, None, compressed=False))
    assert reason(raised.value) in ("name or service not known", "temporary failure in name resolution")
