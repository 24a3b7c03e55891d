"""Which pods of Jobs have started in which cluster, by watches: the pods may soon be gone again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from kumulus.kube import Client, load_kubeconfig
from kumulus.kube.messages import MessageCodec
from kumulus.kube.watch import Events, Synced, follow

_JOB = "batch.kubernetes.io/job-name"
_PATIENCE_S = 60.0


class StartedPods:
    """What has been seen so far."""

    def __init__(self) -> None:
        self._by_job: dict[str, set[tuple[str, str]]] = {}

    def see(self, cluster: str, pod: Any) -> None:
        """Take in a pod's state in a cluster.

        Args:
            cluster: its name.
            pod: the pod, as Kubernetes' message.
        """
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
        path: of the pods.

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
        asyncio.run_coroutine_threadsafe(_all(synced), loop).result(_PATIENCE_S)
        yield seen
    finally:
        for task in tasks:
            task.cancel()
        # Each closes its connections; only then is there nothing left to run.
        asyncio.run_coroutine_threadsafe(_ended(), loop).result(_PATIENCE_S)
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
