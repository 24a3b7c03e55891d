"""Faults that were cut off: what of them is not done yet is done by the next operation, whatever it is."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kumulus.kube import ApiError, Client
from kumulus.kwok.stages import STAGES
from kumulus.model.active_faults import FAULT_LABEL
from kumulus.model.applied import posted_node, record_of
from kumulus.model.fault_effects import PodEffects, node_effects_from
from kumulus.nodes.faults import operations, records, stages
from kumulus.nodes.faults.leases import LEASES
from kumulus.nodes.faults.nodes import FaultsApplied
from kumulus.nodes.faults.records import Record
from tests.support.object_store import MAPS, NODES, Store, storing
from tests.unit.model.test_fault_changes import GPU, NOW, pool

XID = {"capacity": {GPU: "-1"}, "taints": [{"key": "example.com/xid", "effect": "NoSchedule"}]}
POOL = pool()
PODS = "/api/v1/pods"


def fault(nodes: Iterable[int], **effects: Any) -> Record:
    return Record("xid", "", {POOL.name: frozenset(nodes)}, node_effects_from(effects or XID))


async def filled(store: Store, client: Client) -> None:
    """Make the pool's twelve nodes."""
    await records.write_pool(client, POOL)
    for n in range(POOL.replicas):
        store.put(NODES, posted_node(POOL, n, NOW, record_of(POOL, n)))


@asynccontextmanager
async def twelve_nodes() -> AsyncIterator[tuple[Store, Client]]:
    """A cluster with them, which serves stages."""
    async with storing() as store, store.client() as client:
        store.served.add(STAGES)
        await filled(store, client)
        yield store, client


def shown(store: Store) -> list[tuple[int, str, list[str]]]:
    """The nodes that are not as their pool has them: number, GPUs, keys of taints, in order."""
    found = []
    for node in store.under(NODES):
        gpus = node["status"]["allocatable"][GPU]
        taints = [each["key"] for each in node["spec"].get("taints") or () if each["key"].startswith("example.com")]
        if (gpus, taints) != ("8", []):
            found.append((int(node["metadata"]["name"].rpartition("-")[2]), gpus, taints))
    return sorted(found)


def on(nodes: Iterable[int], gpus: str = "7") -> list[tuple[int, str, list[str]]]:
    return [(n, gpus, ["example.com/xid"]) for n in nodes]


async def begins(client: Client, record: Record) -> FaultsApplied:
    """Begin a fault on all of its nodes."""
    _, applied = await operations.begin(client, record)
    assert (applied.undone, applied.problems) == (0, [])
    return applied


def refusing(after: int = 0) -> Callable[[str, str, Any], int | None]:
    """Refuse every change of a node but the first ones."""
    left = [after]

    def refuse(verb: str, path: str, _: Any) -> int | None:
        if verb in ("PATCH", "POST", "DELETE") and path.startswith(NODES):
            left[0] -= 1
            return 403 if left[0] < 0 else None
        return None

    return refuse


def former(store: Store) -> bool:
    return "former" in store.objects[f"{MAPS}/kumulus-fault-xid"]["data"]["record"]


async def test_a_beginning_that_was_cut_off_is_finished_by_the_next() -> None:
    async with twelve_nodes() as (store, client):
        store.refuse = refusing(4)
        _, applied = await operations.begin(client, fault(range(12)))
        assert applied.undone
        assert shown(store) != on(range(12))
        assert former(store)
        store.refuse = refusing(100)
        await begins(client, fault(range(12)))
        assert shown(store) == on(range(12))
        assert not former(store)


MORE = {**XID, "capacity": {GPU: "-2"}}


@pytest.mark.parametrize("left", [0, 3, 5])
async def test_a_move_that_was_cut_off_leaves_nothing_behind_when_it_is_repeated_changed_or_ended(left: int) -> None:
    third = Record("xid", "", {POOL.name: frozenset(range(6, 10))}, node_effects_from(MORE))
    ends: list[tuple[Record | None, list[tuple[int, str, list[str]]]]] = [
        (fault(range(4, 8)), on(range(4, 8))),
        (third, on(range(6, 10), "6")),
        (fault(range(4)), on(range(4))),
        (None, []),
    ]
    for last, expected in ends:
        async with twelve_nodes() as (store, client):
            await operations.begin(client, fault(range(4)))
            store.refuse = refusing(left)
            _, applied = await operations.begin(client, fault(range(4, 8)))
            assert applied.undone
            store.refuse = refusing(100)
            if last is None:
                _, applied = await operations.end(client, "xid")
                assert (applied.undone, applied.problems) == (0, [])
            else:
                await begins(client, last)
            assert shown(store) == expected


