"""Ten small clusters of one stack, made in parallel by the real ``pulumi``: how long it takes and what they use."""

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.control_plane import CAPACITY
from benchmarks.report import Row
from kumulus.host import processes
from tests.support.pods import is_ready
from tests.support.project import NODES, Project

_CLUSTERS, _NODES = 10, 30
_MOST_S, _MOST_MB = 60.0, 4000.0
# Garbage from the start is collected gradually, most of it by the first regular collection.
_SETTLING_S = 30.0


async def side_by_side() -> list[Row]:
    """Ten clusters of thirty nodes."""
    return await asyncio.to_thread(_measure)


def _measure() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    project = Project(folder)
    placement = [{"availabilityZone": "use1", "replicas": _NODES}]
    group = {"name": "gpu", "placement": placement, "nodeTemplate": {"capacity": CAPACITY}}
    clusters = [{"name": "c", "count": _CLUSTERS}]
    try:
        project.write_config({"kumulus:defaults": {"nodeGroups": [group]}, "kumulus:clusters": clusters}, "ten")
        took = project.up(timeout=600).seconds
        names = [f"ten-c-{number}" for number in range(_CLUSTERS)]
        for name in names:
            nodes = project.api(name).list(NODES)
            assert len(nodes) == _NODES
            assert all(map(is_ready, nodes))
        time.sleep(_SETTLING_S)
        resident, shared_out = memory([project.cluster(name) for name in names])
        destroyed = project.destroy().seconds
    finally:
        project.close()
        shutil.rmtree(folder, ignore_errors=True)
    return [
        Row(
            f"{_CLUSTERS} clusters of {_NODES} nodes",
            f"up within {_MOST_S:.0f} s, at most {_MOST_MB / 1000:.0f} GB together",
            f"`pulumi up` {took:.1f} s, all Ready; {shared_out / 1000:.2f} GB, what they share counted once "
            f"({resident / 1000:.2f} GB where each counts it); `destroy` {destroyed:.1f} s",
            took <= _MOST_S and shared_out <= _MOST_MB,
            {"up_s": took, "memory_mb": shared_out, "resident_mb": resident, "destroy_s": destroyed},
        )
    ]


def memory(directories: list[Path]) -> tuple[float, float]:
    """Resident MB, and proportional MB: pages shared by several processes, such as code, are divided among them."""
    pids = [pid for each in directories for found in processes.running(each).values() for pid in found]
    seen = [psutil.Process(pid).memory_full_info() for pid in pids]
    return sum(each.rss for each in seen) / 1e6, sum(each.pss for each in seen) / 1e6
