"""``kumulus:index:NodePool``: the nodes of one node group in one availability zone, as a single resource."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from kumulus.kube import ApiError, Unreachable
from kumulus.model.consequences import Hourly, consequences
from kumulus.model.pool_form import POOL_KEYS, pool_problems, pool_to_properties
from kumulus.model.pools import Pool
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.pools import afterwards, drift, pods, real, room, scaled
from kumulus.nodes.pools.converge import converge
from kumulus.nodes.pools.faulted import forget, looked_at, on_record, recorded, wait_for_kwok
from kumulus.nodes.pools.live import of_pool, selected
from kumulus.nodes.pools.lost import may_lack
from kumulus.nodes.pools.observe import observe
from kumulus.nodes.pools.others import PoolTaken, is_anothers, refuse_taken
from kumulus.nodes.pools.removal import remove_nodes, remove_slices
from kumulus.nodes.pools.result import explain
from kumulus.nodes.pools.slices import NotServed, require_served
from kumulus.nodes.pools.through_storage import StorageOf, find_storage
from kumulus.nodes.pools.turns import Turns
from kumulus.provider.connections import SILENT, UNASKED, Connections
from kumulus.provider.properties import OBJECT, Property
from kumulus.provider.resources import adoption
from kumulus.provider.resources.base import Checked, Found, Operation, Properties, known
from kumulus.provider.resources.diffing import Difference
from kumulus.provider.resources.in_cluster import (
    DRIFT,
    LOOK_PATIENCE,
    WORK_PATIENCE,
    ClearWay,
    InCluster,
    outlives_stack,
    recorded_owner,
    with_remedy,
)
from kumulus.provider.resources.limit import limited, why
from kumulus.provider.resources.pool_inputs import INPUTS, as_recorded, checked, formerly, left_behind, pool_of
from kumulus.provider.resources.pool_outcome import (
    counted,
    number,
    outcome,
    outputs_of,
    partial_failure,
    patience_after,
)
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    import asyncio

    from kumulus.kube import Client
    from kumulus.nodes.pools.observe import Observation
    from kumulus.nodes.pools.result import Result

# Seconds for a look that every preview and update takes, whether or not the cluster answers.
_GLANCE = 0.5


class NodePool(InCluster):
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
        relieve: room.Relieve = room.no_relief,
        hourly: Hourly = lambda _: None,
    ) -> None:
        """Serve it.

        Args:
            connections: as for every resource in a cluster.
            clear_way: likewise.
            storage_of: gives the storage of a kubeconfig's cluster, if new nodes can be written to it directly.
            relieve: makes room in the cluster's etcd when it is full.
            hourly: what nodes cost.
        """
        super().__init__(connections, clear_way)
        self._storage_of = storage_of
        self._relieve = relieve
        self._hourly = hourly
        self._turns = Turns()
        # What a look without a refresh has found, by the pool's name, for the preview to say.
        self._lost: dict[str, Mapping[str, object]] = {}

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> Checked:
        """See :meth:`Resource.check`."""
        return checked(inputs, self.input_failures(inputs))

    def title(self, properties: Properties) -> str:
        """See :meth:`InCluster.title`."""
        return f"pool {properties.get('name')}"

    def failed(self, properties: Properties, error: Exception) -> ProviderError:
        """See :meth:`InCluster.failed`."""
        return with_remedy(ProviderError(f"{self.title(properties)}: {explain(error)}"), properties)

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InCluster.previewed`."""
        there = None if contains_unknown(inputs) else await self._on_record(inputs, recorded_owner(old))
        if old is None and there is not None:
            # It is replaced by itself, or has left the state.
            op.report.info(f"pool {there.name} is there already, and stays")
            old = pool_to_properties(there)
        if old is None and not contains_unknown({key: inputs.get(key) for key in POOL_KEYS}):
            op.report.info(consequences(None, pool_of(inputs), hourly=self._hourly).describe())
        if old is not None and not contains_unknown(inputs):
            await self._preview(op, old, inputs)
        await self._refuse_real(inputs, LOOK_PATIENCE)
        return inputs

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> Found | None:
        """See :meth:`Resource.read`; an import knows only an id."""
        if not inputs.get("kubeconfig"):
            inputs = await adoption.pool_inputs(self._connections, resource_id, op.program)
            resource_id = self.id_of(inputs)
        return await super().read(op, resource_id, outputs, inputs)

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties | None:
        """See :meth:`InCluster.look`."""
        return await self._looked(outputs, inputs)

    async def compare(self, old_outputs: Properties, inputs: Properties) -> list[Difference]:
        """See :meth:`Resource.compare`: nodes that are lost are a difference, without a refresh too."""
        found = self.diff(old_outputs, inputs)
        if found or contains_unknown(inputs):
            return found
        with suppress(*UNASKED, ProviderError):
            client = await self.client(inputs, _GLANCE)
            if await may_lack(client, str(inputs["name"]), _GLANCE):
                seen = await self._looked(old_outputs, inputs)
                self._lost[str(inputs["name"])] = lost = {"missing": "all nodes"} if seen is None else _drift(seen)
                return [Difference("replicas", "update")] if "missing" in lost else []
        return []

    async def _looked(self, outputs: Properties, inputs: Properties) -> Properties | None:
        """The outputs as they are; None when the pool does not exist."""
        pool = pool_of(inputs)
        client = await self.client(inputs, LOOK_PATIENCE)
        # An import knows no outputs.
        recorded_as = recorded_owner(outputs or None)
        faulted, on_record = await looked_at(client, pool, LOOK_PATIENCE)
        left = await scaled.as_left(client, faulted, LOOK_PATIENCE, recorded_as)
        seen = await observe(client, left, patience=LOOK_PATIENCE, recorded=recorded_as)
        # A pool that an autoscaler scales may have no nodes; its record says whether it exists.
        if not seen.present and not seen.extra and (not on_record if pool.bounds else pool.replicas):
            return None
        found = drift.describe(pool, seen) | ({} if on_record else {"record": "not as wanted"})
        return outputs_of(as_recorded(inputs, outputs), number(pool, seen.present), found)

    async def remove(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InCluster.remove`."""
        # An update that was cut off may have marked only some nodes with the stack's identity, which the inputs have.
        recorded_as = recorded_owner(outputs)
        outputs = {**outputs, "stackId": op.old_inputs.get("stackId") or recorded_as}
        try:
            async with limited(op) as stop:
                client = await self.client(outputs, WORK_PATIENCE)
                labelled = await _labelled(client, outputs, recorded_as)
                with self.cleared_way(outputs, len(labelled)):
                    result = await remove_nodes(client, labelled, stop, op.report)
                if result.complete:
                    orphaned = await _orphaned(client, outputs, formerly(op, outputs), recorded_as)
                    result = await remove_nodes(client, orphaned, stop, op.report)
                if result.complete and outputs.get("resourceSlices"):
                    await remove_slices(client, str(outputs["name"]), stop, result)
        except TimeoutError:
            raise ProviderError(f"pool {outputs.get('name')}: {why(op)}; the next run goes on") from None
        if not result.complete:
            raise ProviderError(f"pool {outputs.get('name')}: {outcome(result, op)}")
        for identity in {recorded_as, recorded_owner(outputs)}:
            await forget(client, str(known(outputs, "name")), self.owner(op, {"stackId": identity}))

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InCluster.make`; if only part of the work succeeds, that part is recorded."""
        old_outputs: Properties = old or {}
        pool, left = pool_of(inputs), left_behind(old_outputs, inputs)
        recorded_as, there = recorded_owner(old), as_recorded(inputs, old_outputs)
        try:
            async with limited(op):
                with self.needing_cluster(inputs):
                    client = await self.client(inputs, WORK_PATIENCE)
                    await self._refuse_real(inputs, WORK_PATIENCE)
        except TimeoutError:
            raise ProviderError(f"pool {pool.name}: {why(op)}; nothing was done") from None
        try:
            async with limited(op) as stop:
                await refuse_taken(client, pool, WORK_PATIENCE, recorded_as)
                if pool.devices is not None:
                    await require_served(client)
                look = partial(observe, client, formerly=formerly(op, old_outputs), recorded=recorded_as)
                record = partial(recorded, client, pool, self.owner(op, inputs))
                relieve = partial(self._relieve, str(inputs["kubeconfig"]), op.report)
                pool = await room.recorded(record, relieve, partial(look, pool), client, stop, op.report)
                pool = await scaled.as_left(client, pool, WORK_PATIENCE, recorded_as, new=not old_outputs)
                # Observing a new pool takes only milliseconds.
                async with self._turns.turn() if old_outputs else nullcontext():
                    seen = await look(pool)
                result = await self._converged(op, client, stop, inputs, pool, seen)
                if left:
                    await remove_slices(client, pool.name, stop, result)
                if result.complete and (unmanaged := await wait_for_kwok(client, pool, seen.missing, stop)):
                    op.report.warn(f"pool {pool.name}: {unmanaged}")
        except (NotServed, PoolTaken) as error:
            raise ProviderError(f"pool {pool.name}: {error}") from None
        except TimeoutError:
            after = await afterwards.look(client, pool, patience_after(op), recorded_as)
            raise partial_failure(pool, resource_id, there, why(op), after, known=counted(old_outputs)) from None
        except (ApiError, Unreachable) as error:
            after = await afterwards.look(client, pool, patience_after(op, error), recorded_as)
            raise partial_failure(pool, resource_id, there, explain(error), after, known=counted(old_outputs)) from None
        if not result.complete:
            after = (
                result.left if result.certain else await afterwards.look(client, pool, patience_after(op), recorded_as)
            )
            if after is not None and not result.certain:
                result = result.recounted(seen, after)
            message, reasons = outcome(result, op), result.problems[1:]
            raise partial_failure(pool, resource_id, there, message, after, reasons, result.left.present)
        return outputs_of(inputs, number(pool_of(inputs), pool.replicas), {})

    async def _converged(
        self, op: Operation, client: Client, stop: asyncio.Event, inputs: Properties, pool: Pool, seen: Observation
    ) -> Result:
        """Make the nodes as they are wanted, through the API server, or in its storage where that is possible."""
        kubeconfig = str(inputs["kubeconfig"])
        storage = await find_storage(self._storage_of, kubeconfig, client, len(seen.missing), op.report)
        with self.cleared_way(inputs, len(seen.missing) + len(seen.altered) + len(seen.extra)):
            return await converge(client, pool, seen, stop, op.report, storage)

    async def _on_record(self, inputs: Properties, recorded_as: str | None) -> Pool | None:
        """The pool as the cluster has it on record; refuses, in a preview too, one that another stack has there."""
        pool = pool_of(inputs)
        # A cluster that does not answer is reported by the operation that needs it.
        with suppress(*UNASKED):
            try:
                client = await self.client(inputs, LOOK_PATIENCE)
                await refuse_taken(client, pool, LOOK_PATIENCE, recorded_as)
                return await on_record(client, pool.name, LOOK_PATIENCE)
            except PoolTaken as error:
                raise ProviderError(f"pool {pool.name}: {error}") from None
        return None

    async def _refuse_real(self, inputs: Properties, patience: float) -> None:
        """Refuse a pool whose node names real nodes have, in a cluster that is not the stack's own.

        Raises:
            ProviderError: there are such nodes.
            ApiError, Unreachable, KubeconfigError, WrongCluster: the cluster could not be asked.
        """
        if contains_unknown(inputs) or not outlives_stack(inputs):
            return
        client = await self.client(inputs, patience)
        if taken := await real.in_the_way(client, pool := pool_of(inputs), patience):
            raise ProviderError(real.refusal(pool, taken))

    async def _as_left(self, old: Pool | None, new: Pool, inputs: Properties) -> tuple[Pool | None, Pool]:
        """The old and the new pool with the existing nodes, if an autoscaler sets, or did set, their number."""
        if old is None or (old.bounds is None and new.bounds is None):
            return old, new
        with suppress(*UNASKED):
            there = (await scaled.numbered(await self.client(inputs, LOOK_PATIENCE), old, LOOK_PATIENCE)).keys()
            left = scaled.within(new, there) if new.bounds else None
            return scaled.with_ordinals(old, there), new if left is None else scaled.with_ordinals(new, left)
        return old, new

    async def _preview(self, op: Operation, old_outputs: Properties, inputs: Properties) -> None:
        """Report what an update means: nodes, GPUs, CPUs and memory gained or lost, and pods that would be deleted."""
        new = pool_of(inputs)
        wire = {key: old_outputs.get(key) for key in POOL_KEYS}
        old = None if pool_problems(wire) else pool_of(old_outputs)
        old, new = await self._as_left(old, new, inputs)
        going = _names(old) - _names(new) if old else set()
        bound = 0
        if going:
            try:
                client = await self.client(inputs, LOOK_PATIENCE)
                bound = len(await pods.bound_to(client, going, running=True))
            except UNASKED as error:
                op.report.warn(f"pods on the nodes that would go could not be counted: {error}")
        meaning = consequences(old, new, bound, self._hourly)
        if meaning:
            op.report.info(meaning.describe())
        elif old and new.bounds and wire.get("replicas") != inputs.get("replicas"):
            between = f"between {new.bounds.least:,} and {new.bounds.most:,}"
            op.report.info(f"pool {new.name}: stays at {new.count:,} nodes; {between}, the autoscaler has the number")
        if found := _drift(old_outputs) or self._lost.get(new.name, {}):
            op.report.info(f"drift to repair: {drift.summary(found)}")


async def _labelled(client: Client, outputs: Properties, recorded: str | None) -> list[str]:
    """Names of the pool's nodes, without real nodes and nodes of other stacks, which may carry its label too."""
    pool = pool_of(outputs)
    nodes = selected(client, of_pool(str(known(outputs, "name"))))
    return [node.name async for node in nodes if not node.real and not is_anothers(pool, node, recorded)]


async def _orphaned(client: Client, outputs: Properties, formerly: int, recorded: str | None) -> list[str]:
    """Names of the pool's nodes that lost its label; Kumulus's record on them says that it made them."""
    none = pool_of({**outputs, "replicas": 0, "resourceSlices": None})
    return (await observe(client, none, formerly=formerly, recorded=recorded)).extra


def _drift(outputs: Properties) -> Mapping[str, object]:
    found = outputs.get("drift")
    return found if isinstance(found, Mapping) else {}


def _names(pool: Pool) -> set[str]:
    return {pool.node_name(ordinal) for ordinal in range(pool.replicas) if ordinal not in pool.absent}
