"""Remove nodes with the pods on them, and ResourceSlices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kumulus.kube import ApiError, Unreachable, objects
from kumulus.kube.bulk import for_each
from kumulus.nodes.pools import pods
from kumulus.nodes.pools.live import NODES
from kumulus.nodes.pools.observe import Observation
from kumulus.nodes.pools.result import Meter, Result
from kumulus.nodes.pools.slices import slices_of, withdraw
from kumulus.nodes.reporter import Reporter

if TYPE_CHECKING:
    from kumulus.kube import Client


async def remove_nodes(client: Client, names: Iterable[str], stop: asyncio.Event, report: Reporter) -> Result:
    """Delete nodes, then the pods bound to them; returns when both are gone.

    The nodes go first: otherwise a Job's controller would replace the pods and the scheduler put them back.
    """
    doomed = list(names)
    result = Result()
    if not doomed:
        return result
    meter = Meter(report)

    async def remove(name: str) -> None:
        await objects.remove(client, f"{NODES}/{name}")

    outcome = await for_each(
        doomed,
        remove,
        workers=client.connections,
        stop=stop,
        lanes=client.lanes,
        progress=lambda done: meter.show("nodes removed", done, len(doomed), done),
    )
    result.removed = len(outcome.done)
    result.add(outcome)
    gone = set(outcome.done)
    result.left = Observation(extra=[name for name in doomed if name not in gone])
    try:
        result.pods = await pods.remove_from(client, gone, stop, report)
    except (ApiError, Unreachable, pods.PodsRemain) as error:
        result.problems.append(str(error))
    return result


async def remove_slices(client: Client, pool_name: str, stop: asyncio.Event, result: Result) -> None:
    """Delete every ResourceSlice that carries a pool's label, and add the outcome to a result.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    outcome = await withdraw(client, await slices_of(client, pool_name), stop)
    result.slices += len(outcome.done)
    result.add(outcome)
