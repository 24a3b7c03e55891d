"""Faults and nodes that have a name of a pool and are not its own, and nodes that are made by an earlier request."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from kumulus.kube import Client
from kumulus.model.applied import posted_node, record_of
from kumulus.model.fault_effects import node_effects_from
from kumulus.model.identity import NOBODY, STACK_ID, Owner
from kumulus.model.pools import POOL_LABEL, Pool
from kumulus.model.slices import parts_of, slice_manifest
from kumulus.nodes.faults import operations, records
from kumulus.nodes.faults.leases import LEASES
from kumulus.nodes.pools.slices import SLICES
from kumulus.stackfile.expand import pools
from kumulus.stackfile.model import ClusterSpec
from tests.support.object_store import NODES, Object, Store, storing
from tests.unit.model.test_fault_changes import GPU, NOW, pool
from tests.unit.provider.test_node_pool import WITH_SLICES

MINE = Owner("aaaaaaaa", "p/dev")
UNMARKED = pool()
MARKED = replace(UNMARKED, labels={**UNMARKED.labels, **MINE.labels})
REAL = {"status": {"nodeInfo": {"containerRuntimeVersion": "containerd://1.7"}}}
EFFECTS = [{"capacity": {GPU: "-1"}}, {"kubelet": "silent"}, {"kubelet": "gone"}]
STRANGE: dict[str, tuple[Pool, Object, str]] = {
    "another stack's": (MARKED, {"metadata": {"labels": {STACK_ID: "bbbbbbbb"}}}, "is not this stack's"),
    "another stack's of a pool of that name": (
        MARKED,
        {"metadata": {"labels": {STACK_ID: "bbbbbbbb", POOL_LABEL: MARKED.name}}},
        "is not this stack's",
    ),
    "a real one": (MARKED, {"metadata": {}, **REAL}, "a real node carries the name"),
    "a real one, of a stack without an identity": (UNMARKED, {"metadata": {}, **REAL}, "a real node carries the name"),
    "one by hand": (MARKED, {"metadata": {}}, "is not this stack's"),
}


def fault(of: Pool, nodes: Iterable[int], effects: dict[str, Any]) -> records.Record:
    owner = MINE if STACK_ID in of.labels else NOBODY
    return records.Record("x", "", {of.name: frozenset(nodes)}, node_effects_from(effects), owner=owner)


@asynccontextmanager
async def having(of: Pool, nodes: int) -> AsyncIterator[tuple[Store, Client]]:
    """A cluster with the first nodes of a pool."""
    async with storing() as store, store.client() as client:
        await records.write_pool(client, of)
        for n in range(nodes):
            store.put(NODES, posted_node(of, n, NOW, record_of(of, n)))
        yield store, client


@pytest.mark.parametrize("effects", EFFECTS)
@pytest.mark.parametrize("owner_text", STRANGE)
async def test_a_node_that_is_not_the_pools_is_left_alone_and_named(owner_text: str, effects: dict[str, Any]) -> None:
    of, body, said = STRANGE[owner_text]
    async with having(of, 1) as (store, client):
        name = of.node_name(1)
        strange = store.put(NODES, {**body, "metadata": {**body["metadata"], "name": name}})
        store.asked.clear()
        record, applied = await operations.begin(client, fault(of, (0, 1), effects))
        assert [said in each and name in each for each in applied.problems] == [True]
        # On all others it has begun.
        assert (applied.undone, applied.changed + applied.removed, record.former) == (0, 1, ())
        _, applied = await operations.end(client, "x")
        assert applied.left() == ""
        assert not (await records.read(client)).faults
        assert store.objects[f"{NODES}/{name}"] == strange
        assert {verb for verb, path in store.asked if path.startswith(f"{NODES}/{name}")} == {"GET"}
        assert f"{LEASES}/{name}" not in store.objects


async def test_a_name_that_another_stack_took_while_the_node_was_gone_is_left_to_it() -> None:
    async with having(MARKED, 1) as (store, client):
        await operations.begin(client, fault(MARKED, (0,), {"kubelet": "gone"}))
        body = {"metadata": {"name": MARKED.node_name(0), "labels": {STACK_ID: "bbbbbbbb"}}}
        taken: list[Object] = []

        def take(verb: str, path: str, _: Any) -> None:
            if (verb, path) == ("POST", NODES) and not taken:
                taken.append(store.put(NODES, body))

        store.refuse = take
        _, applied = await operations.end(client, "x")
        assert (applied.left(), len(applied.foreign)) == ("", 1)
        assert store.under(NODES) == taken


async def test_a_node_that_was_made_again_before_it_is_deleted_is_deleted_in_its_turn_only_if_it_is_the_pools() -> None:
    async with having(MARKED, 1) as (store, client):
        name = MARKED.node_name(0)
        made: list[Object] = []

        def replaced(verb: str, path: str, _: Any) -> None:
            if (verb, path) == ("DELETE", f"{NODES}/{name}") and not made:
                made.append(store.put(NODES, {"metadata": {"name": name, "labels": {STACK_ID: "bbbbbbbb"}}}))

        store.refuse = replaced
        _, applied = await operations.begin(client, fault(MARKED, (0,), {"kubelet": "gone"}))
        assert applied.problems == [f"node {name} is not this stack's; nothing was done to it"]
        assert store.under(NODES) == made


async def test_whose_nodes_they_are_costs_one_list_of_names_and_no_request_for_each() -> None:
    async with having(MARKED, MARKED.replicas) as (store, client):
        store.asked.clear()
        await operations.begin(client, fault(MARKED, range(12), {"capacity": {GPU: "-1"}}))
        asked = [(verb, path == NODES) for verb, path in store.asked if path.startswith(NODES)]
        assert (asked.count(("GET", True)), asked.count(("PATCH", False)), len(asked)) == (1, 12, 13)


async def test_a_node_whose_posts_answer_was_lost_gets_its_slices() -> None:
    (of,) = pools(ClusterSpec.checked({"nodeGroups": [WITH_SLICES]}), "dev")
    async with having(of, 1) as (store, client):
        store.served.add(SLICES)
        wanted = [slice_manifest(of, part, "?") for part in parts_of(of, (0,))]
        await operations.begin(client, fault(of, (0,), {"kubelet": "gone"}))
        posted: list[Object] = []

        def lose(verb: str, path: str, body: Any) -> None:
            # The client repeats a request without an answer, and meets what it has made.
            if (verb, path) == ("POST", NODES) and not posted:
                posted.append(store.put(NODES, body))

        store.refuse = lose
        _, applied = await operations.end(client, "x")
        assert applied.left() == ""
        assert [each["metadata"]["uid"] for each in store.under(NODES)] == [posted[0]["metadata"]["uid"]]
        slices = store.under(SLICES)
        assert [each["metadata"]["name"] for each in slices] == [each["metadata"]["name"] for each in wanted]
        owners = {owner["uid"] for each in slices for owner in each["metadata"]["ownerReferences"]}
        assert owners == {posted[0]["metadata"]["uid"]}
