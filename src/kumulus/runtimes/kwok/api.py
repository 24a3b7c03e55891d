"""The API server of a control plane on this machine: wait for it, ask it, and say why it does not answer."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kumulus import toolchain
from kumulus.host import ports, processes
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes import apiserver, directories
from kumulus.runtimes.kwok import logs
from kumulus.runtimes.kwok.access import API_SERVER, ETCD
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client

# For an API server to become ready, and for one to say which cluster it is.
_START_S = 90.0
_IDENTITY_S = 5.0
# etcd's last messages (server/storage/wal, server/etcdserver, bbolt) when it cannot read its data.
_LAST_WORDS = re.compile(r'"level":"(fatal|panic)"|^\s*panic: |^\s*fatal error: ', re.MULTILINE)
_UNREADABLE = re.compile(
    r"crc mismatch|checksum|invalid database|file size too small|failed to recover|failed to open|unexpected EOF"
    r"|failed to read WAL|wal: |out of range|slice bounds|corrupt|failed to find database snapshot"
    r"|database file .* does not exist|invalid page|freepages|freelist"
)
# etcd takes 64 MB for its log at once, so it can end for want of them while there is a little room.
_FULL = "no space left on device"
SERVING = (ETCD, API_SERVER)
"""The components without which nothing answers."""


def client(layout: Layout, *, patience: float = 60.0) -> Client:
    """A client of the control plane; ``patience``, in seconds, as for :class:`kube.Client`."""
    return apiserver.client(layout.kubeconfig, patience=patience)


async def answering(layout: Layout, report: Reporter) -> str:
    """Wait until the API server is ready, and return the cluster's identity.

    ProviderError, with the log of what ended, if it or etcd has ended, or if it is not ready after 90 s.
    """
    deadline = time.monotonic() + _START_S
    while True:
        try:
            return await apiserver.identity(layout.kubeconfig, patience=1.0)
        except (ApiError, Unreachable, KubeconfigError) as error:
            alive = processes.running(layout.directory)
            dead = [name for name in SERVING if name not in alive]
            if dead:
                raise ProviderError(explain(layout, f"{dead[0]} of cluster {layout.name} ended")) from None
            if time.monotonic() > deadline:
                raise ProviderError(explain(layout, f"the API server is not ready: {error}")) from None
            report.status("waiting for the API server")


async def answers_as(layout: Layout, identity: str) -> bool:
    """Whether an API server answers there, and is that of the cluster with this identity."""
    try:
        return await apiserver.identity(layout.kubeconfig, patience=_IDENTITY_S) == identity
    except (ApiError, Unreachable, KubeconfigError):
        return False


def explain(layout: Layout, message: str) -> str:
    """A message that also says whether the disk is full, and has the last log lines of a component that ended.

    What it says already is not said twice.
    """
    if "no disk space" not in message and (full := directories.no_room(layout.home)):
        message = f"{full}\n  {message}"
    if "log of" in message:
        return message
    alive = processes.running(layout.directory)
    for name in layout.components():
        if name not in alive and layout.log_tail(name, lines=1):
            about_etcd = _etcd_ended(layout) if name == ETCD else _etcd_stuck(layout)
            return logs.with_log(f"{message}{about_etcd}", layout, name)
    return message


def _etcd_ended(layout: Layout) -> str:
    """The consequence if etcd has ended because it cannot read or write its data; empty if it ended otherwise."""
    last = [line for line in layout.log_tail("etcd", lines=60).splitlines() if _LAST_WORDS.search(line)]
    if any(_FULL in line for line in last):
        full = directories.os_error(OSError(errno.ENOSPC, _FULL), layout, made=True)
        return "" if directories.no_room(layout.home) else f"\n  {full}"
    if not any(map(_UNREADABLE.search, last)):
        return ""
    return (
        f"\n  etcd cannot read its data in {layout.directory / 'etcd'}: what was in the cluster is lost"
        f"\n  Remove {layout.directory}, and `pulumi up --refresh` makes the cluster and every declared node again"
    )


def _etcd_stuck(layout: Layout) -> str:
    """The consequence if etcd runs but accepts nothing: it lost the end of its log, and its data is ahead of it."""
    last = layout.log_tail("etcd", lines=1)
    if "failed to publish local member to cluster through raft" not in last:
        return ""
    return (
        f"\n  etcd runs and takes nothing, as when the end of its log in {layout.directory / 'etcd'} is gone"
        "\n  If the next `pulumi up --refresh` says this again, what was in the cluster is lost: "
        f"remove {layout.directory}, and another one makes the cluster and every declared node again"
    )


@contextmanager
def explained(layout: Layout, *, made: bool = True, starting: bool = False) -> Iterator[None]:
    """Raise errors of ports, tools, files and the API server as a ProviderError that says why.

    A cluster that is `made` has to stay where it is. While its components are `starting`, a ProviderError may be the
    consequence of one that has ended, so it gets that one's log, too.
    """
    try:
        yield
    except ProviderError as error:
        if not starting:
            raise
        raise ProviderError(explain(layout, str(error))) from None
    except (ports.NoFreePort, toolchain.ToolchainError) as error:
        raise ProviderError(str(error)) from None
    except OSError as error:
        raise ProviderError(explain(layout, directories.os_error(error, layout, made=made))) from None
    except (ApiError, Unreachable) as error:
        message = f"the API server of cluster {layout.name} fails: {error}"
        raise ProviderError(explain(layout, message)) from None
