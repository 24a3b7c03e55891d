"""`kumulus fault inject --wait`: whenever it is interrupted, and whatever fails, it leaves no fault behind."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kumulus.cli import fault_actions, project
from kumulus.cli.errors import UserError
from kumulus.cli.which import StackCluster
from kumulus.model.identity import Owner
from kumulus.nodes.faults import operations, records
from kumulus.nodes.faults.records import Record
from tests.support.object_store import MAPS, NODES, Store
from tests.unit.cli.test_fault import parsed
from tests.unit.model.test_fault_changes import NOW
from tests.unit.nodes.test_fault_operations import POOL, fault, on, refusing, shown, twelve_nodes
from tests.unit.provider.stored import KUBECONFIG

DEV = StackCluster("dev", "", "dev")
RECORD = f"{MAPS}/kumulus-fault-x"


@dataclass
class Place:
    store: Store

    async def inject(self) -> int:
        args = parsed("--group", "a100", "--capacity", "nvidia.com/gpu=-1", "--taint", "example.com/xid:NoSchedule")
        args.wait, args.stack = True, "dev"
        return await fault_actions.inject(DEV, args)


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setattr(project, "kubeconfig", lambda _: tmp_path / "k")
    async with twelve_nodes() as (store, _):
        (tmp_path / "k").write_text(KUBECONFIG.format(address=store.address))
        yield Place(store)


@pytest.mark.parametrize("at", [1, 5, 12, 24, 0])
async def test_ctrl_c_ends_the_fault_while_it_begins_and_afterwards(place: Place, at: int) -> None:
    changes, begun = 0, asyncio.Event()

    def interrupt(verb: str, path: str, body: Any) -> None:
        nonlocal changes
        if (verb, path) == ("PATCH", RECORD) and "former" not in body["data"]["record"]:
            begun.set()
        if verb == "PATCH" and path.startswith(NODES):
            changes += 1
            if changes == at:
                task.cancel()

    task = asyncio.ensure_future(place.inject())
    place.store.refuse = interrupt
    if not at:
        await begun.wait()
        await asyncio.sleep(0.2)
        assert shown(place.store) == on(range(12))
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shown(place.store) == []
    assert RECORD not in place.store.objects


async def test_a_fault_of_which_a_part_could_not_begin_is_ended(place: Place) -> None:
    place.store.refuse = refusing(4)
    with pytest.raises(UserError, match=r"x is not over: .*\n  .*fault clear x -s dev"):
        await place.inject()
    assert RECORD in place.store.objects


async def test_a_fault_that_one_node_refuses_is_ended_on_the_others(place: Place) -> None:
    left = 7

    def some(verb: str, path: str, body: object) -> int | None:
        nonlocal left
        left -= verb == "PATCH" and path.startswith(NODES)
        return 403 if left == 0 else None

    place.store.refuse = some
    with pytest.raises(UserError, match="1 node left to do"):
        await place.inject()
    assert shown(place.store) == []
    assert RECORD not in place.store.objects


async def test_what_was_not_begun_does_not_end_the_fault_of_that_name(place: Place) -> None:
    async with place.store.client() as client:
        other = fault(range(3))
        await operations.begin(client, Record("x", "", other.nodes, other.node))
        there = (await records.read(client)).faults
        place.store.refuse = lambda verb, path, _: 403 if verb != "GET" and path == RECORD else None
        with pytest.raises(Exception, match=re.escape("403")):
            await place.inject()
        assert (await records.read(client)).faults == there
        assert POOL.name in there["x"].nodes


async def test_a_record_that_was_damaged_by_hand_is_named_with_the_remedy(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async with place.store.client() as client:
        await operations.begin(client, fault(range(4)))
    place.store.objects[f"{MAPS}/kumulus-fault-xid"]["data"]["record"] = "{"
    args = parsed("--group", "a100")
    args.name, args.all, args.stack, args.json = "xid", False, "dev", False
    assert await fault_actions.show(DEV, args) == 0
    out, err = capsys.readouterr()
    assert out == "dev: no active fault\n"
    assert "kumulus-fault-xid is damaged" in err
    assert "kubectl delete configmap -n kube-system kumulus-fault-xid" in err
    with pytest.raises(UserError, match="the record of xid is damaged"):
        await fault_actions.clear(DEV, args)


async def test_the_time_of_a_fault_is_kept_even_if_one_node_refused_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []
    monkeypatch.setattr(fault_actions, "_start_keeper", lambda _, name, until: kept.append(f"{name} {until}"))
    place.store.refuse = refusing(4)
    args = parsed("--group", "a100", "--capacity", "nvidia.com/gpu=-1", "--for", "5m")
    args.stack = "dev"
    with pytest.raises(UserError, match="nodes left to do"):
        await fault_actions.inject(DEV, args)
    async with place.store.client() as client:
        there = (await records.read(client)).faults["x"]
    assert kept == [f"x {there.until}"]


async def test_a_fault_whose_time_is_up_is_over_when_it_is_cleared(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    for everything in (False, True):
        async with place.store.client() as client:
            await operations.begin(client, replace(fault(range(4)), until=NOW))
        args = parsed()
        args.name, args.all = (None, True) if everything else ("xid", False)
        assert await fault_actions.clear(DEV, args) == 0
        assert capsys.readouterr().out == "dev: xid is over: its end was due\n"
        assert shown(place.store) == []


@pytest.mark.parametrize("name", [None, "xid"])
async def test_what_to_clear_is_either_named_or_all(place: Place, name: str | None) -> None:
    args = parsed()
    args.name, args.all = name, name is not None
    with pytest.raises(UserError, match="but not both"):
        await fault_actions.clear(DEV, args)


async def test_a_fault_whose_time_is_up_is_not_said_to_have_been_replaced(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async with place.store.client() as client:
        await operations.begin(client, replace(fault(range(4)), name="x", until=NOW))
    args = parsed("--group", "a100", "--capacity", "nvidia.com/gpu=-1")
    args.stack = "dev"
    assert await fault_actions.inject(DEV, args) == 0
    assert "active already" not in capsys.readouterr().out


async def test_a_fault_that_another_stack_declares_is_said_to_be_its(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_actions, "cluster_owner", lambda _: Owner("1" * 32, "dev"))
    args = parsed("--group", "a100", "--capacity", "nvidia.com/gpu=-1")
    args.stack = "dev"
    for owner, said in ((Owner("2" * 32, "b"), "belongs to"), (Owner("1" * 32, "dev"), "declared in the stack file")):
        declared = replace(fault(range(4)), name="x", declared=True, owner=owner)
        async with place.store.client() as client:
            await records.write_fault(client, declared)
        with pytest.raises(UserError, match=said):
            await fault_actions.inject(DEV, args)


async def test_what_was_interrupted_before_it_began_does_not_end_a_fault_of_another_kind(place: Place) -> None:
    async with place.store.client() as client:
        known = await records.read(client)
        args = parsed("--group", "a100", "--capacity", "nvidia.com/gpu=-1", "--taint", "example.com/xid:NoSchedule")
        args.stack = "dev"
        same = fault_actions._resolved(args, known)
        await operations.begin(client, Record("x", "xid-79", same.nodes, same.node))

        def interrupt(verb: str, path: str, _: Any) -> int | None:
            if (verb, path) != ("PATCH", RECORD):
                return None
            place.store.refuse = lambda *_: None
            task.cancel()
            return 403

        place.store.refuse = interrupt
        task = asyncio.ensure_future(place.inject())
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await records.read(client)).faults["x"].kind == "xid-79"
