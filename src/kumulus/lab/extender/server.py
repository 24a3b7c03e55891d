"""The extender's HTTP server: on the loopback, under an address that nobody else knows."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from kumulus.host.ports import Claims, NoFreePort
from kumulus.kube import ApiError, Unreachable
from kumulus.lab.errors import LabError
from kumulus.lab.extender.extender import Extender

FILTER: Final = "filter"
# The names of 100,000 nodes, and a pod.
_LONGEST = 32 << 20


@asynccontextmanager
async def served(extender: Extender) -> AsyncIterator[str]:
    """Serve an extender until the context ends.

    Another user of the machine can reach the port, and finds nothing there: the address has 256 random bits in it,
    which stand in the scheduler's configuration alone, a file that is its owner's.

    Yields:
        the address below which it is served, for `urlPrefix`.

    Raises:
        LabError: there is no free port.
    """
    secret = secrets.token_urlsafe(32)

    async def answer(request: web.Request) -> web.Response:
        if not secrets.compare_digest(request.match_info["secret"].encode(), secret.encode()):
            raise web.HTTPNotFound
        try:
            found = await extender.filter(await request.json())
        except (ValueError, KeyError, TypeError):
            raise web.HTTPBadRequest(text="these are no ExtenderArgs") from None
        except (ApiError, Unreachable) as error:
            found = {"Error": f"the cluster's nodes cannot be listed: {error}"}
        return web.Response(text=json.dumps(found, separators=(",", ":")), content_type="application/json")

    app = web.Application(client_max_size=_LONGEST)
    app.router.add_post(f"/{{secret}}/{FILTER}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        with Claims() as claims:
            port = claims.take()
            await web.TCPSite(runner, "127.0.0.1", port).start()
            yield f"http://127.0.0.1:{port}/{secret}"
    except NoFreePort as error:
        raise LabError(str(error)) from None
    finally:
        await runner.cleanup()
        extender.close()
