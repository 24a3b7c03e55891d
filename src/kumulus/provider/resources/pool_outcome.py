"""What is recorded and reported of a node pool after an operation: its number of nodes, drift, partial failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.kube import Unreachable
from kumulus.model.pools import Pool
from kumulus.nodes.errors import PartialFailure
from kumulus.nodes.pools import afterwards, drift
from kumulus.nodes.pools.observe import Observation
from kumulus.nodes.pools.result import Result, explain
from kumulus.provider.resources.base import Operation, Properties
from kumulus.provider.resources.in_cluster import drifted, outlives_stack, recorded_owner
from kumulus.provider.resources.limit import why
from kumulus.provider.resources.pool_inputs import Wanted, as_recorded
from kumulus.runtimes.directories import no_room

if TYPE_CHECKING:
    from kumulus.kube import Client


def number(pool: Pool, there: int) -> int:
    """The number of nodes to record: for a pool that an autoscaler scales, its initial number."""
    return pool.replicas if pool.bounds else there


def outputs_of(inputs: Properties, present: int, found: dict[str, Any]) -> Properties:
    """A pool's outputs: its inputs with the number of nodes that exist, and the drift that was found."""
    return drifted({**inputs, "replicas": present}, found)


def outcome(result: Result, op: Operation) -> str:
    """What was done, what was not, and why."""
    if result.problems:
        return f"{result.describe()}: {result.problems[0]}"
    return f"{result.describe()}: {why(op)}"


@dataclass(frozen=True)
class Attempt:
    """An attempt to make a pool as it is wanted, which may be done in part.

    Args:
        op: the circumstances.
        client: the cluster's API.
        resource_id: the resource's id.
        wanted: what is wanted.
        old: the recorded outputs; None before there are any.
    """

    op: Operation
    client: Client
    resource_id: str
    wanted: Wanted
    old: Properties | None

    async def failed(self, pool: Pool, error: Exception) -> PartialFailure:
        """The failure of an attempt that an error ended; arguments as of :meth:`partial`."""
        message = why(self.op) if isinstance(error, TimeoutError) else explain(error)
        return self.partial(pool, message, await self._look(pool, error), known=_counted(self.old or {}))

    async def unfinished(self, pool: Pool, seen: Observation, result: Result) -> PartialFailure:
        """The failure of an attempt that has left something to do.

        Args:
            pool: what was wanted.
            seen: what was observed before.
            result: what was done.
        """
        after = result.left if result.certain else await self._look(pool)
        if after is not None and not result.certain:
            result = result.recounted(seen, after)
        return self.partial(pool, outcome(result, self.op), after, result.problems[1:], result.left.present)

    async def _look(self, pool: Pool, error: Exception | None = None) -> Observation | None:
        patience = afterwards.STOPPED if self.op.stop.is_set() else afterwards.CALM
        if isinstance(error, Unreachable):
            patience = afterwards.SILENT
        return await afterwards.look(self.client, pool, patience, recorded_owner(self.old))

    def partial(
        self, pool: Pool, message: str, seen: Observation | None, reasons: Sequence[str] = (), known: int = 0
    ) -> PartialFailure:
        """A partial failure that records what really exists, or that this is not known.

        Args:
            pool: what was wanted.
            message: what happened.
            seen: what exists; None when it is not known.
            reasons: further problems.
            known: the least number of nodes, for when `seen` is None.
        """
        inputs = as_recorded(self.wanted.inputs, self.old or {})
        if seen is None:
            outputs = outputs_of(inputs, known, {"missing": "not known: the cluster does not answer"})
        else:
            outputs = outputs_of(inputs, seen.present, drift.describe(pool, seen))
        if not outlives_stack(inputs) and (full := no_room(Path(str(inputs.get("kubeconfig"))).parent)):
            message = f"{message}; {full}"
        return PartialFailure(f"pool {pool.name}: {message}", self.resource_id, outputs, list(reasons))


def _counted(outputs: Properties) -> int:
    """How many nodes a pool is recorded to have."""
    found = outputs.get("replicas")
    return int(found) if isinstance(found, int | float) else 0
