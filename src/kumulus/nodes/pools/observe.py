"""Look at a pool's nodes and keep only what is not as wanted, so that memory does not grow with the pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from kumulus.kube import ApiError, Unreachable, objects
from kumulus.kube.bulk import for_all
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.objects import NODES
from kumulus.model.active_faults import gone_nodes
from kumulus.model.applied import APPLIED
from kumulus.model.node_changes import FieldChange
from kumulus.model.pools import POOL_LABEL, Pool
from kumulus.nodes.pools.compare import field_differences
from kumulus.nodes.pools.live import LiveNode, live_node, of_pool, selected
from kumulus.nodes.pools.others import is_anothers
from kumulus.nodes.pools.slices import NotServed, SliceObservation, observe_slices

if TYPE_CHECKING:
    from kumulus.kube import Client

T = TypeVar("T")
Asking = Callable[["Client"], Coroutine[Any, Any, T]]

# Up to this many missing names are looked up one by one.
_A_FEW = 4
# Up to this many are looked for on a first page of this length with the names of nodes; if not all names fit on it, the
# missing ones are looked up one by one as well. For more, all names are listed.
_ASK_SINGLY, _FIRST_PAGE = 50, 500
# A stack's pools are observed at the same moment, and share one list. With a list each, the last ones would wait for a
# busy server, and their lists would grow by the nodes that other pools have created in the meantime.
_listings: WeakKeyDictionary[Client, asyncio.Task[list[str]]] = WeakKeyDictionary()
_first_pages: WeakKeyDictionary[Client, asyncio.Task[list[str] | None]] = WeakKeyDictionary()

# Between two looks that must find the same.
_STILL_S = 0.25


@dataclass(frozen=True)
class Patience:
    """How long to look after a failure, in seconds."""

    whole: float
    """For one complete read, long enough for a busy machine."""
    still: float
    """After the first read, until nothing changes any more."""


STOPPED = Patience(5.0, 1.0)
"""When the user has pressed Ctrl-C and waits."""
SILENT = Patience(1.0, 1.0)
"""When the server did not answer an earlier request."""
CALM = Patience(45.0, 8.0)
"""Otherwise."""


@dataclass
class PoolObservation:
    """A pool's nodes compared with what is wanted."""

    missing: list[int] = field(default_factory=list)
    """Ordinals whose node does not exist."""
    altered: dict[int, tuple[LiveNode, list[FieldChange]]] = field(default_factory=dict)
    """Nodes with owned fields that differ, by ordinal, each with its live state and the differences."""
    extra: list[str] = field(default_factory=list)
    """Nodes that carry the pool's label under a name the pool does not have."""
    foreign: list[str] = field(default_factory=list)
    """Wanted names that real nodes carry, which are never touched."""
    others: list[str] = field(default_factory=list)
    """Wanted names of emulated nodes that belong to another stack or to nobody, and are never touched either."""
    matching: int = 0
    """How many nodes are exactly as wanted."""
    uids: dict[int, str] = field(default_factory=dict)
    """The UIDs of its nodes by ordinal, if the pool publishes devices."""
    slices: SliceObservation = field(default_factory=SliceObservation)
    """What is not as wanted about the ResourceSlices of such a pool."""

    @property
    def present(self) -> int:
        """How many of the wanted names exist."""
        return self.matching + len(self.altered)

    def same_nodes(self, other: PoolObservation) -> bool:
        """Whether another look found the same nodes missing, altered and surplus."""
        return (
            self.missing == other.missing
            and self.altered.keys() == other.altered.keys()
            and set(self.extra) == set(other.extra)
            and self.slices.count == other.slices.count
        )

    @property
    def exact(self) -> bool:
        """Whether nothing is left to do."""
        return not (self.missing or self.altered or self.extra or self.foreign or self.others or self.slices)


async def observe(
    client: Client,
    pool: Pool,
    patience: float | None = None,
    before: int = 0,
    recorded: str | None = None,
    *,
    autoscaled: bool = False,
) -> PoolObservation:
    """List the pool's nodes, page by page, and compare each with what is wanted.

    A wanted node that lost the pool's label (altered by hand) is found by its name.

    Args:
        before: how many nodes the pool had; those beyond its replicas are found by their names too.
        recorded: the identity under which the stack had the pool so far, if that is a different one.
        autoscaled: whether the pool's nodes are those that its autoscaler had left when it was asked for, just before:
            nodes that it has made since are not surplus.

    Raises:
        NotServed: the pool publishes devices, and the cluster has no such kind.
    """
    found = PoolObservation()
    names = enumerate(pool.node_names())
    wanted = {name: ordinal for ordinal, name in names if ordinal not in pool.absent}
    gone = _gone(pool)
    unseen = {name: wanted[name] for name in wanted if name not in gone}
    found.matching = len(gone)

    def look(node: LiveNode) -> None:
        ordinal = wanted[node.name]
        unseen.pop(node.name, None)
        if node.real:
            found.foreign.append(node.name)
            return
        if is_anothers(pool, node, recorded):
            found.others.append(node.name)
            return
        if pool.devices is not None:
            found.uids[ordinal] = node.uid
        if different := field_differences(pool, ordinal, node):
            found.altered[ordinal] = (node, different)
        else:
            found.matching += 1

    async for node in selected(client, of_pool(pool.name), patience):
        if node.name in unseen:
            look(node)
        elif node.name in gone or node.real or is_anothers(pool, node, recorded):
            continue
        elif not (autoscaled and _may_be_new(pool, node)):
            found.extra.append(node.name)

    for name in await _existing(client, list(unseen)):
        unlabelled = await get_node(client, name)
        if unlabelled is not None:
            look(unlabelled)
    found.missing = sorted(unseen.values())
    found.extra += await _orphaned(client, pool, before, {*found.extra, *wanted})
    found.slices = await observe_slices(client, pool, found.uids, patience)
    return found


