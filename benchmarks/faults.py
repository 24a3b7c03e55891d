"""What faults cost at 10,000 nodes: a tenth of them faulted, against as many relabelled; previews with and without."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.control_plane import CAPACITY, Quiet, control_plane, pools
from benchmarks.fleet import Fleet
from benchmarks.report import Row
from benchmarks.usage import until_at_rest
from provider.connections import Connections
from provider.resources.base import Operation
from provider.resources.fault import Fault
from provider.runtimes.kwok.priority import Way
from spec.fault_catalog import kinds
from tests.support.project import Project

_NODES = 10_000
_FAULTED = 1_000
_ROUNDS = 3
_TURNS = 5


async def applied() -> list[Row]:
    """A fault on 1,000 of 10,000 nodes, applied and taken away, against a new label on the 1,111 nodes of one pool."""
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
        resource = Fault(connections, Way().cleared)
        op = Operation("urn:pulumi:bench::bench::kumulus:index:Fault::bench", Quiet(), asyncio.Event())
        times: dict[str, list[float]] = {"labelled_s": [], "applied_s": [], "removed_s": []}

        async def rested() -> None:
            await asyncio.to_thread(until_at_rest, plane.observed.directory)

        for turn in range(_TURNS):
            await rested()
            spent = await fleet.relabel(one.name, {"example.com/turn": str(turn)})
            times["labelled_s"].append(spent * _FAULTED / one.replicas)
            inputs: dict[str, Any] = {
                **place,
                "name": "bench",
                "kind": "gpu-dbe",
                "nodes": tenth,
                "node": kinds()["gpu-dbe"].node.to_plain(),
            }
            await rested()
            started = time.monotonic()
            await resource.create(op, inputs)
            times["applied_s"].append(time.monotonic() - started)
            await rested()
            started = time.monotonic()
            await resource.delete(op, "bench", inputs)
            times["removed_s"].append(time.monotonic() - started)
        await connections.close()
        await fleet.close()
    labelled, put, taken = (statistics.median(times[key]) for key in ("labelled_s", "applied_s", "removed_s"))
    return [
        Row(
            "A fault (condition, one GPU fewer) on 1,000 of 10,000 nodes",
            "the time of updating 1,000 (a label)",
            f"{put / labelled:.2f} times ({put:.2f} s against {labelled:.2f} s; removed in {taken:.2f} s)",
            put <= labelled,
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
