"""Watch the hub and every worker: one listener for each cluster, and one account of what they all report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kumulus.extras.lab.federation.dispatching import CLUSTERS, WORKLOADS, Dispatching
from kumulus.extras.lab.federation.members import Session
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.listening import Listener
from kumulus.extras.lab.measure.placement import PlacementRecorder
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.views import PodView
from kumulus.extras.watch.history.document import Sort
from kumulus.extras.watch.live.fleet import follow_when_there, together
from kumulus.kube.watch import WatchEvent
from kumulus.model.fault_effects import OfferEffects
from kumulus.nodes.catalog.prices import Prices

if TYPE_CHECKING:
    from kumulus.kube import Client


class Listeners:
    """Watches a namespace's pods in all clusters, the workers' nodes, and what the hub's Kueue reports of Jobs.

    It has the methods of :class:`Listener`, for all clusters together.

    Args:
        records: updated with the pods of all clusters, and their allocation with the workers' nodes.
        away: the workers that need not answer at the moment, and since when others have to again.
        happened: takes changes of the hub's connection to a worker.
    """

    def __init__(
        self,
        hub: Client,
        session: Session,
        records: ExperimentRecords,
        clock: Clock,
        placement: PlacementRecorder,
        dispatching: Dispatching,
        away: Callable[[], tuple[Collection[str], dict[str, float]]],
        happened: Callable[[str, Sort], None],
    ) -> None:
        self._client = hub
        self._clock = clock
        self._placement = placement
        self._dispatching = dispatching
        self._away = away
        self._happened = happened
        # The hub's own nodes are not watched: its Jobs run on the workers.
        self._hub = self._listener(hub, session.federation.hub, records)
        self._workers = {each.name: self._listener(each.client, each.name, records) for each in session.members}

    def _listener(self, client: Client, name: str, records: ExperimentRecords) -> Listener:
        def seen(pod: PodView, _: bool) -> None:
            self._dispatching.pod(name, pod)

        return Listener(client, records, self._clock, self._placement, seen, cluster=name)

    @property
    def interruptions(self) -> int:
        """How often a watch was interrupted, all clusters together."""
        return sum(each.interruptions for each in (self._hub, *self._workers.values()))

    def begin(self) -> None:
        """Count from now on, where the clock starts anew."""
        for each in (self._hub, *self._workers.values()):
            each.begin()

    def silence(self) -> tuple[float, str]:
        """For how many seconds nothing has been heard of a cluster that should answer, and why; 0 if all do."""
        away, back = self._away()
        found = [self._hub.silence()]
        for name, each in self._workers.items():
            seconds, why = each.silence()
            if why and name not in away:
                found.append((min(seconds, self._clock() - back.get(name, 0.0)), f"worker {name}: {why}"))
        return max(found)

    async def ask(self) -> None:
        """Ask the hub and every worker that should answer; see :meth:`Listener.ask`."""
        away, _ = self._away()
        workers = [each for name, each in self._workers.items() if name not in away]
        await asyncio.gather(*(each.ask() for each in (self._hub, *workers)))

    def reprice(self, offers: Sequence[OfferEffects]) -> None:
        """Apply what these faults make of the price of nodes, from now on."""
        for each in self._workers.values():
            each.reprice(offers)

    async def pods(self, namespace: str, synced: asyncio.Event) -> None:
        """Watch the namespace's pods in all clusters; see :meth:`Listener.pods`."""
        await _all([partial(each.pods, namespace) for each in (self._hub, *self._workers.values())], synced)

    async def others(self, namespace: str, synced: asyncio.Event) -> None:
        """Watch the pods of others on all workers; see :meth:`Listener.others`."""
        await _all([partial(each.others, namespace) for each in self._workers.values()], synced)

    async def nodes(self, product_label: str, prices: Prices, synced: asyncio.Event) -> None:
        """Watch the nodes of all workers; see :meth:`Listener.nodes`."""
        await _all([partial(each.nodes, product_label, prices) for each in self._workers.values()], synced)

    async def slices(self, synced: asyncio.Event) -> None:
        """Watch the GPUs that all workers' nodes publish for claims; see :meth:`Listener.slices`."""
        await _all([each.slices for each in self._workers.values()], synced)

    async def queues(self) -> None:
        """Watch the hub's queues, Workloads and connections to workers until cancelled."""
        followed = together(self._placement.collections, {WORKLOADS: self._workload, CLUSTERS: self._reach})
        await asyncio.gather(*(follow_when_there(self._client, path, take) for path, take in followed.items()))

    def _workload(self, event: WatchEvent[Any]) -> None:
        now = self._clock()
        self._dispatching.workload(event, now, self._hub.heard_since(now))

    def _reach(self, event: WatchEvent[Any]) -> None:
        if found := self._dispatching.reach(event):
            name, active = found
            self._happened(f"the hub {'reaches' if active else 'does not reach'} {name}", Sort.OTHER)


async def _all(watches: Sequence[Callable[[asyncio.Event], Coroutine[Any, Any, None]]], synced: asyncio.Event) -> None:
    """Watch several things until cancelled; an error of one ends all."""
    events = [asyncio.Event() for _ in watches]

    async def settle() -> None:
        for event in events:
            await event.wait()
        synced.set()

    watching = [watch(event) for watch, event in zip(watches, events, strict=True)]
    tasks = [asyncio.create_task(each) for each in (*watching, settle())]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