async def observe_until_still(
    client: Client, pool: Pool, patience: Patience, recorded: str | None = None
) -> PoolObservation | None:
    """What exists of a pool after an unfinished run, which is what gets recorded; None when it cannot be read.

    A request may still be carried out after its client has stopped waiting, and one that was answered with an error may
    have been carried out (etcd performs the write that crosses its quota). So this reads until nothing changes.
    """
    seen = await _within(client, pool, patience.whole, recorded)
    with suppress(TimeoutError):
        async with asyncio.timeout(patience.still):
            while seen is not None:
                await asyncio.sleep(_STILL_S)
                before = seen
                seen = await _within(client, pool, patience.whole, recorded) or before
                if seen.same_nodes(before):
                    break
    return seen


async def _within(client: Client, pool: Pool, seconds: float, recorded: str | None) -> PoolObservation | None:
    """What exists of a pool; None if that cannot be read in time."""
    with suppress(ApiError, Unreachable, NotServed, TimeoutError):
        async with asyncio.timeout(seconds):
            return await observe(client, pool, patience=seconds, recorded=recorded)
    return None


async def _orphaned(client: Client, pool: Pool, before: int, seen: set[str]) -> list[str]:
    """Surplus nodes of a pool that have lost its label; our record on them shows that Kumulus made them.

    A node with another pool's label belongs to that pool: nodes by name may change their group.

    Args:
        before: how many nodes the pool had.
        seen: names that are not looked up again.
    """
    names = [pool.node_name(ordinal) for ordinal in range(pool.replicas, before)]
    nodes = [await get_node(client, name) for name in await _existing(client, [n for n in names if n not in seen])]
    lost = [node for node in nodes if node is not None and POOL_LABEL not in node.labels]
    ours = [node for node in lost if APPLIED in node.annotations and not node.real]
    return [node.name for node in ours if not is_anothers(pool, node)]


def _may_be_new(pool: Pool, node: LiveNode) -> bool:
    """Whether the autoscaler may have made a node that is not among those that it had left."""
    return pool.bounds is not None and pool.count < pool.bounds.most and pool.ordinal_of(node.name) is not None


def _gone(pool: Pool) -> set[str]:
    """Nodes that a fault has removed: they are as wanted while they do not exist."""
    return {pool.node_name(n) for n in gone_nodes(pool) - pool.absent}


async def get_node(client: Client, name: str) -> LiveNode | None:
    """One node; None when it does not exist."""
    found = await objects.find(client, f"{NODES}/{name}")
    return live_node(found) if found is not None else None


async def _existing(client: Client, names: list[str]) -> list[str]:
    """Those of the names that nodes carry, which do not have the pool's label."""
    listed = None
    if len(names) > _ASK_SINGLY:
        listed = await _shared(_listings, client, lambda client: objects.names(client, NODES))
    elif len(names) > _A_FEW:
        listed = await _shared(_first_pages, client, _first_page)
    if listed is not None:
        among = set(names)
        return [name for name in listed if name in among]
    there: list[str] = []

    async def ask(name: str) -> None:
        if await get_node(client, name) is not None:
            there.append(name)

    await for_all(names, ask, workers=16, most_failures=1)
    return sorted(there)


async def _first_page(client: Client) -> list[str] | None:
    """The names of all nodes; None if they do not fit on one page."""
    found = await client.get(NODES, {"limit": str(_FIRST_PAGE)}, accept=METADATA_ONLY)
    if (found.get("metadata") or {}).get("continue"):
        return None
    return [item["metadata"]["name"] for item in found.get("items") or ()]


async def _shared(under_way: WeakKeyDictionary[Client, asyncio.Task[T]], client: Client, ask: Asking[T]) -> T:
    """The answer to a request that this call makes, or that another call made just before it."""
    asked = under_way.get(client)
    if asked is None or asked.done():
        asked = under_way[client] = asyncio.ensure_future(ask(client))
    # A pool that is cancelled while it waits does not cancel the request for the others.
    return await asyncio.shield(asked)
