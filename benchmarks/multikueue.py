"""MultiKueue: Jobs dispatched to five workers per second, one of them lost meanwhile; and a hub with twenty workers."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.many import memory
from benchmarks.report import Row
from benchmarks.started_pods import watched
from kumulus.toolchain import ToolMissing, find
from tests.support import processes
from tests.support.api import Api
from tests.support.project import Project

_MOST_MB, _LEAST_A_SECOND = 8000.0, 100.0
_AT_ONCE, _LOOK_EVERY_S, _PATIENCE_S = 8, 0.5, 1500.0
_API = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
_BATCH = "/apis/batch/v1/namespaces/default/jobs"
_PODS = "/api/v1/namespaces/default/pods"
_LOST = "mk-worker-2"


@dataclass(frozen=True)
class _Size:
    """Worker clusters, nodes in each of them, and Jobs of one pod each."""

    workers: int
    nodes: int
    jobs: int

    def __str__(self) -> str:
        return f"MultiKueue, {self.jobs:,} Jobs of a pod on a hub and {self.workers} workers of {self.nodes} nodes"

    @property
    def names(self) -> list[str]:
        return [f"mk-worker-{number}" for number in range(self.workers)]


_FIVE, _TWENTY = _Size(5, 100, 1000), _Size(20, 10, 40)


async def dispatched() -> list[Row]:
    """A thousand Jobs of one pod each, twice: undisturbed, and with a worker killed and restarted during the run."""
    return await asyncio.to_thread(_measure_five)


async def on_twenty() -> list[Row]:
    """A hub and twenty small workers, with two Jobs for each."""
    return await asyncio.to_thread(_measure_twenty)


def _measure_five() -> list[Row]:
    bound = f"{_LEAST_A_SECOND:.0f} a second are on a worker; at most {_MOST_MB / 1000:.0f} GB"
    if not _has_kueue():
        return []
    with _federation(_FIVE) as (project, up), watched(_workers(project, _FIVE), _PODS) as started:
        try:
            rate, finished = _jobs(project, _FIVE, "quick", "1s")
            used = _memory(project, _FIVE)
            _, lost = _jobs(project, _FIVE, "long", "20s", lose=True)
        except TimeoutError as late:
            return [Row(str(_FIVE), bound, str(late), False, {})]
    return [
        Row(
            str(_FIVE),
            bound,
            f"{rate:.1f} a second, all finished after {finished:.0f} s; {used / 1000:.2f} GB; `pulumi up` {up:.0f} s",
            rate >= _LEAST_A_SECOND and used <= _MOST_MB,
            {"jobs_per_s": rate, "finished_s": finished, "memory_mb": used, "up_s": up},
        ),
        Row(
            f"{_FIVE.jobs:,} more, a worker killed amid them and brought back by `up --refresh`",
            "none lost, none run twice",
            f"all {_FIVE.jobs:,} finished after {lost:.0f} s; of {started.jobs:,} Jobs, {started.twice} had two pods",
            started.jobs == 2 * _FIVE.jobs and not started.twice,
            {"finished_s": lost, "started": float(started.jobs), "twice": float(started.twice)},
        ),
    ]


def _measure_twenty() -> list[Row]:
    bound = "once: all on a worker and finished, none twice"
    if not _has_kueue():
        return []
    with _federation(_TWENTY) as (project, up):
        used = _memory(project, _TWENTY)
        try:
            with watched(_workers(project, _TWENTY), _PODS) as started:
                rate, finished = _jobs(project, _TWENTY, "quick", "1s")
        except TimeoutError as late:
            return [Row(str(_TWENTY), bound, f"{late}; `pulumi up` {up:.0f} s, {used / 1000:.2f} GB", False, {})]
        destroyed = project.destroy(timeout=600).seconds
    return [
        Row(
            str(_TWENTY),
            bound,
            f"`pulumi up` {up:.0f} s, {used / 1000:.2f} GB; {rate:.2f} a second on {started.clusters} workers, all "
            f"finished after {finished:.0f} s, pods of {started.jobs} started, {started.twice} with two; "
            f"`destroy` {destroyed:.1f} s",
            started.jobs == _TWENTY.jobs and not started.twice,
            {
                "up_s": up,
                "memory_mb": used,
                "jobs_per_s": rate,
                "finished_s": finished,
                "started": float(started.jobs),
                "twice": float(started.twice),
                "destroy_s": destroyed,
            },
        )
    ]


def _has_kueue() -> bool:
    try:
        find("kueue")
    except ToolMissing:
        return False
    return True


@contextmanager
def _federation(size: _Size) -> Iterator[tuple[Project, float]]:
    """A hub and its workers, and the seconds that ``pulumi up`` took."""
    folder = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    project = Project(folder)
    try:
        project.write_config(_config(size), "mk")
        yield project, project.up(timeout=900).seconds
    finally:
        project.close()
        shutil.rmtree(folder, ignore_errors=True)


def _memory(project: Project, size: _Size) -> float:
    """MB of all clusters together, what they share counted once."""
    return memory([project.cluster(name) for name in ("mk-hub", *size.names)])[1]


def _workers(project: Project, size: _Size) -> dict[str, Path]:
    return {name: project.kubeconfig(name) for name in size.names}


def _config(size: _Size) -> dict[str, Any]:
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    placement = [{"availabilityZone": "z", "replicas": size.nodes}]
    group = {"name": "cpu", "placement": placement, "nodeTemplate": {"capacity": capacity}}
    return {
        "kumulus:hub": "hub",
        "kumulus:defaults": {"nodeGroups": [group]},
        "kumulus:clusters": [{"name": "hub", "nodeGroups": []}, {"name": "worker", "count": size.workers}],
        "kumulus:federation": {"kind": "multikueue"},
    }


def _job(name: str, runs: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    annotations = {"pod-complete.stage.kwok.x-k8s.io/delay": runs}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "default"}},
        "spec": {
            "suspend": True,
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }


def _jobs(project: Project, size: _Size, name: str, runs: str, *, lose: bool = False) -> tuple[float, float]:
    """Jobs dispatched per second, from the first one's creation, and seconds until all have finished."""
    begin, dispatched_s = time.monotonic(), 0.0
    seen: set[str] = set()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        parts = [range(each, size.jobs, _AT_ONCE) for each in range(_AT_ONCE)]
        created = [pool.submit(_create, project, name, runs, part) for part in parts]
        hub = project.api("mk-hub")
        while True:
            took = time.monotonic() - begin
            found = [each for each in hub.list(_API) if each["metadata"]["name"].startswith(f"job-{name}-")]
            # Of one that has finished, its worker may have been named between two looks only.
            on_a_worker = [each for each in found if each.get("status", {}).get("clusterName") or _finished(each)]
            seen |= {each["metadata"]["name"] for each in on_a_worker}
            placed = len(seen)
            done = sum(map(_finished, found))
            if placed == size.jobs and not dispatched_s:
                dispatched_s = took
            if lose and placed >= size.jobs // 3:
                lose = False
                _lose(project)
            if done == size.jobs:
                break
            for each in created:
                if each.done():
                    each.result()
            if took > _PATIENCE_S:
                raise TimeoutError(
                    f"{placed} of {size.jobs:,} Jobs are on a worker and {done} finished after {took:.0f} s"
                )
            time.sleep(_LOOK_EVERY_S)
    return size.jobs / dispatched_s, took


def _create(project: Project, name: str, runs: str, numbers: range) -> None:
    # A connection of its own.
    api = Api(project.kubeconfig("mk-hub"))
    try:
        for number in numbers:
            api.create(_BATCH, _job(f"{name}-{number}", runs))
    finally:
        api.close()


def _finished(workload: Mapping[str, Any]) -> bool:
    return any(
        each["type"] == "Finished" and each["status"] == "True"
        for each in workload.get("status", {}).get("conditions") or ()
    )


def _lose(project: Project) -> None:
    lost = [pid for name, pids in project.processes().items() if name.startswith(f"{_LOST}/") for pid in pids]
    assert lost
    processes.kill(lost)
    # What nobody has waited for yet is in the process table still, but not running.
    assert not any(name.startswith(f"{_LOST}/") for name in project.processes())
    project.up("--refresh", timeout=600)
