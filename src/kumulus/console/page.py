"""The page's server: on this machine only, and only for who has the token of its address."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from aiohttp import web

from kumulus.cluster.live.fleet import Live
from kumulus.console import feed
from kumulus.console.memory import Cursor, Memory
from kumulus.console.serving import HEADERS, Guarded, Handler

INTERVAL = 0.25
"""Seconds between two messages about changed nodes."""

_MODULES = (
    *(
        "app",
        "colours",
        "fleet",
        "gantt",
        "history",
        "jobs",
        "lately",
        "layout",
        "map",
        "node",
        "past",
        "table",
        "time",
        "tip",
    ),
)
_ASSETS = {
    "": ("index.html", "text/html"),
    "style.css": ("style.css", "text/css"),
    **{f"{name}.js": (f"{name}.js", "text/javascript") for name in _MODULES},
}


class Page:
    """The page of one fleet.

    Args:
        stack: the stack's name.
        live: its fleet.
    """

    def __init__(self, stack: str, live: Live) -> None:
        routes: dict[str, Handler] = {
            "GET events": self._events,
            "GET nodes/{name}": self._node,
            "GET {asset:.*}": self._asset,
        }
        self._server = Guarded("kumulus ui", routes)
        self._stack = stack
        self._live = live
        self._memory = Memory(stack, live)
        self._listeners: set[_Listener] = set()

    def follow(self) -> None:
        """Have the fleet's cluster followed for what jobs and queues say of themselves, beside their pods."""
        self._live.follow_also(self._memory.collections(), self._memory.cleared)

    @property
    def token(self) -> str:
        """What its address holds."""
        return self._server.token

    @asynccontextmanager
    async def served(self, port: int = 0) -> AsyncIterator[str]:
        """Serve it; gives its address.

        Args:
            port: where to listen; 0 for any port that is free.

        Raises:
            PortInUse: the port is taken.
        """
        spread = asyncio.create_task(self._spread())
        try:
            async with self._server.served(port) as address:
                try:
                    yield address
                finally:
                    for listener in self._listeners:
                        listener.ended = True
                        listener.woken.set()
        finally:
            spread.cancel()

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        found = _ASSETS.get(request.match_info["asset"])
        if found is None:
            raise web.HTTPNotFound(text="404: there is no such file\n")
        name, kind = found
        text = resources.files("kumulus.console").joinpath("assets", name).read_text(encoding="utf-8")
        return web.Response(text=text, content_type=kind, charset="utf-8", headers=HEADERS)

    async def _node(self, request: web.Request) -> web.StreamResponse:
        found = feed.detail(self._live.fleet, request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound(text="404: there is no such node\n")
        return web.json_response(found, headers=HEADERS)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: ``fleet`` once, then ``changes``, ``past`` and ``state``."""
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
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
                news, listener.cursor = self._memory.news(listener.cursor)
                if news:
                    await _send(response, "past", news)
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
            self._memory.tick()
            touched, fleet.touched = fleet.touched, set()
            for listener in self._listeners:
                listener.names |= touched
                listener.state = listener.state or rounds % round(1 / INTERVAL) == 0
                # Even if no node was touched: jobs and queues have events too.
                listener.woken.set()


class _Listener:
    """An open page: what it has not been told yet."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.state = False
        self.cursor = Cursor()
        self.woken = asyncio.Event()
        self.ended = False


async def _send(response: web.StreamResponse, event: str, data: Any) -> None:
    text = json.dumps(data, separators=(",", ":"))
    await response.write(f"event: {event}\ndata: {text}\n\n".encode())
