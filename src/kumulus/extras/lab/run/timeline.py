"""Carry out the timeline's events when they are due, and undo what must not stay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kumulus.extras.journal import undo
from kumulus.extras.journal.book import Journal
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.federation.outages import Outages
from kumulus.extras.lab.file.timeline import OUTAGES, PoolResize, TimelineEvent
from kumulus.extras.lab.measure.faulted import Faulted
from kumulus.extras.lab.run.commands import Commands
from kumulus.extras.lab.run.planning import no_pool
from kumulus.extras.lab.run.switch import SchedulerSwitch
from kumulus.extras.lab.run.workloads import RepetitionWorkloads
from kumulus.extras.watch.history.document import Sort
from kumulus.kube.bulk import for_each
from kumulus.kube.objects import NODES
from kumulus.model.applied import posted_node, record_of
from kumulus.model.durations import timestamp
from kumulus.model.errors import SpecError
from kumulus.model.fault_consequences import reclaimed
from kumulus.model.fault_effects import NodeEffects, OfferEffects
from kumulus.model.identity import NOBODY, RUN_LABEL, Owner
from kumulus.nodes.faults import operations, records, stages
from kumulus.nodes.faults.new_pods import wait_until_managed
from kumulus.nodes.faults.records import Record
from kumulus.stackfile.fault_now import NoPools, resolved
from kumulus.stackfile.faults import FaultSpec

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.model.pools import Pool


@dataclass(frozen=True)
class Happened:
    """Something that happened: when, in seconds from the start, and what, in words."""

    at: float
    what: str


@dataclass(frozen=True)
class Parties:
    """What carries out events outside the cluster, and what learns of them."""

    tell: Callable[[str, Sort], None] = lambda _what, _sort: None
    """Takes each event after it has happened, in words, and its sort."""
    outages: Outages | None = None
    """Carries out what happens to workers; None outside of federations, where nothing does."""
    commands: Commands | None = None
    faulted: Faulted = field(default_factory=Faulted)
    """Learns which nodes the faults strike, and when."""
    priced: Callable[[Sequence[OfferEffects]], None] = lambda _: None
    """Called when the price of machines has changed, with what the active faults make of it."""


class Timeline:
    """The events of an experiment in a cluster.

    Args:
        workloads: what it deletes and scales.
        owner: the stack whose pools and faults the events refer to.
        parties: without any, events change the cluster alone.

    Attributes:
        created, scheduled: set when all pods have been created, and when all have a node.
    """

    def __init__(
        self,
        client: Client,
        journal: Journal,
        events: Sequence[TimelineEvent],
        switch: SchedulerSwitch,
        now: Callable[[], float],
        workloads: RepetitionWorkloads,
        owner: Owner = NOBODY,
        parties: Parties | None = None,
    ) -> None:
        self._parties = parties or Parties()
        self._offers: dict[str, OfferEffects] = {}
        self._owner = owner
        self._client = client
        self._journal = journal
        self._events = events
        self._switch = switch
        self._now = now
        self._workloads = workloads
        self._sizes: dict[str, int] = {}
        self.happened: list[Happened] = []
        self.created = asyncio.Event()
        self.scheduled = asyncio.Event()

    async def begin(self) -> None:
        """Carry out what is due at 0 s, before anything is created, so that a stopped scheduler places nothing."""
        if self._parties.outages is not None:
            await self._parties.outages.prepare(self._events)
        await self._run_events([each for each in self._events if each.after == "start" and not each.at], self._now())
        self.happened = [replace(each, at=0.0) for each in self.happened]

    async def run(self) -> None:
        """Carry out all other events; raises as :meth:`begin`."""
        starts = sorted((each for each in self._events if each.after == "start" and each.at), key=lambda each: each.at)
        running = [asyncio.create_task(self._run_events(starts, 0.0))]
        for after, moment in (("created", self.created), ("scheduled", self.scheduled)):
            later = sorted((each for each in self._events if each.after == after), key=lambda each: each.at)
            if later:
                running.append(asyncio.create_task(self._run_later(later, moment)))
        try:
            await asyncio.gather(*running)
            if self._parties.commands is not None:
                await self._parties.commands.wait(lambda what: self.note(what, Sort.OTHER))
        finally:
            for each in running:
                each.cancel()

    async def _run_later(self, events: list[TimelineEvent], moment: asyncio.Event) -> None:
        await moment.wait()
        await self._run_events(events, self._now())

    async def _run_events(self, events: list[TimelineEvent], origin: float) -> None:
        for event in events:
            await asyncio.sleep(max(0.0, origin + event.at - self._now()))
            self.note(await self._do(event), _sort(event))

    def note(self, what: str, sort: Sort) -> None:
        """Record something that has happened."""
        self.happened.append(Happened(self._now(), what))
        self._parties.tell(what, sort)

    async def _do(self, event: TimelineEvent) -> str:
        if event.fault is not None:
            return await self._fault(event.fault)
        if event.clear is not None:
            await self._end(event.clear)
            return f"{event.clear} is over"
        if event.resize is not None:
            return await self._resize(event.resize)
        if event.scale is not None:
            return await self._workloads.scale(event.scale)
        if event.delete is not None:
            await self._workloads.delete(event.delete)
            return f"{event.delete} is deleted"
        if self._parties.commands is not None and event.run is not None:
            return await self._parties.commands.start(event.run, self._workloads.namespace)
        if self._parties.outages is not None and event.action in OUTAGES:
            return await self._parties.outages.do(event)
        assert event.scheduler is not None
        return await self._switch.set_scheduler(event.scheduler)

    async def _fault(self, fault: FaultSpec) -> str:
        known = (await records.read(self._client)).of(self._owner)
        try:
            one = resolved(fault, known.pools, f"the timeline's fault {fault.name}")
        except (SpecError, NoPools) as error:
            raise LabError(str(error)) from None
        record = Record(one.name, one.kind, one.nodes, one.node, one.pods, offers=one.offers)
        nodes = [known.pools[pool].node_name(n) for pool, numbers in one.nodes.items() for n in numbers]
        self._parties.faulted.struck(one.name, nodes, self._now())
        began = await self._begin(record, known)
        if one.offers is not None:
            self._offers[one.name] = one.offers
            self._parties.priced(tuple(self._offers.values()))
        return one.described() + reclaimed(began.machines)

    async def _begin(self, record: Record, known: records.ClusterRecords) -> Record:
        run = self._journal.changes.run
        there = known.faults.get(record.name)
        if there is not None and there.run != run:
            raise LabError(f"a fault {record.name} is already active on the cluster; give the timeline's another name")
        self._journal.add(faults=[record.name])
        try:
            began, applied = await operations.begin(self._client, replace(record, run=run, owner=self._owner))
        except operations.FaultRefused as error:
            raise LabError(str(error)) from None
        except stages.NoStages as error:
            raise LabError(f"the timeline's fault {record.name}: {error}") from None
        if left := applied.left():
            raise LabError(f"the timeline's fault {record.name} has not begun everywhere: {left}")
        return began

    async def _end(self, name: str) -> None:
        await undo.end_faults(self._client, self._journal.changes.run, [name])
        self._journal.drop(faults=[name])
        self._parties.faulted.over(name, self._now())
        if self._offers.pop(name, None) is not None:
            self._parties.priced(tuple(self._offers.values()))

    async def _resize(self, resize: PoolResize) -> str:
        """Change a pool's number of nodes.

        A fault removes nodes that the stack declares, and they come back when it ends; nodes beyond these are created,
        and deleted again.
        """
        known = await records.read(self._client)
        pools = known.of(self._owner).pools
        pool = pools.get(resize.pool)
        if pool is None:
            raise LabError(no_pool(resize.pool, pools))
        if pool.bounds:
            raise LabError(f"the timeline resizes {pool.name}, whose number of nodes is the autoscaler's (maxReplicas)")
        declared = pool.replicas
        before, after = self._sizes.get(pool.name, declared), resize.replicas
        if after < declared:
            gone = {pool.name: frozenset(range(after, declared))}
            await self._begin(Record(f"experiment-{pool.name}", "", gone, NodeEffects(kubelet="gone")), known)
        elif before < declared:
            await self._end(f"experiment-{pool.name}")
        if after > max(before, declared):
            await self._grow(replace(pool, replicas=after), range(max(before, declared), after))
        elif before > max(after, declared):
            posted = [f"{NODES}/{pool.node_name(n)}" for n in range(max(after, declared), before)]
            await undo.remove_marked(self._client, self._journal.changes.run, posted)
            self._journal.drop(nodes=posted)
        self._sizes[pool.name] = after
        return f"{pool.name}: {before:,} → {after:,} nodes"

    async def _grow(self, grown: Pool, numbers: range) -> None:
        bodies = [posted_node(grown, n, timestamp(), record_of(grown, n)) for n in numbers]
        for body in bodies:
            body["metadata"]["labels"][RUN_LABEL] = self._journal.changes.run
        self._journal.add(nodes=[f"{NODES}/{body['metadata']['name']}" for body in bodies])
        outcome = await for_each(
            bodies, lambda body: self._client.write("POST", NODES, body), workers=self._client.connections
        )
        if outcome.failed:
            raise LabError(f"the pool {grown.name} cannot grow: {outcome.failed[0][1]}")
        # Pods may be waiting for these nodes.
        await wait_until_managed(self._client, [body["metadata"]["name"] for body in bodies])

    async def undo(self) -> None:
        """Undo what is still in effect: faults, sizes of pools, a stopped scheduler."""
        if self._parties.outages is not None:
            await self._parties.outages.undo()
        await self._switch.restore()
        changes = self._journal.changes
        await undo.end_faults(self._client, changes.run, changes.faults)
        self._journal.drop(faults=changes.faults)
        await undo.remove_marked(self._client, changes.run, changes.nodes)
        self._journal.drop(nodes=changes.nodes)


def _sort(event: TimelineEvent) -> Sort:
    if event.action in ("fault", "clear", *OUTAGES):
        return Sort.FAULT
    if event.resize is not None:
        return Sort.RESIZE
    return Sort.SCHEDULER if event.scheduler is not None else Sort.OTHER
