"""An extender of kube-scheduler, as an HTTP server: on the loopback interface, under a secret address.

Source of the protocol: k8s.io/kube-scheduler/extender/v1, `ExtenderArgs` and `ExtenderFilterResult`.
"""

from __future__ import annotations

import json
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from aiohttp import web

FILTER: Final = "filter"
READY: Final = "ready"
"""The path below its address that answers once the extender works."""
# Room for the names of 100,000 nodes, and a pod.
_LONGEST = 32 << 20

Answer = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Takes ExtenderArgs and returns an ExtenderFilterResult."""


def new_secret() -> str:
    """256 random bits for an address."""
    return secrets.token_urlsafe(32)


def anybody() -> ssl.SSLContext:
    """For a server on 127.0.0.1, on a port claimed for it, with a self-signed certificate that it has just made."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def address(port: int, secret: str) -> str:
    """The base address of an extender, for `urlPrefix`."""
    return f"http://127.0.0.1:{port}/{secret}"


def entry(url: str, timeout: float, *, ignorable: bool) -> dict[str, Any]:
    """An extender in a KubeSchedulerConfiguration: asked with the names of nodes, not with the nodes.

    Args:
        timeout: seconds that kube-scheduler waits for an answer.
        ignorable: whether kube-scheduler continues without an answer; such extenders are asked after the others.
    """
    return {
        "urlPrefix": url,
        "filterVerb": FILTER,
        "weight": 1,
        "enableHTTPS": False,
        "nodeCacheCapable": True,
        "ignorable": ignorable,
        "httpTimeout": f"{timeout:g}s",
    }


@asynccontextmanager
async def serving(answer: Answer, port: int, secret: str) -> AsyncIterator[None]:
    """Serve an extender until the context ends.

    Other users of the machine can reach the port, but get only 404: the address contains a secret, which is in the
    scheduler's configuration, a file that only its owner can read.

    Args:
        answer: gives the answers; raises ValueError, KeyError or TypeError if its argument is not ExtenderArgs.

    Raises:
        OSError: something else listens on the port.
    """
    # Imported when asked for: runs without an extender start a tenth of a second sooner.
    from aiohttp import web

    async def answered(request: web.Request) -> web.Response:
        if not secrets.compare_digest(request.match_info["secret"].encode(), secret.encode()):
            raise web.HTTPNotFound
        try:
            found = await answer(await request.json())
        except (ValueError, KeyError, TypeError):
            raise web.HTTPBadRequest(text="these are no ExtenderArgs") from None
        return web.Response(text=json.dumps(found, separators=(",", ":")), content_type="application/json")

    async def ready(request: web.Request) -> web.Response:
        known = secrets.compare_digest(request.match_info["secret"].encode(), secret.encode())
        return web.Response(status=200 if known else 404)

    app = web.Application(client_max_size=_LONGEST)
    app.router.add_get(f"/{{secret}}/{READY}", ready)
    app.router.add_post(f"/{{secret}}/{FILTER}", answered)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield
    finally:
        await runner.cleanup()
