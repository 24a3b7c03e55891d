"""A small HTTP server in place of an API server: it gives the answers that a test sets and records the requests."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from kumulus.kube import Client, Connection

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def ok(body: Any) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(body)

    return answer


def status(code: int, reason: str, message: str, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        body = {"kind": "Status", "code": code, "reason": reason, "message": message}
        return web.json_response(body, status=code, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return answer


def text(code: int, body: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text=body)

    return answer


async def cut(request: web.Request) -> web.StreamResponse:
    """Begin an answer of a thousand bytes and drop the connection after a few of them."""
    response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"kind":')
    assert request.transport is not None
    request.transport.abort()
    return response


async def silent(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


def stream(*events: Any, end: bool = True) -> Answer:
    """Send watch events, one a line, then end the answer, or break the connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for event in events:
            await response.write(json.dumps(event).encode() + b"\n")
        if not end:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


@dataclass
class Seen:
    """One request as it arrived."""

    verb: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes
    at: float


@dataclass
class Server:
    """Answers each request with the next of its answers, repeating the last one; records the requests."""

    address: str = ""
    answers: list[Answer] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append(
            Seen(request.method, request.path, dict(request.query), request.headers, body, time.monotonic())
        )
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)

    def client(self, **options: Any) -> Client:
        options.setdefault("patience", 5.0)
        return Client(Connection(self.address, "test", {"Authorization": "Bearer t"}), **options)


@dataclass
class TokenServer(Server):
    """Takes the tokens of a set, or any."""

    valid: set[str] | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        taken = self.valid is None or token in self.valid
        self.answers = [ok({"items": []}) if taken else status(401, "Unauthorized", "no")]
        return await super().handle(request)

    @property
    def tokens(self) -> list[str]:
        """The tokens of all requests."""
        return [each.headers.get("Authorization", "").removeprefix("Bearer ") for each in self.seen]

    def last(self, prefix: str) -> list[tuple[str, str]]:
        """Those headers of the latest request, by their names."""
        return sorted(pair for pair in self.seen[-1].headers.items() if pair[0].startswith(prefix))


def kubeconfig(folder: Path, server: str, user: Mapping[str, Any] | None = None, **cluster: Any) -> Path:
    """A kubeconfig with one context."""
    file = folder / "kubeconfig.yaml"
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
    }
    file.write_text(json.dumps(document))
    return file


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    """A server that listens."""
    made = Server()
    async with listening(made.handle) as made.address:
        yield made


@asynccontextmanager
async def taking_tokens(tls: ssl.SSLContext | None = None) -> AsyncIterator[TokenServer]:
    """A server that listens, with a certificate or without one."""
    made = TokenServer()
    async with listening(made.handle, tls) as made.address:
        yield made


@asynccontextmanager
async def listening(handle: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The address at which every request is answered by a handler."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        host, port = runner.addresses[0][:2]
        yield f"http{'s' if tls else ''}://{host}:{port}"
    finally:
        await runner.cleanup()
