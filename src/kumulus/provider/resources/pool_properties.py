"""A node pool's properties: its checked inputs, and what is recorded of it, also after it was made only in part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kumulus.kube import Unreachable
from kumulus.model.checks import MOST_REPLICAS
from kumulus.model.errors import SpecError
from kumulus.model.identity import Owner
from kumulus.model.named_nodes import named_count_problems
from kumulus.model.pool_form import POOL_KEYS, checked_pool, pool_problems, pool_to_properties, pool_within
from kumulus.model.pools import Pool
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.pools.observe import CALM, SILENT, STOPPED, PoolObservation, observe_until_still
from kumulus.nodes.pools.result import ConvergeResult, describe_drift, explain
from kumulus.provider.object_types import POOL
from kumulus.provider.resources.base import CheckResult, InputFailure, Operation, Properties, why_ended
from kumulus.provider.resources.in_cluster import (
    PLACE,
    PLACE_KEYS,
    disk_full,
    drifted,
    recorded_owner,
    with_remedy,
)
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    from kumulus.kube import Client

INPUTS = (*PLACE, *(replace(each, replaces=each.name == "name") for each in POOL))
"""As an output, `replicas` is the number that a read has counted."""


@dataclass(frozen=True)
class WantedPool:
    """What a stack wants of a pool."""

    pool: Pool
    """The pool, with the stack's identity among its nodes' labels."""
    inputs: Properties
    """The checked inputs, which are recorded."""


def checked_pool_inputs(inputs: Properties, failures: list[InputFailure]) -> CheckResult:
    """The inputs in the form that is kept."""
    wire = {key: inputs[key] for key in POOL_KEYS if key in inputs}
    if not contains_unknown(wire):
        problems = pool_problems(wire)
        problems += named_count_problems(("replicas",), wire.get("nodes"), wire.get("replicas"))
        failures += [InputFailure(p.path, f"{p.message}; {p.remedy}") for p in problems]
        if not problems:
            # Quantities in the API server's own form, so that "1000m" and "1" are no difference.
            wire = pool_to_properties(checked_pool(wire))
    return CheckResult({**{key: inputs[key] for key in PLACE_KEYS if key in inputs}, **wire}, failures)


def owned_pool(properties: Properties) -> Pool:
    """The pool that properties describe, with the stack's identity among its nodes' labels.

    Raises:
        ProviderError: they describe none.
    """
    try:
        pool = pool_within(properties)
    except SpecError as error:
        raise ProviderError(str(error)) from None
    identity = properties.get("stackId")
    owner = Owner(identity if isinstance(identity, str) else "")
    return replace(pool, labels={**pool.labels, **owner.labels})


def replicas_before(op: Operation, outputs: Properties) -> int:
    """How many nodes a pool had before; the number that a read counted may be lower."""
    return max(_replicas(op.old_inputs), _replicas(outputs))


def _replicas(recorded: Properties) -> int:
    """A recorded number of nodes; 0 if it is none, as a state that was edited by hand may contain anything."""
    found = recorded.get("replicas")
    return int(found) if isinstance(found, int | float) and 0 <= found <= MOST_REPLICAS else 0


def as_recorded(inputs: Properties, old_outputs: Properties) -> Properties:
    """The inputs, with what stays on record until an update is complete.

    That is the identity that nodes may still have, and what :func:`left_behind` returns.
    """
    recorded = {**inputs, **left_behind(old_outputs, inputs)}
    return {**recorded, "stackId": old_outputs.get("stackId")} if old_outputs else recorded


def left_behind(old_outputs: Properties, inputs: Properties) -> Properties:
    """The recorded devices of a pool that no longer publishes any, kept on record until their slices are gone."""
    devices = old_outputs.get("resourceSlices")
    return {"resourceSlices": devices} if devices and not inputs.get("resourceSlices") else {}


def recorded_count(pool: Pool, there: int) -> int:
    """The number of nodes to record: for a pool that an autoscaler scales, its initial number."""
    return pool.replicas if pool.bounds else there


def outputs_of(inputs: Properties, present: int, found: dict[str, Any]) -> Properties:
    """A pool's outputs: its inputs with the number of nodes that exist, and the drift that was found."""
    return drifted({**inputs, "replicas": present}, found)


def outcome(result: ConvergeResult, op: Operation) -> str:
    """What was done, what was not, and why."""
    reason = result.problems[0] if result.problems else why_ended(op)
    return f"{result.describe()}: {reason}"


@dataclass(frozen=True)
class Attempt:
    """An attempt to make a pool as it is wanted, which may be done in part."""

    op: Operation
    client: Client
    resource_id: str
    wanted: WantedPool
    old: Properties | None
    """The recorded outputs; None before there are any."""

    async def failed(self, pool: Pool, error: Exception) -> PartialFailure:
        """The failure of an attempt that an error ended.

        Args:
            pool: with the faults of its nodes, as far as they are known.
        """
        message = why_ended(self.op) if isinstance(error, TimeoutError) else explain(error)
        return self._partial(pool, message, await self._look(pool, error), known=_replicas(self.old or {}))

    async def unfinished(self, pool: Pool, seen: PoolObservation, result: ConvergeResult) -> PartialFailure:
        """The failure of an attempt that has left something to do.

        Args:
            seen: what existed before it.
        """
        after: PoolObservation | None = result.left
        if not result.certain:
            after = await self._look(pool)
            if after is not None:
                result = result.recounted(seen, after)
        return self._partial(pool, outcome(result, self.op), after, result.problems[1:], result.left.present)

    async def _look(self, pool: Pool, error: Exception | None = None) -> PoolObservation | None:
        """What exists once nothing changes any more; None if the cluster does not answer."""
        patience = STOPPED if self.op.stop.is_set() else CALM
        if isinstance(error, Unreachable):
            patience = SILENT
        return await observe_until_still(self.client, pool, patience, recorded_owner(self.old))

    def _partial(
        self, pool: Pool, message: str, seen: PoolObservation | None, reasons: Sequence[str] = (), known: int = 0
    ) -> PartialFailure:
        """A partial failure that records what really exists.

        Args:
            seen: what exists; None if that is not known.
            known: how many nodes are there at least, in that case.
        """
        inputs = as_recorded(self.wanted.inputs, self.old or {})
        if seen is None:
            outputs = outputs_of(inputs, known, {"missing": "not known: the cluster does not answer"})
            message = str(with_remedy(ProviderError(message), inputs))
        else:
            outputs = outputs_of(inputs, seen.present, describe_drift(pool, seen))
            if full := disk_full(inputs):
                message = f"{message}; {full}"
        return PartialFailure(f"pool {pool.name}: {message}", self.resource_id, outputs, list(reasons))
