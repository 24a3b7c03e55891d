"""What converging a pool reports: how fast it is, and what could not be done."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kumulus.kube import Client
from kumulus.model.applied import posted_node, record_of
from kumulus.model.pools import Pool
from kumulus.model.slices import parts_of, slice_name
from kumulus.nodes.pools import converge, result
from kumulus.nodes.pools.observe import observe
from kumulus.nodes.pools.result import ConvergeResult
from kumulus.nodes.pools.slices import SLICES
from kumulus.nodes.reporter import Silent
from kumulus.stackfile.expand import pools
from kumulus.stackfile.model import ClusterSpec
from tests.support.object_store import NODES, Store, storing
from tests.unit.model.test_fault_changes import NOW, pool
from tests.unit.provider.test_node_pool import WITH_SLICES


class Storage:
    """A storage to which nothing is written: it has one node posted, to see its lease."""

    async def leases(self, client: Client, post: Any) -> None:
        await post()


async def converged_through_storage(store: Store, of: Pool, monkeypatch: pytest.MonkeyPatch) -> ConvergeResult:
    async def writer(*_: object) -> SimpleNamespace:
        async def not_written(_: int) -> str:
            return ""

        return SimpleNamespace(storage=Storage(), usual_ordinal=0, leases=None, create=not_written)

    async def storage() -> Any:
        return Storage()

    monkeypatch.setattr(converge, "prepared_writer", writer)
    monkeypatch.setattr(converge, "FEWEST", 1)
    store.served.add(SLICES)
    async with store.client() as client:
        seen = await observe(client, of)
        return await converge.converge(client, of, seen, asyncio.Event(), Silent(), storage)


def with_slices() -> Pool:
    (of,) = pools(ClusterSpec.checked({"nodeGroups": [WITH_SLICES]}), "dev")
    return of


async def test_the_slice_of_the_node_that_shows_its_lease_is_published_again_if_it_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = with_slices()
    async with storing() as store:
        failed: list[str] = []

        def fail_once(verb: str, path: str, _: Any) -> int | None:
            if (verb, path) != ("POST", SLICES) or failed:
                return None
            failed.append(path)
            return 500

        store.refuse = fail_once
        found = await converged_through_storage(store, of, monkeypatch)
        assert (found.complete, found.created) == (True, of.replicas)
        names = {each["metadata"]["name"] for each in store.under(SLICES)}
        assert failed
        assert names == {slice_name(of, part) for part in parts_of(of, range(of.replicas))}


async def test_slices_that_the_cluster_does_not_take_are_a_problem_of_a_pool_whose_nodes_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = with_slices()
    async with storing() as store:
        store.refuse = lambda verb, path, _: 404 if (verb, path) == ("POST", SLICES) else None
        found = await converged_through_storage(store, of, monkeypatch)
        assert "the cluster does not serve resource.k8s.io/v1" in found.problems[0]
        assert found.created == len(store.under(NODES)) > 0


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
