"""An idle cluster: a week of lease renewals, compressed in time, makes neither its files nor its processes grow."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

from kumulus.runtimes.kwok import starting
from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import LEASES, Plane, Pools, plane_at, pools
from tests.support import processes
from tests.support.said import Said
from tests.support.trials import Trial, note, soaking

pytestmark = pytest.mark.integration
__all__ = ["pools"]

# kwok-controller renews a lease every quarter of its duration: 200 s with kwokctl's own factor of 5, 1 s with this one,
# the shortest possible.
FACTOR, COMPRESSED, USUAL_S = 0.025, 200, 50
WEEK_S = 7 * 24 * 3600
# Kubernetes compacts etcd every five minutes.
COMPACTION = f"{5 * 60 * 1000 // COMPRESSED}ms"
# On an idle machine the whole week takes 50 minutes and a sample SAMPLE_S; a busy machine may need SLOWER times as
# long. A sample has as many renewals as one of 20 nodes would have in 45 s.
NODES, SAMPLE_S, SLOWER = 20 if soaking() else 50, 18.0, 4
# How often files and processes are measured.
SAMPLES = 20
BOUND_DISK = 256 << 20
BOUND_MEMORY = 1536 << 20


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with plane_at(tmp_path_factory.mktemp("home"), heartbeatFactor=FACTOR) as made:
        yield made


@dataclass(frozen=True)
class Size:
    """What a cluster uses."""

    disk: int
    """Bytes of all its files."""
    database: int
    """Bytes of etcd's database."""
    log: int
    """Bytes of the components' logs."""
    memory: int
    """Resident bytes of its processes."""


def size(plane: Plane) -> Size:
    def taken(folder: Path, suffix: str = "") -> int:
        found = (path for path in folder.rglob(f"*{suffix}") if path.is_file() and not path.is_symlink())
        return sum(path.stat().st_blocks * 512 for path in found)

    pids = [pid for each in plane.processes().values() for pid in each]
    return Size(
        taken(plane.directory),
        taken(plane.directory / "etcd", "db"),
        taken(plane.directory / "logs"),
        sum(psutil.Process(pid).memory_info().rss for pid in pids),
    )


def renewed(plane: Plane) -> int:
    """The number of lease renewals and other writes so far, from the cluster's revision."""
    return int(plane.api.get(f"{LEASES}?limit=1")["metadata"]["resourceVersion"])


async def compress(plane: Plane) -> None:
    """Have etcd compacted more often, in proportion to the lease renewals."""
    layout = Layout(plane.directory)
    settings, *others = layout.documents()
    for component in settings["components"]:
        if component["name"] == "kube-apiserver":
            component["args"].append(f"--etcd-compaction-interval={COMPACTION}")
    layout.write_documents([settings, *others])
    processes.kill(plane.processes()["kube-apiserver"])
    await starting.start_components(layout)
    await starting.all_running(layout, Said())


def _written(plane: Plane, renewals: float) -> bool:
    return renewed(plane) >= renewals


async def test_a_weeks_leases_make_it_grow_by_no_more_than_is_stated(plane: Plane, pools: Pools) -> None:
    await compress(plane)
    await pools.create(pools.inputs(NODES))
    processes.await_that(lambda: len(plane.api.list(LEASES)) == NODES, 60, "every node's lease")
    simulating = WEEK_S if soaking() else SAMPLE_S * COMPRESSED
    begin, began = renewed(plane), time.monotonic()
    sizes = []
    for number in range(1, SAMPLES + 1):
        writes = simulating / USUAL_S * NODES * number / SAMPLES
        processes.await_that(
            partial(_written, plane, begin + writes),
            SLOWER * simulating / COMPRESSED,
            f"sample {number} of {SAMPLES}",
            pause=0.2,
        )
        sizes.append(size(plane))
        hours = (renewed(plane) - begin) / NODES * USUAL_S / 3600
        print(f"{time.monotonic() - began:.0f} s, {hours:.1f} h: {sizes[-1]}", file=sys.stderr, flush=True)
    # The first fifth is left for caches to fill.
    early, late, written = sizes[SAMPLES // 5 - 1], sizes[-1], renewed(plane) - begin
    simulated = written / NODES * USUAL_S
    told = (
        f"{written:,} writes, {simulated / 3600:.0f} h; disk {early.disk >> 20} → {late.disk >> 20} MiB, database "
        f"{early.database >> 10} → {late.database >> 10} KiB, logs {early.log >> 10} → {late.log >> 10} KiB, memory "
        f"{early.memory >> 20} → {late.memory >> 20} MiB"
    )
    well = (
        max(each.disk for each in sizes) < BOUND_DISK
        and max(each.memory for each in sizes) < BOUND_MEMORY
        and max(each.database for each in sizes) <= 2 * early.database
    )
    took = time.monotonic() - began
    note(Trial("left alone", f"leases of {NODES} nodes", f"{took:.0f} s", told, well, took, injected=written))
    assert well, told
    # A log line per renewal would dominate the logs of a large fleet: 320 bytes for each of 120 million a week.
    assert late.log - early.log < 100 * written, told
