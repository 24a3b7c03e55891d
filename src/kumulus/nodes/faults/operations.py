"""Begin, change and end a fault in a live cluster.

The record is written first and deleted last. If the work in between is interrupted, the record says what is wanted and
what nodes may still show (:attr:`Record.former`), and the next operation on the cluster, or on the fault, finishes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from kumulus.kube import ApiError, Unreachable
from kumulus.model.active_faults import ActiveFault
from kumulus.model.durations import timestamp
from kumulus.model.fault_effects import NodeEffects
from kumulus.model.identity import NOBODY, Owner
from kumulus.model.node_sets import clashes, union
from kumulus.nodes import ownership
from kumulus.nodes.faults import offerings, records, stages
from kumulus.nodes.faults.nodes import FaultsApplied, apply_steps
from kumulus.nodes.faults.records import ClusterRecords, Record
from kumulus.nodes.ownership import NotOurs

if TYPE_CHECKING:
    from kumulus.kube import Client

Progress = Callable[[int, int], None]
_NOTHING_TO_TAKE = (
    "no spot machine that it selects is there to be taken back; let it begin when the autoscaler has made some: by "
    "`kumulus fault inject`, or in an experiment's timeline"
)
_locks: WeakKeyDictionary[Client, asyncio.Lock] = WeakKeyDictionary()


class FaultRefused(Exception):
    """A fault that cannot begin, such as one that contradicts an active one; the message says why, and what to do."""


async def begin(
    client: Client,
    record: Record,
    *,
    stop: asyncio.Event | None = None,
    progress: Progress | None = None,
    recorded: str | None = None,
    declared: Mapping[str, Record] | None = None,
) -> tuple[Record, FaultsApplied]:
    """Begin a fault, replacing any fault of the same name that is not another stack's.

    Args:
        record: the fault; its start time is filled in.
        recorded: the identity under which the stack has the fault in its state, empty when it had none; None if the
            fault is not in the state.
        declared: the faults that its stack declares now, by name; None if that is not known. A fault that the stack
            declares no more, or on other nodes, ends later in the same update: it is no contradiction.

    Returns:
        The fault as it is recorded now, and what was done. What the server refused after the record was written is
        among the problems.

    Raises:
        FaultRefused: the message says why, and what to do.
        NoStages: it is a fault of pods, and the cluster takes no stages.
    """
    async with _locked(client):
        known = await records.read(client)
        if record.pods is not None:
            await stages.require(client)
        await refuse_anothers(client, record, known, recorded)
        known = await _settled(client, known, stop, record.owner)
        now = timestamp()
        before = known.faults.get(record.name)
        others = [each for each in known.faults.values() if each.name != record.name]
        refuse_clashes(record, others if declared is None else _as_declared(others, record.owner, declared))
        await _refuse_without_targets(client, record, known.pools)
        record = await _beginning(client, record, before, now)
        if before is not None and _targets(before) != _targets(record):
            # Otherwise its stages would stay, or its changes of offerings.
            _, applied = await _end(client, known, record.name, stop, None)
            if applied.left():
                return replace(before, ending=True), applied
            known, before = await records.read(client), None
        record = replace(record, former=_shown(before, now) if before else (_absent(record.name),))
        return await _write(client, record, known, now, stop, progress)


async def _refuse_without_targets(client: Client, record: Record, pools: Collection[str]) -> None:
    """Refuse a fault of an autoscaler that the cluster does not have, or of nodes of pools that it does not have."""
    if record.offers is not None and not await offerings.has_autoscaler(client):
        raise FaultRefused(
            "the cluster has no autoscaler, whose offerings it would change; docs/autoscalers.md says how to have one"
        )
    if unknown := sorted(set(record.nodes).difference(pools)):
        raise FaultRefused(
            f"the pool {unknown[0]} is not on record in the cluster; `pulumi up --refresh` puts it there"
        )


async def _beginning(client: Client, record: Record, before: Record | None, now: str) -> Record:
    """A fault with its start time and the machines that it reclaims; `before` is the one of its name so far."""
    since = now
    if before is not None and (before.node, before.offers) == (record.node, record.offers) and not before.ending:
        # A reboot in progress does not start again because one more node joins it.
        since = before.since
    record = replace(record, since=since, ending=False)
    record = await offerings.drawn(client, record, before)
    if record.offers is not None and record.offers.interruption is not None and not record.machines:
        raise FaultRefused(_NOTHING_TO_TAKE)
    return record


async def _write(
    client: Client,
    record: Record,
    known: ClusterRecords,
    now: str,
    stop: asyncio.Event | None,
    progress: Progress | None,
) -> tuple[Record, FaultsApplied]:
    """Record a fault and put it into effect; arguments, result and errors as those of :func:`begin`."""
    applied, recorded = FaultsApplied(undone=record.count), False
    try:
        await records.write_fault(client, record)
        recorded = True
        applied = await _apply(client, known, record.former, record.active(), now, stop, progress)
        await stages.put(client, record, known.pools)
        await offerings.put(client, record)
        await offerings.reclaim(client, record)
        if not applied.left():
            record = await records.begun(client, record)
        # Nothing is left to do on nodes that are not the pool's, but the fault is not on them.
        applied.problems += applied.foreign
    except (ApiError, Unreachable) as error:
        # After a server error, or without an answer, it is not known whether the record was written.
        if not recorded and isinstance(error, ApiError) and error.status < 500:
            raise
        applied.problems.append(str(error))
    return record, applied


async def refuse_anothers(client: Client, record: Record, known: ClusterRecords, recorded: str | None = None) -> None:
    """Refuse a fault whose name another stack's fault has in the cluster; arguments as for :func:`begin`."""
    there, mine = known.faults.get(record.name), record.owner.identity
    if there is None or there.owner.identity in (mine, recorded):
        return
    if there.owner.identity:
        owner_text = f"belongs to {await ownership.named(client, there.owner)}"
    elif there.declared and recorded is None:
        owner_text = "is declared by a stack without an identity"
    else:
        # A command injected it for a stack without an identity; such faults replace each other.
        return
    raise FaultRefused(
        f"a fault of that name is already active and {owner_text}; nothing was changed: give this one another name"
    )


