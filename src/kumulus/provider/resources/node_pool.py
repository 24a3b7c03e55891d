"""``kumulus:index:NodePool``: the nodes of one node group in one availability zone, as a single resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.cluster.errors import PartialFailure, ProviderError
from kumulus.cluster.pools import afterwards, drift, pods, real, room
from kumulus.cluster.pools.converge import converge
from kumulus.cluster.pools.faulted import forgotten, looked_at, played, recorded
from kumulus.cluster.pools.live import of_pool, selected
from kumulus.cluster.pools.observe import Observation, observe
from kumulus.cluster.pools.others import PoolTaken, is_anothers, refuse_taken
from kumulus.cluster.pools.removal import remove_nodes, remove_slices
from kumulus.cluster.pools.result import Result, explain
from kumulus.cluster.pools.slices import NotServed
from kumulus.cluster.pools.through_storage import StorageOf, find_storage
from kumulus.cluster.pools.turns import Turns
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.model.checks import MOST_REPLICAS
from kumulus.model.consequences import consequences
from kumulus.model.errors import SpecError
from kumulus.model.identity import Owner
from kumulus.model.named_nodes import count_problems
from kumulus.model.pools import POOL_KEYS, Pool, pool_from_properties, pool_problems, pool_to_properties
from kumulus.provider.connections import Connections, WrongCluster
from kumulus.provider.object_types import DEVICES, NAMED_NODE, NODE_INFO, TAINT, TOPOLOGY
from kumulus.provider.properties import INTEGER, OBJECT, STRING, STRINGS, Property, listing
from kumulus.provider.resources import adoption
from kumulus.provider.resources.base import Checked, Failure, Found, Operation, Properties, known
from kumulus.provider.resources.in_cluster import (
    DRIFT,
    LOOK_PATIENCE,
    PLACE,
    PLACE_KEYS,
    WORK_PATIENCE,
    ClearWay,
    InCluster,
    when_down,
)
from kumulus.provider.resources.limit import limited, why
from kumulus.provider.values import contains_unknown
from kumulus.runtimes.existing.copy import is_copy

if TYPE_CHECKING:
    from kumulus.kube import Client


class NodePool(InCluster):
    """The emulated nodes of one node group in one availability zone, as one resource."""

    token: ClassVar[str] = "kumulus:index:NodePool"
    # After those of its place, the keys of `POOL_KEYS`; as an output, `replicas` is what a read has counted.
    inputs: ClassVar = (
        *PLACE,
        Property(
            "name",
            STRING,
            "The pool's name; nodes are `<name>-<ordinal>`, from 0, unless they are named.",
            required=True,
            replaces=True,
        ),
        Property("replicas", INTEGER, "How many nodes; shrinking removes the highest ordinals.", required=True),
        Property("labels", STRINGS, "Labels of every node."),
        Property("gpu", STRINGS, "What the labels of GPU Feature Discovery follow from, in their place."),
        Property("annotations", STRINGS, "Annotations of every node."),
        Property("taints", listing(TAINT), "Taints of every node."),
        Property("capacity", STRINGS, "Quantities by resource, such as `cpu`, `memory`, `nvidia.com/gpu`."),
        Property("allocatable", STRINGS, "Quantities by resource; the capacity where it names none."),
        Property("nodeInfo", NODE_INFO, "What a node says of its machine."),
        Property("topology", TOPOLOGY, "Where its nodes stand: racks, blocks, switches, NVLink domains."),
        Property("resourceSlices", DEVICES, "Devices of a node for Dynamic Resource Allocation, a ResourceSlice each."),
        Property("shards", INTEGER, "How many kwok-controllers share the nodes, each by its label."),
        Property("nodes", listing(NAMED_NODE), "Its nodes by name, as many as there are replicas."),
    )
    outputs: ClassVar = (Property("drift", OBJECT, DRIFT.description),)

    def __init__(
        self,
        connections: Connections,
        clear_way: ClearWay = nullcontext,
        storage_of: StorageOf | None = None,
        relieve: room.Relieve = room.no_relief,
    ) -> None:
        """Serve it.

        Args:
            connections: as for every resource in a cluster.
            clear_way: likewise.
            storage_of: the storage of the cluster that has a kubeconfig, where new nodes can be written to it.
            relieve: makes room in the cluster's etcd where that is full.
        """
        super().__init__(connections, clear_way)
        self._storage_of = storage_of
        self._relieve = relieve
        self._turns = Turns()

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> Checked:
        """See :meth:`Resource.check`."""
        failures = self.input_failures(inputs)
        wire = {key: inputs[key] for key in POOL_KEYS if key in inputs}
        if not contains_unknown(wire):
            problems = pool_problems(wire)
            problems += count_problems(("replicas",), wire.get("nodes"), wire.get("replicas"))
            failures += [Failure(p.path, f"{p.message}; {p.remedy}") for p in problems]
            if not problems:
                # Quantities in the API server's own form, so that "1000m" and "1" are no difference.
                wire = pool_to_properties(pool_from_properties(wire))
        return Checked({**{key: inputs[key] for key in PLACE_KEYS if key in inputs}, **wire}, failures)

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        """See :meth:`Resource.create`."""
        resource_id = f"{known(inputs, 'clusterName')}/{known(inputs, 'name')}"
        if op.preview:
            if not contains_unknown({key: inputs.get(key) for key in POOL_KEYS}):
                op.report.info(consequences(None, _pool(inputs)).describe())
            if not contains_unknown(inputs):
                await self._preview_taken(inputs, None)
            await self._refuse_real(inputs, LOOK_PATIENCE)
            return resource_id, inputs
        return resource_id, await self._converge(op, resource_id, inputs, {})

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> Found | None:
        """See :meth:`Resource.read`."""
        if not inputs.get("kubeconfig"):
            inputs = await adoption.pool_inputs(self._connections, resource_id, op.program)
            resource_id = f"{inputs['clusterName']}/{inputs['name']}"
        pool = _pool(inputs)
        try:
            client = await self.client(inputs, LOOK_PATIENCE)
            faulted, on_record = await looked_at(client, pool, LOOK_PATIENCE)
            seen = await observe(client, faulted, patience=LOOK_PATIENCE)
        except (KubeconfigError, WrongCluster):
            return None
        except (ApiError, Unreachable, NotServed) as error:
            # The cluster is down, not gone: what was recorded stands until it can be asked again.
            op.report.warn(f"pool {pool.name} was not looked at: {error}")
            return Found(resource_id, outputs, inputs)
        if not seen.present and not seen.extra and pool.replicas:
            return None
        there = {**inputs, **_left_behind(outputs, inputs)}
        found = drift.describe(pool, seen) | ({} if on_record else {"record": "not as wanted"})
        return Found(resource_id, _outputs(there, seen.present, found), inputs)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`Resource.update`."""
        if op.preview:
            if not contains_unknown(inputs):
                await self._preview_taken(inputs, _identity(old_outputs))
                await self._preview(op, old_outputs, inputs)
            await self._refuse_real(inputs, LOOK_PATIENCE)
            return inputs
        return await self._converge(op, resource_id, inputs, old_outputs)

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`; nodes of a cluster that is gone are gone with it."""
        try:
            async with limited(op) as stop:
                client = await self.client(outputs, WORK_PATIENCE)
                labelled = await _labelled(client, outputs)
                with self.cleared_way(outputs, len(labelled)):
                    result = await remove_nodes(client, labelled, stop, op.report)
                if result.complete:
                    orphaned = await _orphaned(client, outputs, _formerly(op, outputs))
                    result = await remove_nodes(client, orphaned, stop, op.report)
                if result.complete and outputs.get("resourceSlices"):
                    await remove_slices(client, str(outputs["name"]), stop, result)
        except (KubeconfigError, WrongCluster):
            return
        except TimeoutError:
            raise ProviderError(f"pool {outputs.get('name')}: {why(op)}; the next run goes on") from None
        except (ApiError, Unreachable) as error:
            raise ProviderError(_unreachable(outputs, error)) from None
        if not result.complete:
            raise ProviderError(f"pool {outputs.get('name')}: {_outcome(result, op)}")
        try:
            await forgotten(client, str(known(outputs, "name")), self.owner(op, outputs))
        except (ApiError, Unreachable) as error:
            raise ProviderError(_unreachable(outputs, error)) from None

    async def _converge(
        self, op: Operation, resource_id: str, inputs: Properties, old_outputs: Properties
    ) -> Properties:
        """Make the nodes what is wanted; what could be done is recorded when the rest could not."""
        pool, left = _pool(inputs), _left_behind(old_outputs, inputs)
        recorded_as = _identity(old_outputs) if old_outputs else None
        # Until all of it is marked anew, what it was known by has to stay on record.
        there = {**inputs, **left, **({} if recorded_as is None else {"stackId": recorded_as or None})}
        try:
            async with limited(op):
                client = await self.client(inputs, WORK_PATIENCE)
                await self._refuse_real(inputs, WORK_PATIENCE)
        except TimeoutError:
            raise ProviderError(f"pool {pool.name}: {why(op)}; nothing was done") from None
        except (KubeconfigError, WrongCluster, ApiError, Unreachable) as error:
            raise ProviderError(_unreachable(inputs, error)) from None
        try:
            async with limited(op) as stop:
                await refuse_taken(client, pool, WORK_PATIENCE, recorded_as)
                look = partial(observe, client, formerly=_formerly(op, old_outputs), recorded=recorded_as)
                record = partial(recorded, client, pool, self.owner(op, inputs))
                relieve = partial(self._relieve, str(inputs["kubeconfig"]), op.report)
                pool = await room.found(record, relieve, partial(look, pool), client, stop, op.report)
                # A new pool's look is a matter of milliseconds.
                async with self._turns.turn() if old_outputs else nullcontext():
                    seen = await look(pool)
                storage = await find_storage(
                    self._storage_of, str(inputs["kubeconfig"]), client, len(seen.missing), op.report
                )
                with self.cleared_way(inputs, len(seen.missing) + len(seen.altered) + len(seen.extra)):
                    result = await converge(client, pool, seen, stop, op.report, storage)
                if left:
                    await remove_slices(client, pool.name, stop, result)
                if result.complete and (unplayed := await played(client, pool, seen.missing, stop)):
                    op.report.warn(f"pool {pool.name}: {unplayed}")
        except (NotServed, PoolTaken) as error:
            raise ProviderError(f"pool {pool.name}: {error}") from None
        except TimeoutError:
            after = await afterwards.look(client, pool, _patience(op))
            raise _partial(pool, resource_id, there, why(op), after, known=_counted(old_outputs)) from None
        except (ApiError, Unreachable) as error:
            after = await afterwards.look(client, pool, _patience(op, error))
            raise _partial(pool, resource_id, there, explain(error), after, known=_counted(old_outputs)) from None
        if not result.complete:
            after = result.left if result.certain else await afterwards.look(client, pool, _patience(op))
            if after is not None and not result.certain:
                result = result.recounted(seen, after)
            message, reasons = _outcome(result, op), result.problems[1:]
            raise _partial(pool, resource_id, there, message, after, reasons, result.left.present)
        return _outputs(inputs, pool.replicas, {})

    async def _preview_taken(self, inputs: Properties, recorded_as: str | None) -> None:
        """Refuse, in a preview too, a pool that another stack has in the cluster."""
        pool = _pool(inputs)
        # What does not answer now is told by what needs it.
        with suppress(ApiError, Unreachable, KubeconfigError, WrongCluster):
            try:
                client = await self.client(inputs, LOOK_PATIENCE)
                await refuse_taken(client, pool, LOOK_PATIENCE, recorded_as)
            except PoolTaken as error:
                raise ProviderError(f"pool {pool.name}: {error}") from None

    async def _refuse_real(self, inputs: Properties, patience: float) -> None:
        """Do nothing at all where real nodes carry a pool's names, in a cluster that is not the stack's own.

        Raises:
            ProviderError: there are such nodes.
            ApiError, Unreachable, KubeconfigError, WrongCluster: it could not be looked.
        """
        if contains_unknown(inputs) or not is_copy(str(inputs["kubeconfig"])):
            return
        client = await self.client(inputs, patience)
        if taken := await real.in_the_way(client, pool := _pool(inputs), patience):
            raise ProviderError(real.refusal(pool, taken))

    async def _preview(self, op: Operation, old_outputs: Properties, inputs: Properties) -> None:
        """Say what an update means: nodes, GPUs, CPUs and memory gained or lost, and the pods that would go."""
        new = _pool(inputs)
        wire = {key: old_outputs.get(key) for key in POOL_KEYS}
        old = None if pool_problems(wire) else _pool(old_outputs)
        going = set(old.node_names()) - set(new.node_names()) if old else set()
        bound = 0
        if going:
            try:
                client = await self.client(inputs, LOOK_PATIENCE)
                bound = len(await pods.bound_to(client, going, running=True))
            except (ApiError, Unreachable, KubeconfigError, WrongCluster) as error:
                op.report.warn(f"pods on the nodes that would go could not be counted: {error}")
        meaning = consequences(old, new, bound)
        if meaning:
            op.report.info(meaning.describe())
        if found := _drift(old_outputs):
            op.report.info(f"drift to repair: {drift.summary(found)}")


def _pool(properties: Properties) -> Pool:
    """The pool, whose nodes carry the stack's identity."""
    try:
        pool = pool_from_properties({key: properties[key] for key in POOL_KEYS if key in properties})
    except SpecError as error:
        raise ProviderError(str(error)) from None
    return replace(pool, labels={**pool.labels, **Owner(_identity(properties)).labels})


def _identity(properties: Properties) -> str:
    found = properties.get("stackId")
    return found if isinstance(found, str) else ""


async def _labelled(client: Client, outputs: Properties) -> list[str]:
    """Names of the pool's nodes; a real one, or another stack's, may carry its label, but is never ours to remove."""
    pool = _pool(outputs)
    nodes = selected(client, of_pool(str(known(outputs, "name"))))
    return [node.name async for node in nodes if not node.real and not is_anothers(pool, node)]


async def _orphaned(client: Client, outputs: Properties, formerly: int) -> list[str]:
    """Names of the pool's nodes that lost its label: our record on them says that we made them."""
    none = _pool({**outputs, "replicas": 0, "resourceSlices": None})
    return (await observe(client, none, formerly=formerly)).extra


def _formerly(op: Operation, outputs: Properties) -> int:
    """How many nodes a pool had been given: what a read counted may be less."""
    counts = (op.old_inputs.get("replicas"), outputs.get("replicas"))
    # A state that was edited by hand may hold anything.
    return int(max((n for n in counts if isinstance(n, int | float) and 0 <= n <= MOST_REPLICAS), default=0))


def _left_behind(old_outputs: Properties, inputs: Properties) -> Properties:
    """The recorded devices of a pool that is to publish none any more: recorded until their slices are gone."""
    key = "resourceSlices"
    return {key: old_outputs[key]} if old_outputs.get(key) and not inputs.get(key) else {}


def _drift(outputs: Properties) -> Mapping[str, object]:
    found = outputs.get("drift")
    return found if isinstance(found, Mapping) else {}


def _counted(outputs: Properties) -> int:
    """How many nodes a pool is recorded to have."""
    found = outputs.get("replicas")
    return int(found) if isinstance(found, int | float) else 0


def _outputs(inputs: Properties, present: int, found: dict[str, Any]) -> Properties:
    outputs = {**inputs, "replicas": present}
    return {**outputs, "drift": found} if found else outputs


def _patience(op: Operation, error: Exception | None = None) -> afterwards.Patience:
    if isinstance(error, Unreachable):
        return afterwards.SILENT
    return afterwards.STOPPED if op.stop.is_set() else afterwards.CALM


def _partial(
    pool: Pool,
    resource_id: str,
    inputs: Properties,
    message: str,
    seen: Observation | None,
    reasons: Sequence[str] = (),
    known: int = 0,
) -> PartialFailure:
    """A partial failure that records what is really there, and where that could not be seen, that it is not known.

    Args:
        pool: what was wanted.
        resource_id: the resource's id.
        inputs: what goes on record of it beside.
        message: what happened.
        seen: what is there; None when it is not known.
        reasons: further problems.
        known: how many nodes there are at least, where it could not be seen.
    """
    if seen is None:
        outputs = _outputs(inputs, known, {"missing": "not known: the cluster does not answer"})
    else:
        outputs = _outputs(inputs, seen.present, drift.describe(pool, seen))
    return PartialFailure(f"pool {pool.name}: {message}", resource_id, outputs, list(reasons))


def _outcome(result: Result, op: Operation) -> str:
    """What was done and what was not, and why not."""
    if result.problems:
        return f"{result.describe()}: {result.problems[0]}"
    return f"{result.describe()}: {why(op)}"


def _unreachable(properties: Properties, error: Exception) -> str:
    return f"pool {properties.get('name')}: {explain(error)}; {when_down(properties)}"


__all__ = ["NodePool", "Observation"]
