"""The largest fleet promised for one machine: 50,000 nodes by the real ``pulumi``, and what they cost when idle."""

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.engine import cluster, empty_program
from benchmarks.fleet import until_ready
from benchmarks.report import Row
from benchmarks.usage import until_at_rest, usage
from kumulus.kube import Client, load_kubeconfig
from tests.support.project import Project

_NODES = int(os.environ.get("KUMULUS_BENCH_LARGEST", "50000"))
_READY_S, _MEMORY_GB, _CORES, _PREVIEW_S, _DESTROY_S = 60.0, 12.0, 1.0, 1.0, 5.0
# Two rounds of renewals.
_STANDING_S = 900.0
_ROUNDS = 3


async def fleet() -> list[Row]:
    """Up, idle for 15 minutes, preview, destroy."""
    folder = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    empty, large = Project(folder / "empty", empty_program(folder)), Project(folder / "large")
    try:
        empty.write_config({}, "empty")
        await asyncio.to_thread(empty.up)
        large.write_stack(cluster(_NODES), "large")
        started = time.monotonic()
        await asyncio.to_thread(large.up, timeout=900)
        up = time.monotonic() - started
        (directory,) = (path for path in (large.home / "clusters").iterdir() if path.is_dir())
        async with Client(load_kubeconfig(directory / "kubeconfig.yaml")) as client:
            ready = await asyncio.wait_for(until_ready(client, _NODES), 900) - started
            most, cores = await _stand(str(directory))
            try:
                await asyncio.wait_for(until_ready(client, _NODES), 30)
                steady = True
            except TimeoutError:
                steady = False
        await asyncio.to_thread(until_at_rest, str(directory))
        pairs = [await asyncio.to_thread(_previews, empty, large) for _ in range(_ROUNDS)]
        destroyed = (await asyncio.to_thread(large.destroy)).seconds
    finally:
        large.close()
        empty.close()
        shutil.rmtree(folder, ignore_errors=True)
    over = statistics.median(plain - bare for bare, plain in pairs)
    what = f"{_NODES:,} nodes"
    return [
        Row(
            f"{what}: `pulumi up` until all are Ready",
            f"{_READY_S:.0f} s",
            f"{ready:.1f} s, the command {up:.1f} s",
            ready <= _READY_S,
            {"ready_s": ready, "up_s": up},
        ),
        Row(
            f"{what} that stand for {_STANDING_S / 60:.0f} minutes",
            f"all Ready at the end, at most {_MEMORY_GB:.0f} GB at any time and {_CORES:.0f} core",
            f"{'all Ready' if steady else 'not all Ready'}, {most / 1000:.1f} GB at most, {cores:.2f} cores",
            steady and most <= _MEMORY_GB * 1000 and cores <= _CORES,
            {"memory_mb": most, "cores": cores, "steady": steady},
        ),
        Row(
            f"`preview` without changes, {what}, over an empty program's",
            f"{_PREVIEW_S:.0f} s more",
            f"{over:.2f} s more ({statistics.median(plain for _, plain in pairs):.2f} s)",
            over <= _PREVIEW_S,
            {"over_s": over},
        ),
        Row(
            f"`destroy`, {what}",
            f"{_DESTROY_S:.0f} s",
            f"{destroyed:.1f} s",
            destroyed <= _DESTROY_S,
            {"destroy_s": destroyed},
        ),
    ]


async def _stand(directory: str) -> tuple[float, float]:
    """A cluster's peak memory in MB over a period, and the mean number of cores it uses."""
    begin, until, most = usage(directory), time.monotonic() + _STANDING_S, 0.0
    while time.monotonic() < until:
        await asyncio.sleep(10)
        most = max(most, sum(usage(directory).memory.values()))
    return most, sum(usage(directory).cpu_since(begin).values()) / _STANDING_S


def _previews(empty: Project, large: Project) -> tuple[float, float]:
    """Seconds of a preview of nothing, and of the fleet without changes."""
    return empty.preview().seconds, large.preview("--expect-no-changes").seconds
