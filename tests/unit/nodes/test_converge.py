"""What converging a pool reports: how fast it is, and what could not be done."""

import asyncio
from types import SimpleNamespace

import pytest

from kumulus.model.applied import posted_node, record_of
from kumulus.nodes.pools import converge, result
from kumulus.nodes.pools.observe import observe
from kumulus.nodes.reporter import Silent
from tests.support.object_store import NODES, storing
from tests.unit.model.test_fault_changes import NOW, pool


async def test_the_rate_of_changes_is_not_that_of_the_nodes_that_were_made_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of, shown = pool(), list[str]()

    class Lines(Silent):
        def status(self, message: str, *, last: bool = False) -> None:
            shown.append(message)

    async with storing() as store, store.client() as client:
        for n in range(2):
            node = posted_node(of, n, NOW, record_of(of, n))
            node["metadata"]["labels"]["kumulus.io/group"] = "another"
            store.put(NODES, node)
        seen = await observe(client, of)
        # A second passes with each node that is made.
        clock = SimpleNamespace(monotonic=lambda: float(store.asked.count(("POST", NODES))))
        monkeypatch.setattr(result, "time", clock)
        await converge.converge(client, of, seen, asyncio.Event(), Lines())
        assert clock.monotonic() == of.replicas - 2
    assert shown[-1] == "nodes changed 2/2 · 2,000/s"
