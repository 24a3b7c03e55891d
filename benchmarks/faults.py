"""What faults cost at 10,000 nodes: a tenth of them faulted, against as many relabelled; previews with and without."""

import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.control_plane import CAPACITY, control_plane, pools
from benchmarks.fleet import Fleet
from benchmarks.report import Row
from benchmarks.usage import until_at_rest
from kumulus.nodes.catalog.faults import fault_kinds
from kumulus.provider.connections import Connections
from kumulus.provider.resources.base import Operation
from kumulus.provider.resources.fault import FaultResource
from kumulus.runtimes.kwok.priority import CpuYield
from tests.support.project import Project
from tests.support.said import Said

_NODES = 10_000
_FAULTED = 1_000
_ROUNDS = 3
_TURNS = 8


async def applied() -> list[Row]:
    """A fault on 1,000 of 10,000 nodes, applied and removed, against a new label on the 1,111 nodes of one pool."""
    async with control_plane() as plane:
        fleet = Fleet(plane)
        await fleet.become(_NODES)
        place = {
            "kubeconfig": plane.observed.kubeconfig,
            "clusterIdentity": plane.observed.identity,
            "clusterName": "bench",
        }
        tenth = {pool.name: f"0-{pool.replicas // 10 - 1}" for pool in pools(_NODES)}
        one = pools(_NODES)[0]
        connections = Connections()
        resource = FaultResource(connections, CpuYield().yielding)
        op = Operation("urn:pulumi:bench::bench::kumulus:index:Fault::bench", Said(), asyncio.Event())
        times: dict[str, list[float]] = {"labelled_s": [], "applied_s": [], "removed_s": []}

        inputs: dict[str, Any] = {
            **place,
            "name": "bench",
            "kind": "gpu-dbe",
            "nodes": tenth,
            "node": fault_kinds()["gpu-dbe"].node.to_plain(),
        }

        async def timed(key: str, work: Callable[[], Awaitable[object]]) -> None:
            await asyncio.to_thread(until_at_rest, plane.observed.directory)
            started = time.monotonic()
            await work()
            times[key].append(time.monotonic() - started)

        async def labelled(turn: int) -> None:
            await timed("labelled_s", partial(fleet.relabel, one.name, {"example.com/turn": str(turn)}))
            times["labelled_s"][-1] *= _FAULTED / one.replicas

        async def faulted(_: int) -> None:
            await timed("applied_s", partial(resource.create, op, inputs))
            await timed("removed_s", partial(resource.delete, op, "bench", inputs))

        for turn in range(_TURNS):
            # KWOK renews all leases within the same ten seconds of each minute. With a fixed order, one of the two
            # would coincide with that every time, and the other never.
            for work in (labelled, faulted) if turn % 2 else (faulted, labelled):
                await work(turn)
        await connections.close()
        await fleet.close()
    updated, put, taken = (statistics.median(times[key]) for key in ("labelled_s", "applied_s", "removed_s"))
    return [
        Row(
            "A fault (condition, one GPU fewer) on 1,000 of 10,000 nodes",
            "the time of updating 1,000 (a label)",
            f"{put / updated:.2f} times ({put:.2f} s against {updated:.2f} s; removed in {taken:.2f} s)",
            put <= updated,
            {key: statistics.median(values) for key, values in times.items()},
        )
    ]


async def previewed() -> list[Row]:
    """Previews of 10,000 nodes with 1,000 faulted and without any fault, by the real ``pulumi``."""
    return await asyncio.to_thread(_measure)


def _measure() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    project = Project(folder)
    try:
        project.write_stack(_cluster(), "large")
        project.up(timeout=900)
        plain = [project.preview("--expect-no-changes").seconds for _ in range(_ROUNDS)]
        project.write_stack(_cluster(faulted=True), "large")
        added = [project.preview().seconds for _ in range(_ROUNDS)]
        project.up(timeout=900)
        held = [project.preview("--expect-no-changes").seconds for _ in range(_ROUNDS)]
        state = project.backend_file().stat().st_size / 1024
    finally:
        project.close()
        shutil.rmtree(folder, ignore_errors=True)
    bare, adding, holding = (statistics.median(values) for values in (plain, added, held))
    worst = max(adding, holding) - bare
    return [
        Row(
            "`preview` of 10,000 nodes with 1,000 faulted, over one without faults",
            "0.5 s more",
            f"{adding - bare:.2f} s more while they are added, {holding - bare:.2f} s more while they hold "
            f"({bare:.2f} s without; state {state:.0f} KB)",
            worst <= 0.5,
            {"preview_s": bare, "adding_s": adding, "holding_s": holding, "state_kb": state},
        )
    ]


def _cluster(faulted: bool = False) -> dict[str, Any]:
    zones = ("use1", "use2", "use3")
    groups = [
        {
            "name": group,
            "placement": [{"availabilityZone": zone, "replicas": _NODES // 9} for zone in zones],
            "nodeTemplate": {"capacity": dict(CAPACITY)},
        }
        for group in ("a2", "a3", "b2")
    ]
    faults = [{"name": "tenth", "kind": "gpu-dbe", "target": {"count": _FAULTED}}] if faulted else []
    return {"nodeGroups": groups, "faults": faults}
