"""Follow collections that a cluster may have or not, such as the queues of a scheduler."""

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
_AGAIN = 20.0


def together(one: Mapping[str, Take], other: Mapping[str, Take]) -> dict[str, Take]:
    """What two want to follow, by its path; what both want is followed once.

    Args:
        one: takes an event first.
        other: takes it then.
    """
    both: dict[str, Take] = {path: partial(_both, one[path], other[path]) for path in one.keys() & other.keys()}
    return {**one, **other, **both}


def _both(one: Take, other: Take, event: Event[Any]) -> None:
    one(event)
    other(event)


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
