"""Space in etcd: its quota, and how an etcd that has reached it gets space again.

When etcd's data reach its quota, it raises an alarm and accepts no more writes except deletions. What was deleted or
overwritten still takes up space until it is compacted and the file is rewritten; and the alarm stays until somebody
disarms it (https://etcd.io/docs/v3.6/op-guide/maintenance/).
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kumulus.host import processes
from kumulus.kube.etcd import Etcd, EtcdError
from kumulus.model.quantity import parse
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.kwok import components, storage
from kumulus.runtimes.kwok.access import ETCD
from kumulus.runtimes.kwok.layout import Layout

_FLAG = "--quota-backend-bytes="
# kwokctl's default (v0.8.0, pkg/config/vars.go), and etcd's maximum (https://etcd.io/docs/v3.6/dev-guide/limit/).
_DEFAULT = "8Gi"
_MI = 2**20


def quota(options: Mapping[str, Any]) -> int:
    """The bytes that a stack's options allow for etcd's data."""
    return int(parse(options.get("etcdQuota") or _DEFAULT).nanos // 10**9)


def change_quota(layout: Layout, options: Mapping[str, Any]) -> bool:
    """Give etcd the quota of a stack's options, and end an etcd that has another one; returns whether it had."""
    settings, wanted = layout.settings(), f"{_FLAG}{quota(options)}"
    args = components.arguments(settings, ETCD)
    if not args or wanted in args:
        return False
    for each in settings["components"]:
        if each.get("name") == ETCD:
            each["args"] = [*(arg for arg in args if not arg.startswith(_FLAG)), wanted]
    processes.end(processes.running(layout.directory).get(ETCD, []))
    layout.write_settings(settings)
    return True


async def is_full(layout: Layout) -> bool:
    """Whether etcd has raised the alarm; False if it cannot be asked."""
    try:
        async with _connection(layout) as etcd:
            return bool(await etcd.full_members())
    except (EtcdError, OSError):
        return False


async def relieve(layout: Layout, report: Reporter) -> bool:
    """Make space in an etcd that has raised the alarm, and disarm it; False without an alarm or an answer."""
    if not await is_full(layout):
        return False
    report.status("etcd is full: it is compacted and defragmented")
    try:
        async with _connection(layout) as etcd:
            before, after = await etcd.make_room()
    except (EtcdError, OSError) as error:
        report.warn(f"etcd of cluster {layout.name} is full, and could not be compacted and defragmented: {error}")
        return False
    report.warn(
        f"etcd of cluster {layout.name} was full: compacted and defragmented, its data take "
        f"{after // _MI:,} MiB instead of {before // _MI:,} MiB"
    )
    return True


@asynccontextmanager
async def _connection(layout: Layout) -> AsyncIterator[Etcd]:
    """A connection to a cluster's etcd for a few requests."""
    found = storage.connected(layout)
    try:
        yield found
    finally:
        await found.close()


async def relieve_cluster(kubeconfig: str, report: Reporter) -> bool:
    """Like :func:`relieve`, for the cluster of a kubeconfig; False if the cluster is not of this runtime."""
    layout = Layout(Path(kubeconfig).parent)
    return layout.kwok_file.exists() and await relieve(layout, report)
