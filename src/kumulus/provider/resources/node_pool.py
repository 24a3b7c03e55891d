"""``kumulus:index:NodePool``: the nodes of one node group in one availability zone, as a single resource."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from kumulus.model.consequences import Hourly, consequences
from kumulus.model.pool_form import POOL_KEYS
from kumulus.model.pools import Pool
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.faults import operations, records
from kumulus.nodes.faults.new_pods import wait_until_managed
from kumulus.nodes.pools import record, scaled
from kumulus.nodes.pools.converge import converge, require_declared
from kumulus.nodes.pools.live import of_pool, selected
from kumulus.nodes.pools.observe import observe
from kumulus.nodes.pools.others import PoolTaken, is_anothers, refuse_real, refuse_taken
from kumulus.nodes.pools.reading import ReadLimit, may_lack
from kumulus.nodes.pools.removal import remove_nodes
from kumulus.nodes.pools.result import describe_drift, explain, summary_of
from kumulus.nodes.pools.slices import NotServed, require_served, withdraw_all
from kumulus.nodes.pools.through_storage import StorageOf
from kumulus.provider.connections import SILENT, UNASKED, Connections
from kumulus.provider.properties import OBJECT, Property
from kumulus.provider.resources import adoption
from kumulus.provider.resources.base import CheckResult, Operation, Properties, ReadResult, limited, why_ended
from kumulus.provider.resources.diffing import PropertyDifference
from kumulus.provider.resources.in_cluster import (
    DRIFT,
    LOOK_PATIENCE,
    WORK_PATIENCE,
    ClearWay,
    InClusterResource,
    outlives_stack,
    recorded_owner,
    with_remedy,
)
from kumulus.provider.resources.pool_properties import (
    INPUTS,
    Attempt,
    WantedPool,
    as_recorded,
    checked_pool_inputs,
    left_behind,
    outcome,
    outputs_of,
    owned_pool,
    recorded_count,
    replicas_before,
)
from kumulus.provider.resources.previews import report_update
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    import asyncio

    from kumulus.kube import Client
    from kumulus.nodes.pools.observe import PoolObservation
    from kumulus.nodes.pools.result import ConvergeResult

# Seconds for a look that every preview and update takes, whether or not the cluster answers.
_GLANCE = 0.5


class NodePool(InClusterResource):
    """The emulated nodes of one node group in one availability zone, as one resource."""

    token: ClassVar[str] = "kumulus:index:NodePool"
    inputs: ClassVar = INPUTS
    outputs: ClassVar = (Property("drift", OBJECT, DRIFT.description),)
    silent: ClassVar = (*SILENT, NotServed)

    def __init__(
        self,
        connections: Connections,
        clear_way: ClearWay = nullcontext,
        storage_of: StorageOf | None = None,
        relieve: record.Relieve = record.no_relief,
        hourly: Hourly = lambda _: None,
    ) -> None:
        """Serve it.

        Args:
            storage_of: gives the storage of a kubeconfig's cluster, if new nodes can be written to it directly.
            relieve: makes room in the cluster's etcd when it is full.
        """
        super().__init__(connections, clear_way)
        self._storage_of = storage_of
        self._relieve = relieve
        self._hourly = hourly
        self._reading = ReadLimit()
        # What a look without a refresh has found, by the pool's place, for the preview to say.
        self._lost: dict[tuple[object, ...], Mapping[str, object]] = {}
        self._damages = record.Damages()

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        return checked_pool_inputs(inputs, self.input_failures(inputs))

    def title(self, properties: Properties) -> str:
        return f"pool {properties.get('name')}"

    def failed(self, properties: Properties, error: Exception) -> ProviderError:
        return with_remedy(ProviderError(f"{self.title(properties)}: {explain(error)}"), properties)

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        if not contains_unknown(inputs):
            wanted = WantedPool(owned_pool(inputs), inputs)
            await self._preview(op, wanted, old)
            with suppress(*UNASKED):
                await self._refuse_real(wanted, LOOK_PATIENCE)
        elif old is None and not contains_unknown({key: inputs.get(key) for key in POOL_KEYS}):
            op.report.info(consequences(None, owned_pool(inputs), hourly=self._hourly).describe())
        return inputs

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> ReadResult | None:
        """See :meth:`Resource.read`; an import knows only an id."""
        if not inputs.get("kubeconfig"):
            inputs = await adoption.pool_inputs(self._connections, resource_id, op.program)
            resource_id = self.id_of(inputs)
        return await super().read(op, resource_id, outputs, inputs)

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties | None:
        return await self._looked(outputs, inputs, op)

    async def compare(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        """See :meth:`Resource.compare`: nodes that are lost are a difference, without a refresh too."""
        found = self.diff(old_outputs, inputs)
        if found or contains_unknown(inputs):
            return found
        with suppress(*UNASKED, ProviderError):
            client = await self.client(inputs, _GLANCE)
            if await may_lack(client, str(inputs["name"]), _GLANCE):
                seen = await self._looked(old_outputs, inputs)
                lost = {"missing": "all nodes"} if seen is None else _drift(seen)
                self._lost[self._whereabouts(inputs)] = lost
                return [PropertyDifference("replicas", "update")] if "missing" in lost else []
        return []

    async def _looked(self, outputs: Properties, inputs: Properties, op: Operation | None = None) -> Properties | None:
        """The outputs as they are; None when the pool does not exist."""
        pool = owned_pool(inputs)
        client = await self.client(inputs, LOOK_PATIENCE)
        # An import knows no outputs.
        recorded_as = recorded_owner(outputs or None)
        faulted, on_record, damaged = await record.look(client, pool, LOOK_PATIENCE)
        if op is not None:
            self._damages.warn(op.report, inputs["clusterIdentity"], damaged)
        left = await scaled.as_left(client, faulted, LOOK_PATIENCE, recorded_as)
        seen = await observe(client, left, patience=LOOK_PATIENCE, recorded=recorded_as, autoscaled=True)
        # A pool that an autoscaler scales may have no nodes; its record says whether it exists.
        is_there = on_record if pool.bounds else pool.replicas == 0
        if not (is_there or seen.present or seen.extra):
            return None
        found = describe_drift(pool, seen) | ({} if on_record else {"record": "not as wanted"})
        return outputs_of(as_recorded(inputs, outputs), recorded_count(pool, seen.present), found)

    async def remove(self, op: Operation, outputs: Properties) -> None:
        # An update that was cut off may have marked only some nodes with the stack's identity, which the inputs have.
        recorded_as = recorded_owner(outputs)
        outputs = {**outputs, "stackId": op.old_inputs.get("stackId") or recorded_as}
        pool = owned_pool(outputs)
        try:
            async with limited(op) as stop:
                client = await self.client(outputs, WORK_PATIENCE)
                labelled = await _labelled(client, pool, recorded_as)
                with self.cleared_way(outputs, len(labelled)):
                    result = await remove_nodes(client, labelled, stop, op.report)
                if result.complete:
                    orphaned = await _orphaned(client, pool, replicas_before(op, outputs), recorded_as)
                    result = await remove_nodes(client, orphaned, stop, op.report)
                if result.complete and pool.devices:
                    result.add_slices(await withdraw_all(client, pool.name, stop))
        except TimeoutError:
            raise ProviderError(f"pool {pool.name}: {why_ended(op)}; the next run goes on") from None
        if not result.complete:
            raise ProviderError(f"pool {pool.name}: {outcome(result, op)}")
        # Its record has the one or the other.
        for identity in {recorded_as, recorded_owner(outputs)}:
            await records.forget_pool(client, pool.name, self.owner(op, {"stackId": identity}))

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InClusterResource.make`; if only part of the work succeeds, that part is recorded."""
        pool, recorded_as = owned_pool(inputs), recorded_owner(old)
        wanted = WantedPool(pool, inputs)
        client = await self._reached(op, wanted)
        attempt = Attempt(op, client, resource_id, wanted, old)

        async def look(asked: Pool) -> tuple[Pool, PoolObservation]:
            """The pool with the nodes that an autoscaler has left of it, and what exists of that."""
            left = await scaled.as_left(client, asked, WORK_PATIENCE, recorded_as, new=not old)
            before = replicas_before(op, old or {})
            return left, await observe(client, left, before=before, recorded=recorded_as, autoscaled=True)

        try:
            async with limited(op) as stop:
                await refuse_taken(client, pool, WORK_PATIENCE, recorded_as)
                await require_declared(client, pool)
                if pool.devices is not None:
                    await require_served(client)
                pool = await self._recorded(op, client, wanted, partial(look, pool), stop)
                # Observing a new pool takes only milliseconds.
                async with self._reading.admitted() if old else nullcontext():
                    pool, seen = await look(pool)
                result = await self._converged(op, client, stop, wanted, pool, seen)
                if left_behind(old or {}, wanted.inputs):
                    result.add_slices(await withdraw_all(client, pool.name, stop))
                made = map(pool.node_name, seen.missing)
                if result.complete and (unmanaged := await wait_until_managed(client, [*made], stop)):
                    op.report.warn(f"pool {pool.name}: {unmanaged}")
        except (NotServed, PoolTaken) as error:
            raise ProviderError(f"pool {pool.name}: {error}") from None
        except (TimeoutError, *SILENT) as error:
            raise await attempt.failed(pool, error) from None
        if not result.complete:
            raise await attempt.unfinished(pool, seen, result)
        return outputs_of(wanted.inputs, recorded_count(wanted.pool, pool.replicas), {})

    async def settle(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InClusterResource.settle`: the stack's faults whose time is up end, on all of its pools."""
        async with limited(op):
            client = await self.client(outputs, WORK_PATIENCE)
            known = await records.read(client, only_pool="")
            self._damages.warn(op.report, outputs["clusterIdentity"], known.damaged)
            await operations.settle(client, known, self.owner(op, outputs))

    async def _reached(self, op: Operation, wanted: WantedPool) -> Client:
        """A client of the cluster; refuses the pool if a real node there has the name of one of its nodes."""
        try:
            async with limited(op):
                with self.needing_cluster(wanted.inputs):
                    client = await self.client(wanted.inputs, WORK_PATIENCE)
                    await self._refuse_real(wanted, WORK_PATIENCE)
                    return client
        except TimeoutError:
            raise ProviderError(f"pool {wanted.pool.name}: {why_ended(op)}; nothing was done") from None

    async def _refuse_real(self, wanted: WantedPool, patience: float) -> None:
        if outlives_stack(wanted.inputs):
            client = await self.client(wanted.inputs, patience)
            try:
                await refuse_real(client, wanted.pool, patience)
            except PoolTaken as error:
                raise ProviderError(f"pool {wanted.pool.name}: {error}") from None

    async def _recorded(
        self,
        op: Operation,
        client: Client,
        wanted: WantedPool,
        look: Callable[[], Awaitable[tuple[Pool, PoolObservation]]],
        stop: asyncio.Event,
    ) -> Pool:
        """Record the pool in the cluster; returns it with the faults of its nodes."""
        write = partial(record.write, client, wanted.pool, self.owner(op, wanted.inputs))
        relieve = partial(self._relieve, str(wanted.inputs["kubeconfig"]), op.report)
        return await record.making_room(write, relieve, look, client, stop, op.report)

    async def _converged(
        self, op: Operation, client: Client, stop: asyncio.Event, wanted: WantedPool, pool: Pool, seen: PoolObservation
    ) -> ConvergeResult:
        """Make the nodes as they are wanted: through the API server, or directly in its storage where that can be."""
        storage_of = self._storage_of and partial(self._storage_of, str(wanted.inputs["kubeconfig"]), client)
        with self.cleared_way(wanted.inputs, len(seen.missing) + len(seen.altered) + len(seen.extra)):
            return await converge(client, pool, seen, stop, op.report, storage_of)

    async def _on_record(self, wanted: WantedPool, recorded_as: str | None) -> Pool | None:
        """The pool as the cluster has it on record; refuses, in a preview too, a pool whose names others have there."""
        # A cluster that does not answer is reported by the operation that needs it.
        with suppress(*UNASKED):
            try:
                client = await self.client(wanted.inputs, LOOK_PATIENCE)
                await refuse_taken(client, wanted.pool, LOOK_PATIENCE, recorded_as)
                return await record.find(client, wanted.pool.name, LOOK_PATIENCE)
            except PoolTaken as error:
                raise ProviderError(f"pool {wanted.pool.name}: {error}") from None
        return None

    async def _preview(self, op: Operation, wanted: WantedPool, recorded: Properties | None) -> None:
        """Report what an update means, and the drift that it repairs."""
        there = await self._on_record(wanted, recorded_owner(recorded))
        if recorded is None and there is None:
            op.report.info(consequences(None, wanted.pool, hourly=self._hourly).describe())
            return
        old = there if recorded is None else _pool_if_any(recorded)
        if recorded is None:
            # It is replaced by itself, or has left the state.
            op.report.info(f"pool {wanted.pool.name} is there already, and stays")
        client = partial(self.client, wanted.inputs, LOOK_PATIENCE)
        await report_update(client, old, wanted.pool, self._hourly, op.report)
        if found := _drift(recorded or {}) or self._lost.get(self._whereabouts(wanted.inputs), {}):
            op.report.info(f"drift to repair: {summary_of(found)}")


def _pool_if_any(properties: Properties) -> Pool | None:
    """The pool that recorded properties describe; None if they describe none, as after a change by hand."""
    try:
        return owned_pool(properties)
    except ProviderError:
        return None


async def _labelled(client: Client, pool: Pool, recorded: str | None) -> list[str]:
    """Names of the pool's nodes, without real nodes and nodes of other stacks, which may carry its label too."""
    nodes = selected(client, of_pool(pool.name))
    return [node.name async for node in nodes if not node.real and not is_anothers(pool, node, recorded)]


async def _orphaned(client: Client, pool: Pool, before: int, recorded: str | None) -> list[str]:
    """Names of the pool's nodes that lost its label; Kumulus's record on them says that it made them."""
    none = replace(pool, replicas=0, devices=None)
    return (await observe(client, none, before=before, recorded=recorded)).extra


def _drift(outputs: Properties) -> Mapping[str, object]:
    found = outputs.get("drift")
    return found if isinstance(found, Mapping) else {}
