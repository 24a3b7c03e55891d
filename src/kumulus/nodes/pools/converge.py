"""Make a pool's nodes as wanted: create missing nodes, patch those that differ, remove surplus ones.

Everything is computed by name from what exists, so a run that was killed half way is finished by the next one and
nothing is done twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kumulus.kube import ApiError, Unreachable
from kumulus.kube.bulk import for_each
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES
from kumulus.model.pools import Pool
from kumulus.model.slices import parts_of
from kumulus.nodes.pools.observe import PoolObservation
from kumulus.nodes.pools.removal import remove_nodes
from kumulus.nodes.pools.result import ConvergeResult, ProgressMeter
from kumulus.nodes.pools.single import Bodies, NameTaken, change_node, create_node
from kumulus.nodes.pools.slices import NotServed, converge_slices, publish
from kumulus.nodes.pools.through_storage import FEWEST, NotThroughStorage, Storage, Writer, prepared_writer
from kumulus.nodes.reporter import Reporter

if TYPE_CHECKING:
    from kumulus.kube import Client


async def require_declared(client: Client, pool: Pool) -> None:
    """Check, before a pool is recorded, that the API server keeps the features that nodes declare; raises NotServed."""
    if not pool.declared_features:
        return
    features = list(pool.declared_features)
    body = {"metadata": {"generateName": "kumulus-"}, "status": {"declaredFeatures": features}}
    # A webhook may not take part in a dry run.
    with tolerating(400):
        made = await client.request("POST", NODES, params={"dryRun": "All"}, body=body)
        if made["status"].get("declaredFeatures") != features:
            raise NotServed(
                "the cluster's API server drops declaredFeatures of nodes: switch the feature gate "
                "NodeDeclaredFeatures on, as it is from Kubernetes 1.36 on, or leave declaredFeatures out"
            )


async def converge(
    client: Client,
    pool: Pool,
    seen: PoolObservation,
    stop: asyncio.Event,
    report: Reporter,
    find_storage: Callable[[], Awaitable[Storage | None]] | None = None,
) -> ConvergeResult:
    """Apply the difference between a pool and what was observed of it.

    Args:
        seen: what exists of the pool.
        stop: when set, nothing new is begun.
        report: receives transient status lines, and the reason why nodes are posted if they could have been written.
        find_storage: returns the API server's storage, to write new nodes to, and raises what :data:`StorageOf` raises;
            without one, nodes are posted.
    """
    work = _Work(client, pool, seen, stop, ConvergeResult(), report, find_storage)
    result = work.result
    for name in seen.foreign:
        result.problems.append(f"a real node already carries the name {name}; rename the node group or its zone")
    for name in seen.others:
        result.problems.append(
            f"node {name} is not this stack's; nothing was done to it: rename the node group or its zone"
        )
    created = await work.create()
    changed = await work.change()
    removed = await remove_nodes(client, seen.extra, stop, report)
    result.removed, result.pods = removed.removed, removed.pods
    result.problems += removed.problems
    result.undone += removed.undone
    await work.publish()
    # Only another look shows what became of slices.
    slices_unknown = pool.devices is not None
    result.certain = result.certain and removed.certain and not slices_unknown
    result.left = PoolObservation(
        missing=[ordinal for ordinal in seen.missing if ordinal not in created],
        altered={ordinal: found for ordinal, found in seen.altered.items() if ordinal not in changed},
        extra=removed.left.extra,
        foreign=seen.foreign,
        others=seen.others,
        slices=seen.slices,
        matching=seen.matching + result.created + result.changed,
    )
    return result


@dataclass(frozen=True)
class _Work:
    """What to do to a pool, and the result so far."""

    client: Client
    pool: Pool
    seen: PoolObservation
    stop: asyncio.Event
    result: ConvergeResult
    report: Reporter
    find_storage: Callable[[], Awaitable[Storage | None]] | None

    async def create(self) -> set[int]:
        """Create the missing nodes, each with its slice; returns the ordinals of the nodes that exist now."""
        bodies = Bodies(self.pool)
        made: set[int] = set()
        # Until it is known what leases look like, nodes are posted.
        writing: Writer | None = None

        async def create(ordinal: int) -> None:
            uid = await writing.create(ordinal) if writing else ""
            if not uid:
                uid = await create_node(self.client, self.pool, ordinal, bodies.of(ordinal))
            # Publishing its slice may take long, or fail: the node exists, and counts.
            made.add(ordinal)
            for part in parts_of(self.pool, (ordinal,)):
                await publish(self.client, self.pool, part, uid)

        async def post(ordinal: int) -> str:
            await create(ordinal)
            return self.pool.node_name(ordinal)

        if writer := await self._writer(bodies):
            try:
                writer.leases = await writer.storage.leases(self.client, partial(post, writer.usual_ordinal))
            except (ApiError, Unreachable, NameTaken, NotServed):
                # Node and slices are tried again below, where errors are reported.
                made.discard(writer.usual_ordinal)
            writing = writer
        left = [ordinal for ordinal in self.seen.missing if ordinal not in made]
        there, total, meter = self.seen.present + len(made), self.pool.replicas, ProgressMeter(self.report)
        await self._each(left, create, lambda done: meter.show("nodes", done + there, total, done))
        self.result.created = len(made)
        return made

    async def _writer(self, bodies: Bodies) -> Writer | None:
        """What writes the missing nodes; None if they are to be posted."""
        if self.find_storage is None or len(self.seen.missing) < FEWEST or self.stop.is_set():
            return None
        try:
            if storage := await self.find_storage():
                return await prepared_writer(self.client, storage, self.pool, self.seen.missing, bodies)
        except NotThroughStorage as reason:
            self.report.info(f"nodes are posted, not written to the API server's storage: {reason}")
        return None

    async def change(self) -> set[int]:
        """Patch the nodes that differ; returns the ordinals done."""
        altered, meter = self.seen.altered, ProgressMeter(self.report)

        async def change(ordinal: int) -> None:
            await change_node(self.client, self.pool, ordinal, altered[ordinal][0])

        done = await self._each(altered, change, lambda done: meter.show("nodes changed", done, len(altered), done))
        self.result.changed = len(done)
        return done

    async def publish(self) -> None:
        """Publish, correct and remove the slices of nodes that existed already."""
        pool, slices = self.pool, self.seen.slices
        if not slices:
            return
        total, meter = len(slices.missing) + len(slices.altered), ProgressMeter(self.report)

        def show(done: int) -> None:
            meter.show("resource slices", done, total, done)

        for outcome in await converge_slices(self.client, pool, slices, self.seen.uids, self.stop, show):
            self.result.add_slices(outcome)

    async def _each(
        self, ordinals: Iterable[int], work: Callable[[int], Awaitable[None]], progress: Callable[[int], None]
    ) -> set[int]:
        """Do something for each of some nodes; returns the ordinals for which it is done."""
        client = self.client
        outcome = await for_each(
            ordinals, work, workers=client.connections, stop=self.stop, lanes=client.lanes, progress=progress
        )
        self.result.add(outcome)
        return set(outcome.done)
