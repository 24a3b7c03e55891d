"""Find components that run and do not answer: stopped by a signal, or stuck. Only an end and a new start helps them."""

from __future__ import annotations

from kumulus.cluster.reporter import Reporter
from kumulus.host import processes
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.runtimes.kwok import etcd
from kumulus.runtimes.kwok.layout import Layout

# An API server that is only busy, or whose etcd has just come back, says something within this.
_SILENCE = 15.0
_ETCD_SILENCE = 5.0


async def end_hung(layout: Layout, report: Reporter) -> None:
    """End an API server or an etcd that has not answered for a while; their data survive it, as any crash.

    Args:
        layout: the cluster.
        report: is told what is ended, and why.
    """
    alive = processes.running(layout.directory)
    if not {"etcd", "kube-apiserver"} <= alive.keys():
        return
    trouble = await _trouble(layout, report)
    if trouble is None:
        return
    silent = [] if await _etcd_answers(layout) else ["etcd"]
    if isinstance(trouble, Unreachable):
        silent.append("kube-apiserver")
    for name in silent:
        report.warn(
            f"{name} of cluster {layout.name} runs (pid {alive[name][0]}) but has not answered for "
            f"{_SILENCE:.0f} s: it is ended and started anew"
        )
        processes.end(alive[name])


async def _trouble(layout: Layout, report: Reporter) -> ApiError | Unreachable | None:
    """What keeps the API server from being ready, once it has lasted; None when it is ready."""
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kumulus.kube import Client, load_kubeconfig

    try:
        connection = load_kubeconfig(layout.kubeconfig)
    except KubeconfigError:
        return None
    async with Client(connection, request_timeout=3.0) as client:
        try:
            await client.get("/readyz", patience=1.0)
            return None
        except (ApiError, Unreachable):
            report.status(f"the API server does not answer; waiting up to {_SILENCE:.0f} s for it")
        try:
            await client.get("/readyz", patience=_SILENCE)
        except (ApiError, Unreachable) as error:
            return error
    return None


async def _etcd_answers(layout: Layout) -> bool:
    from kumulus.kube import Client

    try:
        found = etcd.connection(layout)
    except OSError:
        return True  # without its certificates nobody can tell
    async with Client(found, request_timeout=2.0) as client:
        try:
            await client.get("/health", patience=_ETCD_SILENCE)
        except (ApiError, Unreachable):
            return False
    return True
