"""Watch pods and nodes, and keep the records up to date with what they report."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.clock import Clock, Hearing
from kumulus.extras.lab.measure.placement import PlacementRecorder
from kumulus.extras.lab.measure.records import GROUPS_VERSION, ExperimentRecords
from kumulus.extras.lab.measure.views import (
    FINAL,
    ClaimView,
    NodeView,
    PodView,
    claim_view,
    in_cluster,
    node_view,
    pod_view,
)
from kumulus.extras.lab.plan.gpu_claims import GpuDemand
from kumulus.extras.lab.plan.pods import WORKLOAD_LABEL
from kumulus.extras.watch.live.amounts import NOTHING
from kumulus.extras.watch.live.devices import LiveDevices, PublishedSlice, published_from
from kumulus.extras.watch.live.fleet import SLICES, follow_when_there
from kumulus.kube.errors import tolerating
from kumulus.kube.messages import MessageCodec
from kumulus.kube.objects import NODES, identity
from kumulus.kube.pods import BOUND, PODS
from kumulus.kube.watch import Events, News, Resumed, Synced, WatchEvent, WatchInterrupted, follow
from kumulus.model.fault_effects import OfferEffects
from kumulus.model.pools import INSTANCE_TYPE_LABEL
from kumulus.model.slices import RESOURCE_API
from kumulus.nodes.catalog.prices import Prices, is_spot

if TYPE_CHECKING:
    from kumulus.kube import Client

OnPod = Callable[[PodView, bool], None]
OnClaim = Callable[[str, ClaimView | None], None]
Take = Callable[[WatchEvent[Any], float, float], None]
"""Takes an event, with the time at which it was heard, and since when it may have happened."""
_ABSENT = (403, 404)


class Listener:
    """Watches the pods of a namespace, and the nodes.

    Args:
        records: updated with the pods, and their allocation with the nodes.
        clock: seconds since the experiment's start; it knows when the client stood still.
        on_pod: called with each pod of the experiment that was seen, and whether it has ended or is gone.
        known: what each claim template asks for, by name.
        cluster: the cluster's name among several that are measured together; empty if there is only one.

    Attributes:
        interruptions: how often one of the watches was interrupted.
    """

    def __init__(
        self,
        client: Client,
        records: ExperimentRecords,
        clock: Clock,
        placement: PlacementRecorder | None = None,
        on_pod: OnPod | None = None,
        known: Mapping[str, GpuDemand] = MappingProxyType({}),
        cluster: str = "",
    ) -> None:
        self._known = known
        self._cluster = cluster
        self._placement = placement
        self._client = client
        self._records = records
        self._clock = clock
        self._on_pod = on_pod
        self._uids: dict[str, str] = {}
        self.interruptions = 0
        self._silent: dict[str, tuple[float, str]] = {}
        self._hearing: dict[str, Hearing] = {}
        self._priced = PricedNodes(records.allocation, cluster)

    def begin(self) -> None:
        """Count from now on, where the clock starts anew."""
        self.interruptions = 0
        for each in self._hearing.values():
            each.begin()

    def silence(self) -> tuple[float, str]:
        """For how many seconds a watch has been interrupted, and why; 0 while none is."""
        if not self._silent:
            return 0.0, ""
        since, why = min(self._silent.values())
        return self._clock() - since, why

    def heard_since(self, now: float) -> float:
        """Since when that may have happened which the server is heard to say now, also by other watches."""
        return min((each.since(now) for each in self._hearing.values()), default=now)

    async def ask(self) -> None:
        """Ask the server something that it has to read from its storage."""
        await identity(self._client)

    def reprice(self, offers: Sequence[OfferEffects]) -> None:
        """Apply these faults to the prices of nodes from now on."""
        self._priced.reprice(offers)

    async def pods(self, namespace: str, synced: asyncio.Event) -> None:
        """Watch a namespace's pods until cancelled; without one, the pods of workloads in all namespaces."""
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else PODS
        where = None if namespace else {"labelSelector": WORKLOAD_LABEL}
        await self._listen(follow(self._client, path, where, codec=MessageCodec("Pod")), self._pod, synced)

    async def others(self, namespace: str, synced: asyncio.Event) -> None:
        """Watch the pods of others that have a node, where they take up room until they go, until cancelled.

        Args:
            namespace: the experiment's, whose pods are those of :meth:`pods`; without one, all workloads' pods are.
        """
        where = {"fieldSelector": BOUND, "labelSelector": f"!{WORKLOAD_LABEL}"}
        if namespace:
            where = {"fieldSelector": f"{BOUND},metadata.namespace!={namespace}"}
        await self._listen(follow(self._client, PODS, where, codec=MessageCodec("Pod")), self._other, synced)

    async def nodes(self, product_label: str, prices: Prices, synced: asyncio.Event) -> None:
        """Watch the nodes until cancelled; raises the same errors as :meth:`pods`."""
        taints: dict[str, tuple[tuple[str, str], ...]] = {}

        def take(event: WatchEvent[Any], now: float, _: float) -> None:
            found = None if event.kind == "DELETED" else _taints(event.item)
            if found != taints.get(event.key):
                # The node came, went, or has other taints than before; its heartbeats are no change.
                self._records.nodes_changed = now
            if found is None:
                taints.pop(event.key, None)
            else:
                taints[event.key] = found
            name = in_cluster(self._cluster, event.key)
            if event.kind == "DELETED":
                self._priced.remove(name)
            elif event.item is not None:
                self._priced.put(name, event.item, product_label, prices)
                self._records.faulted.node(name, event.item.spec.unschedulable, now)
            if self._placement is not None:
                self._placement.node(name, None if event.kind == "DELETED" else event.item)

        await self._listen(follow(self._client, NODES, codec=MessageCodec("Node")), take, synced)

    async def slices(self, synced: asyncio.Event) -> None:
        """Watch the GPUs that nodes publish for claims until cancelled; does nothing if there are no such objects."""

        def publish(event: WatchEvent[Any], *_: float) -> None:
            gone = event.kind == "DELETED" or event.item is None
            self._priced.publish(event.key, None if gone else published_from(event.item))

        await self._listen_if_there(follow(self._client, SLICES, codec=MessageCodec("ResourceSlice")), publish, synced)

    async def claims(self, namespace: str, take: OnClaim, synced: asyncio.Event) -> None:
        """Watch the claims of a namespace until cancelled; raises the same errors as :meth:`pods`.

        Args:
            take: called with each claim's name and what it has got, None once it is gone.
            synced: set when the existing claims are known.
        """

        def claim(event: WatchEvent[Any], *_: float) -> None:
            gone = event.kind == "DELETED" or event.item is None
            take(event.key, None if gone else claim_view(event.item))

        path = f"/apis/{RESOURCE_API}/namespaces/{namespace}/resourceclaims"
        await self._listen(follow(self._client, path, codec=MessageCodec("ResourceClaim")), claim, synced)

    async def groups(self, namespace: str, synced: asyncio.Event) -> None:
        """Watch Kubernetes' own PodGroups until cancelled; does nothing if there are no such objects.

        Args:
            namespace: which one; empty for all.
            synced: set when the existing groups are known, or when there are none.
        """

        def group(event: WatchEvent[Any], now: float, since: float) -> None:
            if event.item is not None and event.kind != "DELETED":
                self._records.groups.put(event.key, event.item, now, since)

        where = f"/namespaces/{namespace}" if namespace else ""
        path = f"/apis/{GROUPS_VERSION}{where}/podgroups"
        await self._listen_if_there(follow(self._client, path), group, synced)

    async def queues(self) -> None:
        """Watch the queues and quotas that there are until cancelled."""
        collections = self._placement.collections if self._placement is not None else {}
        await asyncio.gather(*(follow_when_there(self._client, path, take) for path, take in collections.items()))

    async def _listen_if_there(self, news: AsyncGenerator[News[Any], None], take: Take, synced: asyncio.Event) -> None:
        with tolerating(*_ABSENT):
            await self._listen(news, take, synced)
        synced.set()
        await asyncio.Event().wait()

    async def _listen(self, news: AsyncGenerator[News[Any], None], take: Take, synced: asyncio.Event) -> None:
        hearing = self._hearing[take.__name__] = Hearing(self._clock)
        async with aclosing(news):
            async for each in news:
                if isinstance(each, Events):
                    # Events that arrived together get one time: when the client received them.
                    now = self._clock()
                    since = hearing.since(now, each.listed)
                    for event in each.events:
                        take(event, now, since)
                elif isinstance(each, Synced):
                    hearing.synced()
                    synced.set()
                elif isinstance(each, WatchInterrupted):
                    self.interruptions += 1
                    hearing.interrupted()
                    self._silent[take.__name__] = (self._clock(), str(each.error))
                elif isinstance(each, Resumed):
                    hearing.resumed()
                    self._silent.pop(take.__name__, None)

    def _pod(self, event: WatchEvent[Any], now: float, since: float) -> None:
        if event.item is not None:
            pod = pod_view(event.item, self._known)
            pod = pod._replace(node=in_cluster(self._cluster, pod.node), cluster=self._cluster)
            if (before := self._uids.get(event.key, pod.uid)) != pod.uid:
                # While nothing was heard, it was deleted, and another one was created under its name.
                self._gone(before, now, since)
            self._uids[event.key] = pod.uid
            self._records.put(pod, now, since)
            if self._on_pod is not None:
                self._on_pod(pod, pod.phase in FINAL)
        if event.kind == "DELETED":
            self._gone(self._uids.pop(event.key, ""), now, since)
        if self._placement is not None:
            self._placement.pod(event.key, event.item, event.kind == "DELETED", self._cluster)

    def _other(self, event: WatchEvent[Any], now: float, since: float) -> None:
        gone = event.kind == "DELETED" or event.item is None
        pod = None if gone else pod_view(event.item, self._known)
        if (before := self._uids.pop(event.key, "")) and (pod is None or before != pod.uid):
            self._records.gone(before, now, since)
        if pod is not None:
            self._uids[event.key] = pod.uid
            self._records.stranger(pod._replace(node=in_cluster(self._cluster, pod.node)))
        if self._placement is not None:
            self._placement.pod(event.key, event.item, gone, self._cluster)

    def _gone(self, uid: str, now: float, since: float) -> None:
        self._records.gone(uid, now, since)
        if self._on_pod is not None:
            self._on_pod(PodView(uid, "", "", "", "Deleted", "", "", NOTHING), True)


