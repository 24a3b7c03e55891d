"""MultiKueue: Jobs dispatched to five workers per second, one of them lost meanwhile."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from benchmarks.many import memory
from benchmarks.report import Row
from kumulus.kube import Client, load_kubeconfig
from kumulus.kube.messages import MessageCodec
from kumulus.kube.watch import Events, Synced, follow
from tests.support import processes
from tests.support.api import Api
from tests.support.project import Project, node_group
from tests.support.tools import missing

_MOST_MB, _LEAST_A_SECOND = 8000.0, 100.0
_AT_ONCE, _LOOK_EVERY_S, _PATIENCE_S = 8, 0.5, 1500.0
_API = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
_BATCH = "/apis/batch/v1/namespaces/default/jobs"
_PODS = "/api/v1/namespaces/default/pods"
_LOST = "mk-worker-2"
_WORKERS, _NODES, _COUNT = 5, 100, 1000
_WHAT = f"MultiKueue, {_COUNT:,} Jobs of a pod on a hub and {_WORKERS} workers of {_NODES} nodes"
_NAMES = [f"mk-worker-{number}" for number in range(_WORKERS)]
_JOB = "batch.kubernetes.io/job-name"
_WATCHES_S = 60.0


async def dispatched() -> list[Row]:
    """A thousand Jobs of one pod each, twice: undisturbed, and with a worker killed and restarted during the run."""
    return await asyncio.to_thread(_measure)


def _measure() -> list[Row]:
    bound = f"{_LEAST_A_SECOND:.0f} a second are on a worker; at most {_MOST_MB / 1000:.0f} GB"
    if missing("kueue"):
        return []
    with _federation() as (project, up), watched(_workers(project), _PODS) as started:
        try:
            rate, finished = _jobs(project, "quick", "1s")
            used = _memory(project)
            _, lost = _jobs(project, "long", "20s", lose=True)
        except TimeoutError as late:
            return [Row(_WHAT, bound, str(late), False, {})]
    return [
        Row(
            _WHAT,
            bound,
            f"{rate:.1f} a second, all finished after {finished:.0f} s; {used / 1000:.2f} GB; `pulumi up` {up:.0f} s",
            rate >= _LEAST_A_SECOND and used <= _MOST_MB,
            {"jobs_per_s": rate, "finished_s": finished, "memory_mb": used, "up_s": up},
        ),
        Row(
            f"{_COUNT:,} more, a worker killed amid them and brought back by `up --refresh`",
            "none lost, none run twice",
            f"all {_COUNT:,} finished after {lost:.0f} s; of {started.jobs:,} Jobs, {started.twice} had two pods",
            started.jobs == 2 * _COUNT and not started.twice,
            {"finished_s": lost, "started": float(started.jobs), "twice": float(started.twice)},
        ),
    ]


@contextmanager
def _federation() -> Iterator[tuple[Project, float]]:
    """A hub and its workers, and the seconds that ``pulumi up`` took."""
    folder = Path(tempfile.mkdtemp(prefix="kumulus-bench-"))
    project = Project(folder)
    try:
        project.write_config(_config(), "mk")
        yield project, project.up(timeout=900).seconds
    finally:
        project.close()
        shutil.rmtree(folder, ignore_errors=True)


def _memory(project: Project) -> float:
    """MB of all clusters together, what they share counted once."""
    return memory([project.cluster(name) for name in ("mk-hub", *_NAMES)])[1]


def _workers(project: Project) -> dict[str, Path]:
    return {name: project.kubeconfig(name) for name in _NAMES}


def _config() -> dict[str, Any]:
    return {
        "kumulus:hub": "hub",
        "kumulus:defaults": {"nodeGroups": [node_group("cpu", _NODES)]},
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
    seen: set[str] = set()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        parts = [range(each, _COUNT, _AT_ONCE) for each in range(_AT_ONCE)]
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
            if placed == _COUNT and not dispatched_s:
                dispatched_s = took
            if lose and placed >= _COUNT // 3:
                lose = False
                _lose(project)
            if done == _COUNT:
                break
            for each in created:
                if each.done():
                    each.result()
            if took > _PATIENCE_S:
                raise TimeoutError(
                    f"{placed} of {_COUNT:,} Jobs are on a worker and {done} finished after {took:.0f} s"
                )
            time.sleep(_LOOK_EVERY_S)
    return _COUNT / dispatched_s, took


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


class StartedPods:
    """What has been seen so far."""

    def __init__(self) -> None:
        self._by_job: dict[str, set[tuple[str, str]]] = {}

    def see(self, cluster: str, pod: Any) -> None:
        """Take in a pod's state in a cluster."""
        job = pod.metadata.labels.get(_JOB)
        if job and pod.status.phase in ("Running", "Succeeded"):
            self._by_job.setdefault(job, set()).add((cluster, pod.metadata.uid))

    @property
    def jobs(self) -> int:
        """Jobs of which a pod has started."""
        return len(self._by_job)

    @property
    def twice(self) -> int:
        """Jobs of which two pods or more have started, in one cluster or in several."""
        return sum(len(pods) > 1 for pods in self._by_job.values())


@contextmanager
def watched(kubeconfigs: Mapping[str, Path], path: str) -> Iterator[StartedPods]:
    """Watch the pods of clusters until the block ends, beside it; a cluster may be lost and come back.

    Args:
        kubeconfigs: by the cluster's name.

    Raises:
        TimeoutError: the watches have not begun within a minute.
    """
    seen, loop = StartedPods(), asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    synced = {name: asyncio.Event() for name in kubeconfigs}
    tasks = [
        asyncio.run_coroutine_threadsafe(_watch(seen, name, file, path, synced[name]), loop)
        for name, file in kubeconfigs.items()
    ]
    try:
        asyncio.run_coroutine_threadsafe(_all(synced), loop).result(_WATCHES_S)
        yield seen
    finally:
        for task in tasks:
            task.cancel()
        # Each closes its connections; only then is there nothing left to run.
        asyncio.run_coroutine_threadsafe(_ended(), loop).result(_WATCHES_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _watch(seen: StartedPods, name: str, kubeconfig: Path, path: str, synced: asyncio.Event) -> None:
    async with (
        Client(load_kubeconfig(kubeconfig)) as client,
        aclosing(follow(client, path, codec=MessageCodec("Pod"))) as all_news,
    ):
        async for news in all_news:
            if isinstance(news, Synced):
                synced.set()
            elif isinstance(news, Events):
                for event in news.events:
                    if event.item is not None:
                        seen.see(name, event.item)


async def _all(synced: Mapping[str, asyncio.Event]) -> None:
    for each in synced.values():
        await each.wait()


async def _ended() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
