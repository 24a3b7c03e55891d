"""A policy's extender, served on a port of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.schedulers.extender import address, new_secret, serving
from kumulus.host.ports import Claims, NoFreePort
from kumulus.kube import ApiError, Unreachable


@asynccontextmanager
async def served(filtering: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> AsyncIterator[str]:
    """Serve an extender until the context ends.

    Yields:
        the address below which it is served, for `urlPrefix`.
    """
    secret = new_secret()

    async def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return await filtering(arguments)
        except (ApiError, Unreachable) as error:
            return {"Error": f"the cluster's nodes cannot be listed: {error}"}

    try:
        with Claims() as claims:
            port = claims.take()
            async with serving(answer, port, secret):
                yield address(port, secret)
    except NoFreePort as error:
        raise LabError(str(error)) from None
