"""What a preview says of an update of a node pool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kumulus.model.consequences import Hourly, consequences
from kumulus.model.pools import Pool
from kumulus.nodes.pools import scaled
from kumulus.nodes.pools.removal import bound_to
from kumulus.nodes.reporter import Reporter
from kumulus.provider.connections import UNASKED
from kumulus.provider.resources.in_cluster import LOOK_PATIENCE

if TYPE_CHECKING:
    from kumulus.kube import Client

Ask = Callable[[], Awaitable["Client"]]


async def report_update(ask: Ask, old: Pool | None, new: Pool, hourly: Hourly, report: Reporter) -> None:
    """Report nodes, GPUs, CPUs and memory gained or lost, and running pods that would be deleted.

    Args:
        ask: gives a client of the cluster; it may raise one of :data:`UNASKED`.
        old: the pool as it is recorded; None if that is not known.
        new: the pool as it is wanted.
        report: receives the lines.
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
        left = scaled.within(new, there) if new.bounds else None
        return scaled.with_ordinals(old, there), new if left is None else scaled.with_ordinals(new, left)
    return old, new


def _names(pool: Pool) -> set[str]:
    return {pool.node_name(ordinal) for ordinal in range(pool.replicas) if ordinal not in pool.absent}
