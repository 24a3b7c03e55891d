"""Follow collections that a cluster may not have, such as the queues of a scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from kumulus.kube import ApiError, Client, Unreachable
from kumulus.kube.watch import Event, Events, News, follow

Take = Callable[[Event[Any]], None]
_AGAIN = 5.0


def together(one: Mapping[str, Take], other: Mapping[str, Take]) -> dict[str, Take]:
    """What two followers want, by path; a path that both want is followed once.

    Args:
        one: gets each event first.
        other: gets it second.
    """
    both: dict[str, Take] = {path: partial(_both, one[path], other[path]) for path in one.keys() & other.keys()}
    return {**one, **other, **both}


def _both(one: Take, other: Take, event: Event[Any]) -> None:
    one(event)
    other(event)


async def follow_when_there(client: Client, path: str, take: Take) -> None:
    """Follow a collection until cancelled; if the server does not have it, it may appear later.

    Args:
        client: of the cluster.
        path: of the collection, with a query if only part of it is wanted.
        take: gets the events, with objects in their JSON form.
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
            # It does not exist, is forbidden or unavailable; the watches of nodes and pods show a lost connection.
            await asyncio.sleep(_AGAIN)
