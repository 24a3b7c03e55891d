"""In which order a restore writes what it puts back, and what it waits for."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from kumulus.extras.snapshots.kwok import _order, _paused_controllers
from kumulus.runtimes.directories import exclusive
from kumulus.runtimes.kwok.layout import Layout


def test_owners_are_put_back_before_what_they_own_and_pods_last() -> None:
    keys = [b"/registry/pods/a/p", b"/registry/replicasets/a/r", b"/registry/resourceslices/s", b"/registry/minions/n"]
    keys += [b"/registry/deployments/a/d", b"/registry/namespaces/a", b"/registry/jobs/a/j", b"/registry/cronjobs/a/c"]
    ordered = [key.split(b"/")[2].decode() for key in sorted(keys, key=_order)]
    assert ordered == [
        *("namespaces", "minions", "cronjobs", "deployments", "replicasets", "jobs", "resourceslices", "pods"),
    ]


async def test_controllers_are_not_paused_while_another_run_changes_the_cluster(tmp_path: Path) -> None:
    layout = Layout.of(str(tmp_path), "dev")
    layout.directory.mkdir(parents=True)
    paused, done = threading.Event(), threading.Event()

    def restore() -> None:
        with _paused_controllers(layout):
            paused.set()
            done.wait(10)

    async def update() -> bool:
        async with exclusive(layout) as waited:
            return waited

    async with exclusive(layout):
        restoring = asyncio.create_task(asyncio.to_thread(restore))
        await asyncio.sleep(0.3)
        assert not paused.is_set()
    assert await asyncio.to_thread(paused.wait, 10)
    updating = asyncio.create_task(update())
    await asyncio.sleep(0.3)
    assert not updating.done()
    done.set()
    await restoring
    assert await updating