def _taints(message: Any) -> tuple[tuple[str, str], ...] | None:
    return None if message is None else tuple(sorted((each.key, each.effect) for each in message.spec.taints))


async def occupy(client: Client, records: ExperimentRecords, cluster: str = "") -> None:
    """Account for pods of workloads that exist before the experiment, as `setup` may have made: they are not its own.

    All other pods are those of :meth:`Listener.others`.
    """
    where = {"fieldSelector": BOUND, "labelSelector": WORKLOAD_LABEL}
    async for page in client.listed(PODS, MessageCodec("Pod"), where):
        for each in page:
            pod = pod_view(each)
            records.stranger(pod._replace(node=in_cluster(cluster, pod.node)))


class PricedNodes:
    """Puts nodes into an allocation, at their current prices."""

    def __init__(self, allocation: Allocation, cluster: str = "") -> None:
        self._allocation = allocation
        self._cluster = cluster
        self._offers: Sequence[OfferEffects] = ()
        self._nodes: dict[str, tuple[NodeView, tuple[str, str, str]]] = {}
        self._devices = LiveDevices()

    def put(self, key: str, message: Any, product_label: str, prices: Prices) -> None:
        """Add or update a node.

        Args:
            key: its name, see :func:`in_cluster`.
            message: ``Node`` of :mod:`kumulus.kube.messages`.
            prices: what machines cost unless a fault changes that.
        """
        labels = message.metadata.labels
        view = node_view(message, product_label, prices)._replace(name=key, cluster=self._cluster)
        how = "spot" if is_spot(labels) else "on-demand"
        self._nodes[key] = view, (labels.get(INSTANCE_TYPE_LABEL, ""), view.zone, how)
        self._allocation.put_node(self._at_price_of_now(key))

    def remove(self, key: str) -> None:
        """Remove a node."""
        self._nodes.pop(key, None)
        self._allocation.remove_node(key)

    def reprice(self, offers: Sequence[OfferEffects]) -> None:
        """Apply these faults to the prices of nodes from now on."""
        self._offers = offers
        for key in self._nodes:
            self._allocation.put_node(self._at_price_of_now(key))

    def publish(self, key: str, slices: PublishedSlice | None) -> None:
        """Set a ResourceSlice, None if it is gone; its node has the GPUs in it, which claims can have."""
        found = slices and replace(slices, node=in_cluster(self._cluster, slices.node))
        for node in self._devices.set_slice(key, found):
            if node in self._nodes:
                self._allocation.put_node(self._at_price_of_now(node))

    def _at_price_of_now(self, key: str) -> NodeView:
        view, offering = self._nodes[key]
        # GPUs that a node offers both ways are the same ones.
        view = view._replace(has=view.has._replace(gpus=max(view.has.gpus, self._devices.published(key))))
        if view.hourly is None:
            return view
        factors = [each.price_factor for each in self._offers if each.selects(*offering)]
        return view._replace(hourly=math.prod(factors, start=view.hourly)) if factors else view
