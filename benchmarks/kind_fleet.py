"""A fleet of 2,550 nodes in a real kind cluster, by the real ``pulumi``: up, up again, destroy; time and resources."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from benchmarks.fleet import until_ready
from benchmarks.report import Row
from kumulus import toolchain
from kumulus.kind_image import image
from kumulus.kube import Client, load_kubeconfig
from tests.support import docker, kind
from tests.support.project import Project

_NAME = "kumulus-bench"
_NODE = f"{_NAME}-control-plane"
_FLEET = 2_550
# The fleet, and the container that is kind's node.
_NODES = _FLEET + 1
_PATIENCE_S = 900
_LOOK_S = 10.0
_SHOWN = 4


async def large_kind() -> list[Row]:
    """Measure gcp-large on the runtime kind; without Docker or the node image, prints that and returns nothing."""
    lacking = docker.trouble() or ("" if image.archive().exists() else "no node image; `make kind-image` makes one")
    if lacking:
        print(f"left out: {lacking}", file=sys.stderr, flush=True)
        return []
    return await asyncio.to_thread(_measure)


def _measure() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    project = Project(folder)
    try:
        toolchain.install_plugins(project.pulumi_home)
        cluster = project.copy_stack("gcp-large") | {"name": _NAME, "runtime": "kind"}
        cluster |= {"kind": {"nodeImage": image.ensure().name}, "kwokCharts": kind.kwok_charts()}
        project.write_stack({**cluster, "nodeGroups": []})
        alone = project.up(timeout=_PATIENCE_S).seconds
        project.write_stack(cluster)
        started = time.monotonic()
        filled = project.up(timeout=_PATIENCE_S).seconds
        ready = asyncio.run(_all_ready(project.kubeconfig(_NAME))) - started
        used = _Used()
        again = project.up("--expect-no-changes", timeout=_PATIENCE_S).seconds
        destroyed = project.destroy().seconds
        left = kind.containers(_NAME)
    finally:
        for container in kind.containers(_NAME):
            docker.docker("rm", "--force", "--volumes", container, timeout=60)
        project.close()
        shutil.rmtree(folder, ignore_errors=True)
    if left:
        raise RuntimeError(f"destroy left {left}")
    figures = {"cluster_s": alone, "up_s": filled, "ready_s": ready, "again_s": again, "destroy_s": destroyed}
    shown = ", ".join(f"{name} {megabytes / 1000:.2f}" for name, megabytes in used.memory.most_common(_SHOWN))
    return [
        Row(
            "2,550 nodes on a kind cluster until all are Ready",
            "",
            f"{ready:.0f} s ({_FLEET / ready:.0f}/s), after {alone:.0f} s for the cluster with KWOK; then "
            f"{used.memory.total() / 1000:.2f} GB ({shown}), {used.cores:.2f} cores",
            None,
            {**figures, "memory_mb": used.memory.total(), "cores": used.cores},
        ),
        Row("`up` without changes, 2,550 nodes on a kind cluster", "", f"{again:.1f} s", None, figures),
        Row("`destroy` of 2,550 nodes with their kind cluster", "", f"{destroyed:.1f} s", None, figures),
    ]


async def _all_ready(kubeconfig: Path) -> float:
    async with Client(load_kubeconfig(kubeconfig)) as client, asyncio.timeout(_PATIENCE_S):
        return await until_ready(client, _NODES)


class _Used:
    """What the node's container uses while nothing is changed.

    Attributes:
        memory: resident memory in MB by program.
        cores: CPU cores used, over the seconds of the measurement.
    """

    def __init__(self) -> None:
        self.memory: Counter[str] = Counter()
        first = psutil.Process(int(docker.docker("inspect", "--format", "{{.State.Pid}}", _NODE)))
        found = [first, *first.children(recursive=True)]
        before = _cpu_seconds(found)
        time.sleep(_LOOK_S)
        self.cores = (_cpu_seconds(found) - before) / _LOOK_S
        for process in found:
            if process.is_running():
                self.memory[process.name()] += round(process.memory_info().rss / 1e6)


def _cpu_seconds(found: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in found if process.is_running())
