"""What is recorded and reported of a node pool after an operation: its number of nodes, drift, partial failures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kumulus.kube import Unreachable
from kumulus.model.pools import Pool
from kumulus.nodes.errors import PartialFailure
from kumulus.nodes.pools import afterwards, drift
from kumulus.nodes.pools.observe import Observation
from kumulus.nodes.pools.result import Result
from kumulus.provider.resources.base import Operation, Properties
from kumulus.provider.resources.in_cluster import drifted, outlives_stack
from kumulus.provider.resources.limit import why
from kumulus.runtimes.directories import no_room


def number(pool: Pool, there: int) -> int:
    """The number of nodes to record: for a pool that an autoscaler scales, its initial number."""
    return pool.replicas if pool.bounds else there


def outputs_of(inputs: Properties, present: int, found: dict[str, Any]) -> Properties:
    """A pool's outputs: its inputs with the number of nodes that exist, and the drift that was found."""
    return drifted({**inputs, "replicas": present}, found)


def counted(outputs: Properties) -> int:
    """How many nodes a pool is recorded to have."""
    found = outputs.get("replicas")
    return int(found) if isinstance(found, int | float) else 0


def patience_after(op: Operation, error: Exception | None = None) -> afterwards.Patience:
    """How patiently to look at what an operation has left, after it was stopped or an error ended it."""
    if isinstance(error, Unreachable):
        return afterwards.SILENT
    return afterwards.STOPPED if op.stop.is_set() else afterwards.CALM


def partial_failure(
    pool: Pool,
    resource_id: str,
    inputs: Properties,
    message: str,
    seen: Observation | None,
    reasons: Sequence[str] = (),
    known: int = 0,
) -> PartialFailure:
    """A partial failure that records what really exists, or that this is not known.

    Args:
        pool: what was wanted.
        resource_id: the resource's id.
        inputs: recorded with it.
        message: what happened.
        seen: what exists; None when it is not known.
        reasons: further problems.
        known: the least number of nodes, for when `seen` is None.
    """
    if seen is None:
        outputs = outputs_of(inputs, known, {"missing": "not known: the cluster does not answer"})
    else:
        outputs = outputs_of(inputs, seen.present, drift.describe(pool, seen))
    if not outlives_stack(inputs) and (full := no_room(Path(str(inputs.get("kubeconfig"))).parent)):
        message = f"{message}; {full}"
    return PartialFailure(f"pool {pool.name}: {message}", resource_id, outputs, list(reasons))


def outcome(result: Result, op: Operation) -> str:
    """What was done, what was not, and why."""
    if result.problems:
        return f"{result.describe()}: {result.problems[0]}"
    return f"{result.describe()}: {why(op)}"