async def end(
    client: Client,
    name: str,
    *,
    stop: asyncio.Event | None = None,
    progress: Progress | None = None,
    owner: Owner = NOBODY,
) -> tuple[Record | None, FaultsApplied]:
    """End a fault: every node becomes what its pool and the remaining active faults make of it.

    Returns:
        The fault as it was recorded, None when there was none of that name; and what was done.

    Raises:
        NotOurs: it is another stack's; nothing was done.
    """
    async with _locked(client):
        known = await records.read(client)
        there = known.faults.get(name)
        if there is not None and owner.identity and not there.is_of(owner):
            raise NotOurs(f"the fault {name} belongs to {await ownership.named(client, there.owner)}")
        return await _end(client, known, name, stop, progress)


async def settle(client: Client, known: ClusterRecords, owner: Owner) -> list[str]:
    """End a stack's faults whose time is up, and those whose ending was interrupted; returns their names."""
    due = overdue(known.of(owner))
    if due:
        async with _locked(client):
            # A concurrent command may have ended them.
            await _settled(client, await records.read(client), None, owner)
    return due


async def _settled(client: Client, known: ClusterRecords, stop: asyncio.Event | None, owner: Owner) -> ClusterRecords:
    """End the stack's faults that are due; returns the records as they are then."""
    for name in overdue(known.of(owner)):
        await _end(client, known, name, stop, None)
        known = await records.read(client)
    return known


def overdue(known: ClusterRecords) -> list[str]:
    """Names of the faults whose time is up, and of those whose ending was interrupted."""
    now = timestamp()
    return sorted(each.name for each in known.faults.values() if each.over(now))


def _as_declared(faults: list[Record], mine: Owner, declared: Mapping[str, Record]) -> list[Record]:
    """Faults, without those that a stack declares no more, and the others of the stack as it declares them now."""
    found = []
    for each in faults:
        by_the_stack = each.declared and mine.identity and each.owner.identity == mine.identity
        if not by_the_stack:
            found.append(each)
        elif current := declared.get(each.name):
            found.append(replace(each, nodes=current.nodes, node=current.node))
    return found


def refuse_clashes(record: Record, others: list[Record]) -> None:
    """Refuse a fault that contradicts another, which the message names."""
    now = timestamp()
    for other in others:
        clash = clashes(record.node, record.nodes, other.node, other.nodes)
        if clash and not other.over(now):
            how = "remove it from the stack file" if other.declared else f"clear it: kumulus fault clear {other.name}"
            raise FaultRefused(
                f"the fault {other.name} is already active and decides {clash}; {how}, or choose other nodes"
            )


def _locked(client: Client) -> asyncio.Lock:
    """The cluster's lock: its faults begin and end one at a time, as each must know what the others do to a node."""
    return _locks.setdefault(client, asyncio.Lock())


async def _end(
    client: Client, known: ClusterRecords, name: str, stop: asyncio.Event | None, progress: Progress | None
) -> tuple[Record | None, FaultsApplied]:
    record = known.faults.get(name)
    if record is None:
        return None, FaultsApplied()
    await records.write_fault(client, replace(record, ending=True))
    await stages.remove(client, record)
    await offerings.put(client, record)
    await offerings.call_off(client, record)
    now = timestamp()
    applied = await _apply(client, known, _shown(record, now), None, now, stop, progress)
    if not applied.left():
        await records.forget_fault(client, name)
    return record, applied


def _targets(record: Record) -> tuple[bool, bool]:
    """Whether it is a fault of pods, and whether one of an autoscaler's offerings; otherwise it is one of nodes."""
    return record.pods is not None, record.offers is not None


def _shown(record: Record, now: str) -> tuple[ActiveFault, ...]:
    """The forms of a recorded fault that nodes may show."""
    found = [record.active(), *record.former]
    if record.over(now):
        # Its end may have been cut off.
        found.append(_absent(record.name))
    return tuple(each for at, each in enumerate(found) if each not in found[:at])


def _absent(name: str) -> ActiveFault:
    """The form of a fault that does not exist: without nodes."""
    return ActiveFault(name, NodeEffects(), {})


async def _apply(
    client: Client,
    known: ClusterRecords,
    befores: Sequence[ActiveFault],
    after: ActiveFault | None,
    now: str,
    stop: asyncio.Event | None,
    progress: Progress | None,
) -> FaultsApplied:
    """Change the nodes of a fault from the forms that they may show to its new one; the other faults stay active.

    If another process has changed the other faults in the meantime, the nodes are changed again.

    Args:
        befores: the forms that nodes may show.
        after: the new form; None for a fault that ends.
    """
    name = befores[0].name
    others = [fault for fault in known.active(now) if fault.name != name]
    last = [after] if after else []
    nodes = union(*[each.nodes for each in (*befores, *last)])
    shown, target = [[*others, each] for each in befores], [*others, *last]
    applied = await apply_steps(client, known.pools, nodes, shown, target, now=now, stop=stop, progress=progress)
    fresh = await records.read(client)
    there = [fault for fault in fresh.active(now) if fault.name != name]
    if there != others and not applied.undone:
        again = [*there, *last]
        more = await apply_steps(client, {**known.pools, **fresh.pools}, nodes, [target], again, now=now, stop=stop)
        applied.problems += more.problems
        applied.undone += more.undone
    return applied
