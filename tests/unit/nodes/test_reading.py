"""Who is looked at when."""

from __future__ import annotations

import asyncio

import pytest

from kumulus.nodes.pools import reading
from kumulus.nodes.pools.reading import ReadLimit


async def test_two_have_their_turn_at_once_and_the_others_after_them() -> None:
    order, admitted = ReadLimit(), []

    async def look(number: int, end: asyncio.Event) -> None:
        async with order.admitted():
            admitted.append(number)
            await end.wait()

    ends = [asyncio.Event() for _ in range(4)]
    looks = [asyncio.ensure_future(look(number, end)) for number, end in enumerate(ends)]
    await asyncio.sleep(0.05)
    assert admitted == [0, 1]
    ends[1].set()
    await asyncio.sleep(0.05)
    assert admitted == [0, 1, 2]
    looks[0].cancel()
    await asyncio.sleep(0.05)
    assert admitted == [0, 1, 2, 3]
    for end in ends:
        end.set()
    await asyncio.gather(*looks, return_exceptions=True)


async def test_who_waited_for_long_goes_on_anyhow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LONGEST_WAIT_S", 0.1)
    order, inside, everybody = ReadLimit(), 0, asyncio.Event()

    async def look() -> None:
        nonlocal inside
        async with order.admitted():
            inside += 1
            if inside == 6:
                everybody.set()
            # Nobody leaves before all are in: without an end to the waiting, that is never.
            await everybody.wait()

    async with asyncio.timeout(30):
        await asyncio.gather(*(look() for _ in range(6)))
    assert inside == 6
