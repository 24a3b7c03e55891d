"""Serve something on this machine only, and only to holders of the token in its address."""

import errno
import hmac
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

HOST = "127.0.0.1"
HEADERS = {
    # Everything the page loads comes from here, and nothing may frame it.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_REFUSED = "403: this page is opened with the whole address that `{}` printed; it holds a token.\n"
_LONGEST = 64 * 2**20
"""Bytes of a request: it may name every node of a large fleet."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PortInUse(Exception):
    """Another process listens on the port; the message says what to do."""


class Guarded:
    """A server for holders of its token.

    Args:
        command: the command that prints its address, for the error if the token is missing.
        routes: handlers by method and path, as ``GET events``; the path comes after the token.

    Attributes:
        origins: the origins from which a browser may ask for changes: its own.
    """

    def __init__(self, command: str, routes: Mapping[str, Handler]) -> None:
        self.token = secrets.token_urlsafe(24)
        self.origins: frozenset[str] = frozenset()
        self._refused = _REFUSED.format(command)
        self._routes = dict(routes)
        self._hosts: frozenset[str] = frozenset()

    @asynccontextmanager
    async def served(self, port: int = 0) -> AsyncIterator[str]:
        """Serve; yields the address."""
        application = web.Application(middlewares=[self._guard], client_max_size=_LONGEST)
        for route, handler in self._routes.items():
            method, _, path = route.partition(" ")
            application.router.add_route(method, f"/{{token}}/{path}", handler)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
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
            self.origins = frozenset(f"http://{host}" for host in self._hosts)
            yield f"http://{HOST}:{actual}/{self.token}/"
        finally:
            await runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        # Against DNS rebinding: another site whose name resolves to this address would send that name as Host.
        token = request.path.partition("/")[2].partition("/")[0].encode()
        if request.host not in self._hosts or not hmac.compare_digest(token, self.token.encode()):
            return web.Response(status=403, text=self._refused, headers=HEADERS)
        try:
            return await handler(request)
        except web.HTTPException as refused:
            refused.headers.update(HEADERS)
            raise
