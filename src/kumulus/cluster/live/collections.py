"""Follow collections that a cluster may have or not, such as the queues of a scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qsl

from kumulus.kube import ApiError, Client, Unreachable
from kumulus.kube.watch import Event, Events, News, follow

Take = Callable[[Event[Any]], None]
_AGAIN = 20.0


async def follow_when_there(client: Client, path: str, take: Take) -> None:
    """Follow a collection until cancelled; one that the server does not have may come to be there.

    Args:
        client: of the cluster.
        path: of the collection, with a query where only some of it is wanted.
        take: takes the events; objects are as JSON has them.
    """
    path, _, query = path.partition("?")
    while True:
        try:
            listening: AsyncGenerator[News[Any], None] = follow(client, path, dict(parse_qsl(query)))
            async with aclosing(listening) as news:
                async for each in news:
                    for event in each.events if isinstance(each, Events) else ():
                        take(event)
        except (ApiError, Unreachable):
            # It is not there, not for this user, or not now; nodes and pods tell whether anything is lost.
            await asyncio.sleep(_AGAIN)
