"""The page's server: on this machine only, and only for who has the token of its address."""

from __future__ import annotations

import asyncio
import errno
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from aiohttp import web

from kumulus.cluster.live.fleet import Live
from kumulus.console import feed

HOST = "127.0.0.1"
INTERVAL = 0.25
"""Seconds between two messages about changed nodes."""

_MODULES = ("app", "colours", "fleet", "layout", "map", "node", "table", "tip")
_ASSETS = {
    "": ("index.html", "text/html"),
    "style.css": ("style.css", "text/css"),
    **{f"{name}.js": (f"{name}.js", "text/javascript") for name in _MODULES},
}
_HEADERS = {
    # Everything the page loads comes from here, and nothing may frame it.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_REFUSED = "403: this page is opened with the whole address that `kumulus ui` printed; it holds a token.\n"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PortInUse(Exception):
    """Somebody else listens on the port; the message names the remedy."""


class Page:
    """The page of one fleet.

    Args:
        stack: the stack's name.
        live: its fleet.
    """

    def __init__(self, stack: str, live: Live) -> None:
        self.token = secrets.token_urlsafe(24)
        self._stack = stack
        self._live = live
        self._listeners: set[_Listener] = set()
        self._hosts: frozenset[str] = frozenset()

    @asynccontextmanager
    async def served(self, port: int = 0) -> AsyncIterator[str]:
        """Serve it; gives its address.

        Args:
            port: where to listen; 0 for any port that is free.

        Raises:
            PortInUse: the port is taken.
        """
        application = web.Application(middlewares=[self._guard])
        application.router.add_get("/{token}/events", self._events)
        application.router.add_get("/{token}/nodes/{name}", self._node)
        application.router.add_get("/{token}/{asset:.*}", self._asset)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        spread = asyncio.create_task(self._spread())
        try:
            try:
                await web.TCPSite(runner, HOST, port).start()
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise PortInUse(
                    f"port {port} is in use\n  Choose another one, or leave --port out to have a free one"
                ) from None
            actual = runner.addresses[0][1]
            self._hosts = frozenset({f"{HOST}:{actual}", f"localhost:{actual}"})
            yield f"http://{HOST}:{actual}/{self.token}/"
        finally:
            spread.cancel()
            for listener in self._listeners:
                listener.ended = True
                listener.woken.set()
            await runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        # Another site whose name was made to lead here would send that name as Host.
        token = request.path.split("/")[1].encode()
        if request.host not in self._hosts or not hmac.compare_digest(token, self.token.encode()):
            return web.Response(status=403, text=_REFUSED, headers=_HEADERS)
        try:
            return await handler(request)
        except web.HTTPException as refused:
            refused.headers.update(_HEADERS)
            raise

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        found = _ASSETS.get(request.match_info["asset"])
        if found is None:
            raise web.HTTPNotFound(text="404: there is no such file\n")
        name, kind = found
        text = resources.files("kumulus.console").joinpath("assets", name).read_text(encoding="utf-8")
        return web.Response(text=text, content_type=kind, charset="utf-8", headers=_HEADERS)

    async def _node(self, request: web.Request) -> web.StreamResponse:
        found = feed.detail(self._live.fleet, request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound(text="404: there is no such node\n")
        return web.json_response(found, headers=_HEADERS)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: ``fleet`` once, then ``changes`` and ``state``."""
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        listener = _Listener()
        self._listeners.add(listener)
        try:
            await _send(response, "fleet", feed.whole(self._live, self._stack))
            while not listener.ended:
                await listener.woken.wait()
                listener.woken.clear()
                # What changes while a slow reader is written to is told all at once the next time.
                names, listener.names = listener.names, set()
                if names:
                    await _send(response, "changes", feed.changes(self._live, names))
                if listener.state:
                    listener.state = False
                    await _send(response, "state", feed.state(self._live))
        except ConnectionError:
            pass
        finally:
            self._listeners.discard(listener)
        return response

    async def _spread(self) -> None:
        """Tell every page that listens what changed, a few times a second."""
        fleet, rounds = self._live.fleet, 0
        while True:
            await asyncio.sleep(INTERVAL)
            rounds += 1
            touched, fleet.touched = fleet.touched, set()
            for listener in self._listeners:
                listener.names |= touched
                listener.state = listener.state or rounds % round(1 / INTERVAL) == 0
                if listener.names or listener.state:
                    listener.woken.set()


class _Listener:
    """An open page: what it has not been told yet."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.state = False
        self.woken = asyncio.Event()
        self.ended = False


async def _send(response: web.StreamResponse, event: str, data: Any) -> None:
    text = json.dumps(data, separators=(",", ":"))
    await response.write(f"event: {event}\ndata: {text}\n\n".encode())
