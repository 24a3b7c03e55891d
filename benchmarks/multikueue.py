"""MultiKueue with a hub and five workers: Jobs dispatched to workers per second, and a worker lost during that time."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from benchmarks.many import memory
from benchmarks.report import Row
from kumulus.toolchain import ToolMissing, find
from tests.support import processes
from tests.support.api import Api
from tests.support.project import Project

_WORKERS, _NODES, _JOBS = 5, 100, 1000
_MOST_MB, _LEAST_A_SECOND = 8000.0, 100.0
_AT_ONCE, _LOOK_EVERY_S, _PATIENCE_S = 8, 0.5, 400.0
_API = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
_BATCH = "/apis/batch/v1/namespaces/default/jobs"
_PODS = "/api/v1/namespaces/default/pods"
_LOST = "mk-worker-2"


async def dispatched() -> list[Row]:
    """A thousand Jobs of one pod each, twice: undisturbed, and with a worker killed and restarted during the run."""
    return await asyncio.to_thread(_measure)


def _measure() -> list[Row]:
    try:
        find("kueue")
    except ToolMissing:
        return []
    folder = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    project = Project(folder)
    names = ["mk-hub", *(f"mk-worker-{number}" for number in range(_WORKERS))]
    try:
        project.write_config(_config(), "mk")
        up = project.up(timeout=900).seconds
        rate, finished = _jobs(project, "quick", "1s")
        used = memory([project.cluster(name) for name in names])[1]
        _, lost = _jobs(project, "long", "20s", lose=True)
        where = {name: _ran(project, name) for name in names[1:]}
    except TimeoutError as late:
        return [Row(_title(), _bound(), str(late), False, {})]
    finally:
        project.close()
        shutil.rmtree(folder, ignore_errors=True)
    again = sum(number > 1 for number in sum(map(Counter, where.values()), Counter()).values())
    return [
        Row(
            _title(),
            _bound(),
            f"{rate:.1f} a second, all finished after {finished:.0f} s; {used / 1000:.2f} GB; `pulumi up` {up:.0f} s",
            rate >= _LEAST_A_SECOND and used <= _MOST_MB,
            {"jobs_per_s": rate, "finished_s": finished, "memory_mb": used, "up_s": up},
        ),
        Row(
            f"{_JOBS} more, a worker killed amid them and brought back by `up --refresh`",
            "none lost, none run twice",
            f"all {_JOBS} finished after {lost:.0f} s; {again} have pods on two workers",
            not again,
            {"finished_s": lost, "twice": float(again)},
        ),
    ]


def _title() -> str:
    return f"MultiKueue, {_JOBS} Jobs of a pod on a hub and {_WORKERS} workers of {_NODES} nodes"


def _bound() -> str:
    return f"{_LEAST_A_SECOND:.0f} a second are on a worker; at most {_MOST_MB / 1000:.0f} GB"


def _config() -> dict[str, Any]:
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    placement = [{"availabilityZone": "z", "replicas": _NODES}]
    group = {"name": "cpu", "placement": placement, "nodeTemplate": {"capacity": capacity}}
    return {
        "kumulus:hub": "hub",
        "kumulus:defaults": {"nodeGroups": [group]},
        "kumulus:clusters": [{"name": "hub", "nodeGroups": []}, {"name": "worker", "count": _WORKERS}],
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


def _jobs(project: Project, name: str, runs: str, *, lose: bool = False) -> tuple[float, float]:
    """Jobs dispatched per second, from the first one's creation, and seconds until all have finished."""
    begin, dispatched_s = time.monotonic(), 0.0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        parts = [range(each, _JOBS, _AT_ONCE) for each in range(_AT_ONCE)]
        created = [pool.submit(_create, project, name, runs, part) for part in parts]
        hub = project.api("mk-hub")
        while True:
            took = time.monotonic() - begin
            found = [each for each in hub.list(_API) if each["metadata"]["name"].startswith(f"job-{name}-")]
            placed = sum(bool(each.get("status", {}).get("clusterName")) for each in found)
            done = sum(map(_finished, found))
            if placed == _JOBS and not dispatched_s:
                dispatched_s = took
            if lose and placed >= _JOBS // 3:
                lose = False
                _lose(project)
            if done == _JOBS:
                break
            for each in created:
                if each.done():
                    each.result()
            if took > _PATIENCE_S:
                raise TimeoutError(f"{placed} of {_JOBS} Jobs are on a worker and {done} finished after {took:.0f} s")
            time.sleep(_LOOK_EVERY_S)
    return _JOBS / dispatched_s, took


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
    assert not any(map(psutil.pid_exists, lost))
    project.up("--refresh", timeout=600)


def _ran(project: Project, name: str) -> list[str]:
    """The Jobs with pods that have started."""
    pods = project.api(name).list(_PODS)
    return [
        each["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        for each in pods
        if each["status"].get("phase") in ("Running", "Succeeded")
    ]
