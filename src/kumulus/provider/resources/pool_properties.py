"""A node pool's properties: its checked inputs, what is recorded and reported of it, and its partial failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kumulus.kube import Unreachable
from kumulus.model.checks import MOST_REPLICAS
from kumulus.model.consequences import Hourly, consequences
from kumulus.model.errors import SpecError
from kumulus.model.identity import Owner
from kumulus.model.named_nodes import named_count_problems
from kumulus.model.pool_form import POOL_KEYS, checked_pool, pool_problems, pool_to_properties, pool_within
from kumulus.model.pools import Pool
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.pools import scaled
from kumulus.nodes.pools.observe import CALM, SILENT, STOPPED, PoolObservation, observe_until_still
from kumulus.nodes.pools.removal import bound_to
from kumulus.nodes.pools.result import ConvergeResult, describe_drift, explain
from kumulus.nodes.reporter import Reporter
from kumulus.provider.connections import UNASKED
from kumulus.provider.object_types import POOL
from kumulus.provider.resources.base import CheckResult, InputFailure, Operation, Properties, why
from kumulus.provider.resources.in_cluster import (
    LOOK_PATIENCE,
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
    """The pool, with the stack's identity among its nodes' labels."""
    try:
        pool = pool_within(properties)
    except SpecError as error:
        raise ProviderError(str(error)) from None
    identity = properties.get("stackId")
    return replace(pool, labels={**pool.labels, **Owner(identity if isinstance(identity, str) else "").labels})


def replicas_before(op: Operation, outputs: Properties) -> int:
    """How many nodes a pool had before; the number that a read counted may be lower."""
    counts = (op.old_inputs.get("replicas"), outputs.get("replicas"))
    # A state that was edited by hand may contain anything.
    return int(max((n for n in counts if isinstance(n, int | float) and 0 <= n <= MOST_REPLICAS), default=0))


def as_recorded(inputs: Properties, old_outputs: Properties) -> Properties:
    """The inputs, with what stays on record until an update is complete.

    That is the identity that nodes may still have, and what :func:`left_behind` returns.
    """
    marked = {"stackId": old_outputs.get("stackId")} if old_outputs else {}
    return {**inputs, **left_behind(old_outputs, inputs), **marked}


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
    if result.problems:
        return f"{result.describe()}: {result.problems[0]}"
    return f"{result.describe()}: {why(op)}"


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
        """The failure of an attempt that an error ended; arguments as of :meth:`partial`."""
        message = why(self.op) if isinstance(error, TimeoutError) else explain(error)
        return self.partial(pool, message, await self._look(pool, error), known=_counted(self.old or {}))

    async def unfinished(self, pool: Pool, seen: PoolObservation, result: ConvergeResult) -> PartialFailure:
        """The failure of an attempt that has left something to do."""
        after = result.left if result.certain else await self._look(pool)
        if after is not None and not result.certain:
            result = result.recounted(seen, after)
        return self.partial(pool, outcome(result, self.op), after, result.problems[1:], result.left.present)

    async def _look(self, pool: Pool, error: Exception | None = None) -> PoolObservation | None:
        patience = STOPPED if self.op.stop.is_set() else CALM
        if isinstance(error, Unreachable):
            patience = SILENT
        return await observe_until_still(self.client, pool, patience, recorded_owner(self.old))

    def partial(
        self, pool: Pool, message: str, seen: PoolObservation | None, reasons: Sequence[str] = (), known: int = 0
    ) -> PartialFailure:
        """A partial failure that records what really exists.

        Where that is not known, `seen` is None, and at least the `known` nodes are there.
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


def _counted(outputs: Properties) -> int:
    found = outputs.get("replicas")
    return int(found) if isinstance(found, int | float) else 0


Ask = Callable[[], Awaitable["Client"]]


async def report_update(ask: Ask, old: Pool | None, new: Pool, hourly: Hourly, report: Reporter) -> None:
    """Report nodes, GPUs, CPUs and memory gained or lost, and running pods that would be deleted.

    Who is asked for a client may raise one of :data:`UNASKED`; the recorded pool is None if it is not known.
    """
    resized = old is not None and old.replicas != new.replicas
    old, new = await _as_left(ask, old, new)
    bound = 0
    if going := _names(old) - _names(new) if old else set():
        try:
            bound = len(await bound_to(await ask(), going, running=True))
        except UNASKED as error:
            report.warn(f"pods on the nodes that would go could not be counted: {error}")
    if meaning := consequences(old, new, bound, hourly):
        report.info(meaning.describe())
    elif new.bounds and resized:
        between = f"between {new.bounds.least:,} and {new.bounds.most:,}"
        report.info(f"pool {new.name}: stays at {new.count:,} nodes; {between}, the autoscaler has the number")


async def _as_left(ask: Ask, old: Pool | None, new: Pool) -> tuple[Pool | None, Pool]:
    """The old and the new pool with the existing nodes, if an autoscaler sets, or did set, their number."""
    if old is None or (old.bounds is None and new.bounds is None):
        return old, new
    with suppress(*UNASKED):
        there = (await scaled.numbered(await ask(), old, LOOK_PATIENCE)).keys()
        left = scaled.within_bounds(new, there) if new.bounds else None
        return scaled.with_ordinals(old, there), new if left is None else scaled.with_ordinals(new, left)
    return old, new


def _names(pool: Pool) -> set[str]:
    return {pool.node_name(ordinal) for ordinal in range(pool.replicas) if ordinal not in pool.absent}