async def test_a_change_that_nothing_accepts_does_not_stand_in_the_way_of_another_one() -> None:
    def refuse(verb: str, path: str, body: Any) -> int | None:
        refused = verb == "PATCH" and "example.com/bad" in str(body.get("metadata", {}).get("labels"))
        return 403 if refused and body["metadata"]["labels"]["example.com/bad"] else None

    async with twelve_nodes() as (store, client):
        await operations.begin(client, fault(range(4)))
        store.refuse = refuse
        for _ in range(2):
            _, applied = await operations.begin(client, fault(range(4, 8), labels={"example.com/bad": "x"}))
            assert applied.undone == 4
        await begins(client, fault(range(8, 10)))
        assert shown(store) == on(range(8, 10))


async def test_an_end_that_was_cut_off_is_finished_before_the_fault_begins_again() -> None:
    async with twelve_nodes() as (store, client):
        await operations.begin(client, fault(range(4)))
        store.refuse = refusing(2)
        await operations.end(client, "xid")
        # The end that the beginning makes first is refused too.
        store.refuse = refusing(0)
        await operations.begin(client, fault(range(4)))
        store.refuse = refusing(100)
        await operations.begin(client, fault(range(4)))
        assert shown(store) == on(range(4))


async def test_nodes_that_a_cut_off_fault_removed_come_back_and_those_it_did_not_stay() -> None:
    async with twelve_nodes() as (store, client):
        store.refuse = refusing(2)
        await operations.begin(client, fault(range(4), kubelet="gone"))
        store.refuse = refusing(100)
        assert len(store.under(NODES)) == 10
        _, applied = await operations.begin(client, fault(range(2, 4)))
        assert (applied.undone, applied.problems, applied.created) == (0, [], 2)
        assert len(store.under(NODES)) == 12
        assert shown(store) == on(range(2, 4))


async def test_a_stop_before_the_pods_of_removed_nodes_are_removed_leaves_a_fault_that_says_so() -> None:
    stop = asyncio.Event()
    async with twelve_nodes() as (store, client):
        for number in range(3):
            metadata = {"name": f"p{number}", "namespace": "default"}
            store.put(PODS, {"metadata": metadata, "spec": {"nodeName": POOL.node_name(0)}})

        def stopping(verb: str, path: str, _: Any) -> None:
            if (verb, path) == ("GET", PODS):
                stop.set()

        store.refuse = stopping
        record, applied = await operations.begin(client, fault([0], kubelet="gone"), stop=stop)
        assert applied.pods == 0
        assert applied.left() == "not all is done: stopped on request, and 3 pods of nodes that are gone are left"
        assert (await records.read(client)).faults == {"xid": record}


@pytest.mark.parametrize(("kind", "text"), [("fault", '{"name": "odd", "kind": "", "nodes": ["a"]}'), ("pool", "[1]")])
async def test_a_record_that_somebody_has_spoilt_is_ignored(kind: str, text: str) -> None:
    async with twelve_nodes() as (store, client):
        labels = {records.RECORD_LABEL: kind}
        store.put(MAPS, {"metadata": {"name": "odd", "labels": labels}, "data": {"record": text}})
        assert (await records.read(client)).pools.keys() == {POOL.name}


async def test_a_fault_that_another_process_ended_while_it_began_is_not_recorded_again() -> None:
    async with twelve_nodes() as (store, client):

        def end(verb: str, path: str, _: Any) -> None:
            if verb == "PATCH" and path.startswith(NODES):
                store.objects.pop(f"{MAPS}/kumulus-fault-xid", None)

        store.refuse = end
        await operations.begin(client, fault(range(2)))
        assert not (await records.read(client)).faults


