"""What fleets of growing size cost: time, memory, CPU and writes, during creation and when idle.

The figures go to ``benchmarks/results/sizes.json``; ``kumulus.model.scale`` and docs/scale.md rest on them.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.control_plane import ControlPlane, control_plane
from benchmarks.fleet import Fleet, until_ready
from benchmarks.report import Row
from benchmarks.usage import requests, usage
from kumulus.model.scale import LEASE_SECONDS, default_heartbeat_factor

SIZES = (30, 1000, 2550, 10_000, 20_000, 50_000, 100_000)
RESULTS = Path(__file__).parent / "results" / "sizes.json"
# Renewals come in bursts, as the nodes were created: whole rounds are counted, each a quarter of the lease duration.
# KWOK adds up to 4 % to it, 2 % on average. The round in which it takes the new nodes is left out.
_STANDING_S = 100.0
_JITTER = 1.02
_SETTLING_S = 15.0
# Nodes that are not Ready by then never will be.
_MOST_S = 900.0


@dataclass
class Size:
    """One fleet.

    Attributes:
        nodes: how many.
        ready_s: seconds from the update's start until all were Ready.
        creating_cpu_s: CPU seconds by component in that time; the plugin's own under ``plugin``.
        standing_cores: cores used by each component when nothing changes.
        memory_mb: resident memory by component then.
        leases_per_s: lease renewals a second then.
        etcd_mb: size of etcd's database file.
        steady: whether all nodes were still Ready at the end.
        heartbeat_factor: what the leases of this size are multiplied by.
    """

    nodes: int
    heartbeat_factor: int
    ready_s: float
    creating_cpu_s: dict[str, float]
    standing_cores: dict[str, float]
    memory_mb: dict[str, float]
    leases_per_s: float
    etcd_mb: float
    steady: bool


async def curves() -> list[Row]:
    """Measure one size after the other, each on a fresh control plane sized for it, until one is not steady.

    ``KUMULUS_BENCH_SIZES`` selects some, such as ``30,1000``; the recorded figures of others stay.
    """
    chosen = [int(word) for word in os.environ.get("KUMULUS_BENCH_SIZES", "").split(",") if word]
    known = {entry["nodes"]: entry for entry in (json.loads(RESULTS.read_text()) if RESULTS.exists() else [])}
    measured: list[Size] = []
    for nodes in chosen or SIZES:
        async with control_plane(nodes=nodes) as plane:
            size = await _measure(plane, nodes)
        measured.append(size)
        known[nodes] = asdict(size)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps([known[count] for count in sorted(known)], indent=2) + "\n")
        if not size.steady:
            break
    return [_row(size) for size in measured]


async def _measure(plane: ControlPlane, nodes: int) -> Size:
    directory = plane.observed.directory
    factor = default_heartbeat_factor(nodes)
    standing = max(_STANDING_S, LEASE_SECONDS * factor / 4) * _JITTER
    fleet = Fleet(plane)
    before, own, started = usage(directory), psutil.Process().cpu_times(), time.monotonic()
    await fleet.become(nodes)
    ready = await asyncio.wait_for(fleet.until_ready(nodes), _MOST_S) - started
    spent = usage(directory).cpu_since(before)
    spent["plugin"] = sum(psutil.Process().cpu_times()[:2]) - sum(own[:2])
    for _ in range(round(_MOST_S)):
        if (await requests(plane.client))["PUT leases 200"] >= nodes:
            break
        await asyncio.sleep(1)
    await asyncio.sleep(_SETTLING_S)
    counted, resting = await requests(plane.client), usage(directory)
    await asyncio.sleep(standing)
    after, then = await requests(plane.client), usage(directory)
    try:
        await asyncio.wait_for(until_ready(plane.client, nodes), 30)
        steady = True
    except TimeoutError:
        steady = False
    await fleet.close()
    database = Path(directory) / "etcd" / "member" / "snap" / "db"
    return Size(
        nodes=nodes,
        heartbeat_factor=factor,
        ready_s=round(ready, 2),
        creating_cpu_s={name: round(value, 2) for name, value in spent.items()},
        standing_cores={name: round(value / standing, 4) for name, value in then.cpu_since(resting).items()},
        memory_mb={name: round(value, 1) for name, value in then.memory.items()},
        leases_per_s=round((after["PUT leases 200"] - counted["PUT leases 200"]) / standing, 1),
        etcd_mb=round(database.stat().st_size / 1e6, 1),
        steady=steady,
    )


def _row(size: Size) -> Row:
    most = max(size.creating_cpu_s, key=lambda name: size.creating_cpu_s[name])
    share = size.creating_cpu_s[most] / sum(size.creating_cpu_s.values())
    return Row(
        f"{size.nodes:,} nodes",
        "",
        f"Ready in {size.ready_s:.1f} s ({size.nodes / size.ready_s:,.0f}/s; {share:.0%} of the CPU in {most}); then "
        f"{sum(size.memory_mb.values()) / 1000:.2f} GB, {sum(size.standing_cores.values()):.2f} cores, "
        f"{size.leases_per_s:,.0f} lease renewals/s, etcd {size.etcd_mb:,.0f} MB"
        + ("" if size.steady else "; not all stayed Ready"),
        None,
        {"ready_s": size.ready_s, "memory_mb": sum(size.memory_mb.values())},
    )
