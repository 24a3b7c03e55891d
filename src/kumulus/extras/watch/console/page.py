"""The page's server: on this machine only, and only for holders of the token in its address."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from aiohttp import web

from kumulus.extras.watch.console import bundle
from kumulus.extras.watch.console.changes import ChangeRefused, ClusterChanges, failed
from kumulus.extras.watch.console.memory import Cursor, Memory
from kumulus.extras.watch.console.serving import HEADERS, Guarded, Handler
from kumulus.extras.watch.live.fleet import Live
from kumulus.extras.watch.live.model import Fleet
from kumulus.extras.watch.live.summary import summary
from kumulus.kube import ApiError, Unreachable

INTERVAL = 0.25
"""Seconds between two messages about changed nodes."""

_ASSETS = {
    "": ("index.html", "text/html"),
    "style.css": ("style.css", "text/css"),
    **{f"{name}.js": (f"{name}.js", "text/javascript") for name in bundle.ordered("app")},
}
COLUMNS = (
    "name", "zone", "group", "product", "block", "rack", "state", "gpus", "gpusTaken", "cpu", "cpuTaken", "memory",
    "memoryTaken", "pods", "podsTaken", "why",
)  # fmt: skip
"""The fields of a node's row, in this order; CPU in thousandths of a core, memory in bytes."""


class Page:
    """The page of one fleet; without ``changes`` it may change nothing.

    The ``remedy`` says what to do about a cluster that does not answer; empty if unknown.
    """

    def __init__(self, stack: str, live: Live, changes: ClusterChanges | None = None, remedy: str = "") -> None:
        routes: dict[str, Handler] = {
            "GET events": self._events,
            "GET nodes/{name}": self._node,
            "POST changes/{step:plan|do}": self._change,
            "GET {asset:.*}": self._asset,
        }
        self._server = Guarded("kumulus ui", routes)
        self._changes = changes
        self._stack, self._remedy = stack, remedy
        self._live = live
        self._memory = Memory(stack, live)
        self._listeners: set[_Listener] = set()

    def follow(self) -> None:
        """Also follow the cluster's jobs and queues, not only their pods."""
        self._live.follow_also(self._memory.collections(), self._memory.cleared)

    @property
    def token(self) -> str:
        """The token in the page's address."""
        return self._server.token

    @asynccontextmanager
    async def served(self, port: int = 0) -> AsyncIterator[str]:
        """Serve the page; yields its address.

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
        text = resources.files("kumulus.extras.watch.console").joinpath("assets", name).read_text(encoding="utf-8")
        return web.Response(text=text, content_type=kind, charset="utf-8", headers=HEADERS)

    async def _node(self, request: web.Request) -> web.StreamResponse:
        found = detail(self._live.fleet, request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound(text="404: there is no such node\n")
        return web.json_response(found, headers=HEADERS)

    async def _change(self, request: web.Request) -> web.StreamResponse:
        """Plan a change, or do what was planned."""
        # Browsers name each request's origin, and let no page of another origin send JSON without permission.
        if request.headers.get("Origin") not in self._server.origins or request.content_type != "application/json":
            raise web.HTTPForbidden(text="403: only this page itself may ask for changes\n")
        if self._changes is None:
            raise web.HTTPForbidden(text="403: this page changes nothing; start it with --allow-changes\n")
        try:
            asked = await request.json()
            if not isinstance(asked, dict):
                raise ChangeRefused("that is no change")
            step = (
                self._changes.plan(asked)
                if request.match_info["step"] == "plan"
                else self._changes.do(asked.get("ticket"))
            )
            return web.json_response(await step, headers=HEADERS)
        except ValueError:
            return web.json_response({"refused": "that is no change"}, status=400, headers=HEADERS)
        except (ChangeRefused, ApiError, Unreachable) as error:
            return web.json_response({"refused": failed(error)}, status=409, headers=HEADERS)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: ``fleet`` once, then ``changes``, ``past`` and ``state``."""
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        listener = _Listener()
        self._listeners.add(listener)
        try:
            kinds = self._changes.kinds() if self._changes is not None else None
            await _send(response, "fleet", {**whole(self._live, self._stack), "remedy": self._remedy, "changes": kinds})
            while not listener.ended:
                await listener.woken.wait()
                listener.woken.clear()
                # Changes that happen while we write to a slow reader are sent together the next time.
                names, listener.names = listener.names, set()
                if names:
                    await _send(response, "changes", changes(self._live, names))
                news, listener.cursor = self._memory.news(listener.cursor)
                if news:
                    await _send(response, "past", news)
                if listener.state:
                    listener.state = False
                    await _send(response, "state", state(self._live))
        except ConnectionError:
            pass
        finally:
            self._listeners.discard(listener)
        return response

    async def _spread(self) -> None:
        """Tell every open page what changed, a few times a second."""
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
    """An open page: what it has not been sent yet."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.state = False
        self.cursor = Cursor()
        self.woken = asyncio.Event()
        self.ended = False


async def _send(response: web.StreamResponse, event: str, data: Any) -> None:
    text = json.dumps(data, separators=(",", ":"))
    await response.write(f"event: {event}\ndata: {text}\n\n".encode())


def row(fleet: Fleet, name: str) -> list[Any]:
    """A node's row, as :data:`COLUMNS` says."""
    node, taken = fleet.nodes[name], fleet.taken(name)
    has = node.allocatable
    return [
        *(node.name, node.zone, node.group, node.product, node.block, node.rack, node.state),
        *(has.gpus, taken.gpus, has.cpu, taken.cpu, has.memory, taken.memory, has.pods, taken.pods),
        ", ".join((*node.faults, *node.conditions)),
    ]


def whole(live: Live, stack: str) -> dict[str, Any]:
    """Everything that a page needs at its start."""
    return {
        "stack": stack,
        "columns": COLUMNS,
        "nodes": [row(live.fleet, name) for name in live.fleet.nodes],
        **state(live),
    }


def changes(live: Live, names: Iterable[str]) -> dict[str, Any]:
    """What changed about some nodes."""
    nodes = live.fleet.nodes
    found = list(names)
    return {
        "changed": [row(live.fleet, name) for name in found if name in nodes],
        "gone": [name for name in found if name not in nodes],
    }


def state(live: Live) -> dict[str, Any]:
    """The fleet's sums, and whether the connection to it is lost."""
    now = summary(live)
    return {"summary": now.to_plain(), "lost": {"why": now.lost, "seconds": round(now.lost_for)} if now.lost else None}


def detail(fleet: Fleet, name: str) -> dict[str, Any] | None:
    """A node with its pods; None if there is no node of that name."""
    node = fleet.nodes.get(name)
    if node is None:
        return None
    return {
        "row": row(fleet, name),
        "pool": node.pool,
        "ready": node.ready,
        "cordoned": node.cordoned,
        "conditions": node.conditions,
        "taints": node.taints,
        "faults": node.faults,
        "gpusLost": node.capacity.gpus - node.allocatable.gpus,
        "pods": [
            {
                "namespace": pod.namespace,
                "name": pod.name,
                "owner": pod.owner,
                "phase": "Terminating" if pod.ending else pod.phase,
                "gpus": pod.requests.gpus,
                "cpu": pod.requests.cpu,
                "memory": pod.requests.memory,
            }
            for pod in fleet.on(name)
        ],
    }