async def test_a_fault_of_pods_is_not_recorded_where_stages_are_not_served() -> None:
    async with twelve_nodes() as (store, client):
        store.served.remove(STAGES)
        with pytest.raises(stages.NoStages, match="takes no faults of pods"):
            await operations.begin(client, Record("flaky", pods=PodEffects("fail")))
        assert not (await records.read(client)).faults


@pytest.mark.parametrize("effects", [{"kubelet": "silent"}, XID])
async def test_a_server_that_is_gone_once_the_fault_is_recorded_is_a_problem_of_the_fault(
    effects: dict[str, Any],
) -> None:
    async with twelve_nodes() as (store, client):
        store.refuse = lambda _verb, _path, _body: 503 if f"{MAPS}/kumulus-fault-xid" in store.objects else None
        record, applied = await operations.begin(client, fault(range(4), **effects))
        assert applied.left().startswith("4 nodes left to do: ")
        store.refuse = lambda *_: None
        assert (await records.read(client)).faults == {"xid": record}


async def test_each_node_that_a_stop_leaves_to_do_is_counted_once() -> None:
    stop = asyncio.Event()
    stop.set()
    async with twelve_nodes() as (_, client):
        # Both its lease and its label are left.
        _, applied = await operations.begin(client, fault(range(4), kubelet="silent"), stop=stop)
        assert applied.left() == "4 nodes left to do: stopped on request"


async def test_nodes_whose_lease_alone_is_left_to_do_are_counted() -> None:
    async with twelve_nodes() as (store, client):
        store.refuse = lambda verb, path, _: 403 if verb != "GET" and path.startswith(LEASES) else None
        _, applied = await operations.begin(client, fault(range(4), kubelet="silent"))
        assert applied.left().startswith("4 nodes left to do: ")


async def test_a_record_that_is_refused_is_an_error_and_leaves_nothing() -> None:
    async with twelve_nodes() as (store, client):
        store.refuse = lambda verb, path, _: 403 if verb != "GET" and path.startswith(MAPS) else None
        with pytest.raises(ApiError, match="403"):
            await operations.begin(client, fault(range(4)))
        assert shown(store) == []


async def test_stages_that_a_fault_no_longer_has_go_when_a_fault_begins_again() -> None:
    async with twelve_nodes() as (store, client):
        old = store.put(STAGES, {"metadata": {"name": "kumulus-fault-flaky-restart", "labels": {FAULT_LABEL: "flaky"}}})
        await operations.begin(client, Record("flaky", pods=PodEffects("fail")))
        assert old not in store.under(STAGES)
        names = ["kumulus-fault-flaky", "kumulus-fault-flaky.restart"]
        assert [each["metadata"]["name"] for each in store.under(STAGES)] == names


async def test_a_fault_of_pods_that_becomes_one_of_nodes_leaves_no_stages() -> None:
    async with twelve_nodes() as (store, client):
        await operations.begin(client, Record("xid", pods=PodEffects("fail")))
        assert store.under(STAGES)
        await operations.begin(client, fault(range(4)))
        assert store.under(STAGES) == []
        assert shown(store) == on(range(4))
        await operations.begin(client, Record("xid", pods=PodEffects("fail")))
        assert store.under(STAGES)
        assert shown(store) == []


async def test_kwok_reads_its_stages_once_more_before_it_is_shown_the_pods() -> None:
    """KWOK would go by the former stages if it read them while the last change was on its way to it."""
    async with twelve_nodes() as (store, client):
        store.put(STAGES, {"metadata": {"name": "a-base-stage"}})
        await operations.begin(client, Record("flaky", pods=PodEffects("stuck")))
        _touched_before_pods_are_listed(store)
        await operations.end(client, "flaky")
        _touched_before_pods_are_listed(store)


def _touched_before_pods_are_listed(store: Store) -> None:
    asked = [each for each in store.asked if each[1].startswith(STAGES) or each == ("GET", PODS)]
    touched = [("PATCH", f"{STAGES}/{each['metadata']['name']}") for each in store.under(STAGES)]
    assert asked[-len(touched) - 2 :] == [("GET", STAGES), *touched, ("GET", PODS)]
    store.asked.clear()
