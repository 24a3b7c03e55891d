"""A proxy in front of an API server that injects real faults: it cuts connections, delays, refuses and fails requests.

It terminates TLS with the cluster's own certificate, so that it can tell requests apart, and forwards the others.
"""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Coroutine
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import aiohttp
import yaml
from aiohttp import web

T = TypeVar("T")
Kind = Literal["cut", "lost answer", "half an answer", "429", "500", "slow"]
_NOT_FORWARDED = {"host", "connection", "transfer-encoding", "content-length", "content-encoding", "accept-encoding"}


@dataclass
class Harm:
    """What is done to requests."""

    kinds: tuple[Kind, ...]
    """One of these is chosen: ``cut`` before the request reaches the server, ``lost answer`` and ``half an answer``
    after it took effect; ``429`` with Retry-After: 1 and ``500`` instead of it; ``slow`` delays it."""
    share: float = 1.0
    """Of the requests that are harmed, 0 to 1."""
    delay: float = 2.0
    """Seconds of the longest delay."""
    numbers: random.Random = field(default_factory=lambda: random.Random(0))
    """The source of randomness."""


class FaultProxy:
    """A proxy for one cluster of the kwok runtime, as a context manager; it runs in a thread of its own.

    Args:
        directory: the cluster's directory: its kubeconfig says where the server is, its ``pki`` has the certificates.
    """

    def __init__(self, directory: Path) -> None:
        self.done: Counter[str] = Counter()
        self._directory = directory
        self._pki = directory / "pki"
        self._server = _kubeconfig(directory / "kubeconfig.yaml")["clusters"][0]["cluster"]["server"]
        self._harm: Harm | None = None
        self._port = _free_port()
        self._listening = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        self._do(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def kubeconfig(self, file: Path) -> Path:
        """Write a kubeconfig that connects through the proxy, with absolute certificate paths."""
        document = _kubeconfig(self._directory / "kubeconfig.yaml")
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        cluster["server"] = f"https://127.0.0.1:{self._port}"
        for entry, keys in ((cluster, ("certificate-authority",)), (user, ("client-certificate", "client-key"))):
            for key in keys:
                entry[key] = str(self._directory / entry[key])
        file.write_text(yaml.safe_dump(document))
        return file

    # --- harm ------------------------------------------------------------------------------------------------------

    def harm(self, harm: Harm | None) -> None:
        """Inject this into requests from now on; None ends it."""
        self._harm = harm

    def refuse(self) -> None:
        """Cut every connection and accept no new ones."""
        self._do(self._refuse())

    def accept(self) -> None:
        """Accept connections again."""
        self._do(self._listen())

    # --- in its own thread -------------------------------------------------------------------------------------------

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _start(self) -> None:
        trust = ssl.create_default_context(cafile=self._pki / "ca.crt")
        trust.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
        self._onward = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust, limit=0), auto_decompress=False, read_bufsize=2**20
        )
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
        application = web.Application(client_max_size=2**26)
        application.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen()

    async def _listen(self) -> None:
        if self._listening:
            return
        self._listening = True
        self._site = web.TCPSite(
            self._runner, "127.0.0.1", self._port, ssl_context=self._tls, reuse_address=True, backlog=256
        )
        await self._site.start()

    async def _refuse(self) -> None:
        if not self._listening:
            return
        self._listening = False
        await self._site.stop()
        assert self._runner.server is not None
        for connection in self._runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()
                self.done["cut"] += 1

    async def _stop(self) -> None:
        await self._refuse()
        await self._runner.cleanup()
        await self._onward.close()

    def _choose(self) -> Kind | None:
        harm = self._harm
        if harm is None:
            return None
        if harm.numbers.random() >= harm.share:
            return None
        kind = harm.numbers.choice(harm.kinds)
        self.done[kind] += 1
        return kind

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        kind, body = self._choose(), await request.read()
        if kind == "cut":
            return _cut(request)
        if kind == "429":
            return _status(429, "TooManyRequests", "too many requests, please try again later", {"Retry-After": "1"})
        if kind == "500":
            return _status(500, "InternalError", "an error on the server has prevented the request from succeeding", {})
        if kind == "slow":
            assert self._harm is not None
            await asyncio.sleep(self._harm.numbers.uniform(0.1, self._harm.delay))
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _NOT_FORWARDED}
        headers["Accept-Encoding"] = "identity"
        try:
            async with self._onward.request(
                request.method, self._server + request.raw_path, data=body or None, headers=headers
            ) as answer:
                kept = {key: value for key, value in answer.headers.items() if key.lower() not in _NOT_FORWARDED}
                if "watch" in request.query:
                    return await _streamed(request, answer, kept)
                raw = await answer.read()
        except (aiohttp.ClientError, OSError):
            return _cut(request)
        if kind == "lost answer":
            return _cut(request)
        if kind == "half an answer":
            half = web.StreamResponse(status=answer.status, headers={**kept, "Content-Length": str(len(raw))})
            await half.prepare(request)
            await half.write(raw[: len(raw) // 2])
            return _cut(request, half)
        return web.Response(status=answer.status, body=raw, headers=kept)


def _free_port() -> int:
    """A port below Linux's ephemeral range, so that no outgoing connection takes it while the proxy does not listen."""
    for port in random.sample(range(15000, 20000), 100):
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port between 15000 and 19999")


def _cut(request: web.Request, begun: web.StreamResponse | None = None) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return begun or web.Response()


async def _streamed(
    request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str]
) -> web.StreamResponse:
    """A watch, whose events are passed on as they come."""
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    return response


def _status(code: int, reason: str, message: str, headers: dict[str, str]) -> web.Response:
    """An answer as the API server itself words it (apimachinery, metav1.Status)."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    body = {**status, "reason": reason, "message": message, "code": code}
    return web.json_response(body, status=code, headers=headers)


def _kubeconfig(file: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(file.read_text())
    return document
