"""The pods of removed nodes are removed, however long that takes."""

import asyncio
from types import SimpleNamespace

import pytest

from kumulus.nodes.pools import removal
from kumulus.nodes.pools.removal import BoundPod, PodsRemain
from kumulus.nodes.reporter import Silent
from tests.support.object_store import Store, storing

FIRST, SECOND = (BoundPod(name, f"/api/v1/namespaces/default/pods/{name}", tracked=False) for name in ("a", "b"))


async def removed(monkeypatch: pytest.MonkeyPatch, store: Store, looks: list[list[BoundPod]], seconds: float) -> int:
    """Remove what is found at each look; each removal takes more than a minute, each look some seconds."""
    looked: list[object] = []

    async def bound_to(*_: object) -> list[BoundPod]:
        looked.append(None)
        return looks[min(len(looked), len(looks)) - 1]

    def now() -> float:
        return 61.0 * len(store.asked) + seconds * len(looked)

    monkeypatch.setattr(removal, "bound_to", bound_to)
    monkeypatch.setattr(removal, "time", SimpleNamespace(monotonic=now))
    async with store.client() as client:
        return await removal.remove_pods(client, {"n"}, asyncio.Event(), Silent())


async def test_pods_that_are_bound_while_many_are_removed_are_removed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with storing() as store:
        assert await removed(monkeypatch, store, [[FIRST], [SECOND], []], seconds=0.0) == 2


async def test_pods_that_stay_end_the_wait_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    async with storing() as store:
        with pytest.raises(PodsRemain, match=r"1 pods of removed nodes are still there, .*/pods/a among them"):
            await removed(monkeypatch, store, [[FIRST]], seconds=20.0)
