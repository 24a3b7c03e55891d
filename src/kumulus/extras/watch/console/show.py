"""Serve a page of recorded runs, the same file that `kumulus experiment show --html` writes."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from kumulus.extras.watch.console import bundle
from kumulus.extras.watch.console.serving import HEADERS, Guarded
from kumulus.extras.watch.history.document import History


def shown(histories: Sequence[History], reasons: Sequence[bundle.Reasons] = ()) -> Guarded:
    """A server of the page of one run, or of two; see :func:`kumulus.extras.watch.console.bundle.page`."""
    text = bundle.page(histories, reasons)
    # The page contains its own policy, with the hashes of its parts; only a header can forbid framing.
    headers = {**HEADERS, "Content-Security-Policy": "frame-ancestors 'none'"}

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=headers)

    return Guarded("kumulus experiment show", {"GET ": answer})
