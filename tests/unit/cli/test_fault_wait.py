"""`kumulus fault inject --wait`: whenever it is interrupted, and whatever fails, it leaves no fault behind."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kumulus.cli import fault_actions
from kumulus.cli.errors import UserError
from kumulus.nodes.faults import operations, records
from kumulus.nodes.faults.records import Record
from tests.support.object_store import MAPS, NODES, Store
from tests.unit.cli.test_fault import parsed
from tests.unit.nodes.test_fault_operations import POOL, fault, on, refusing, shown, twelve_nodes
from tests.unit.provider.stored import KUBECONFIG

RECORD = f"{MAPS}/kumulus-fault-x"


@dataclass
class Place:
    store: Store
    kubeconfig: Path

    async def inject(self) -> int:
        args = parsed("--group", "a100", "--capacity", "nvidia.com/gpu=-1", "--taint", "example.com/xid:NoSchedule")
        args.wait, args.stack, args.title, args.naming = True, "dev", "dev", "-s dev"
        return await fault_actions.inject(self.kubeconfig, args)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with twelve_nodes() as (store, _):
        (tmp_path / "k").write_text(KUBECONFIG.format(address=store.address))
        yield Place(store, tmp_path / "k")


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
    with pytest.raises(UserError, match="nodes left to do"):
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
    args.name, args.all, args.stack, args.title, args.json = "xid", False, "dev", "dev", False
    assert await fault_actions.show(place.kubeconfig, args) == 0
    out, err = capsys.readouterr()
    assert out == "dev: no active fault\n"
    assert "kumulus-fault-xid is damaged" in err
    assert "kubectl delete configmap -n kube-system kumulus-fault-xid" in err
    with pytest.raises(UserError, match="the record of xid is damaged"):
        await fault_actions.clear(place.kubeconfig, args)
