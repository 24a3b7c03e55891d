"""A cluster's objects as of one moment, and all of them as they were then, under a control plane that goes on running.

They are read from etcd at one revision and written back key by key, as far as they differ: objects keep their UIDs, so
that what refers to them still does, and every watch sees it. What runs by the clock goes on where it was. The
controllers stand still meanwhile: between an owner and what it owns they would tidy up.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kumulus.cluster.errors import ProviderError
from kumulus.host import processes
from kumulus.runtimes.kwok import snapshot_clocks, snapshot_file
from kumulus.runtimes.kwok.etcd_keys import EtcdKeys
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.snapshot_file import About

_ROOT = b"/registry/"
# What belongs to the moment, not to the state: events run out by a lease of etcd's, the addresses and leases are those
# of processes that run now.
_OF_THE_MOMENT = (
    b"/registry/events/",
    b"/registry/masterleases/",
    b"/registry/leases/kube-system/",
    b"/registry/services/endpoints/default/kubernetes",
    b"/registry/endpointslices/default/kubernetes",
)
# Who owns or holds others comes before them.
_FIRST = tuple(
    f"/registry/{each}/".encode()
    for each in (
        "apiextensions.k8s.io/customresourcedefinitions",
        "namespaces",
        "priorityclasses",
        "minions",
        "persistentvolumes",
        "persistentvolumeclaims",
        "cronjobs",
        "deployments",
        "statefulsets",
        "daemonsets",
        "replicasets",
        "jobs",
    )
)
_LAST = (b"/registry/pods/",)
_CONTROLLERS = ("kube-controller-manager", "kube-scheduler", "kwok-controller")


class OfAnother(ProviderError):
    """A snapshot of another cluster than there is now."""


@dataclass(frozen=True)
class Restored:
    """What a restore did.

    Args:
        written: how many objects were made or put back.
        removed: how many were removed that were not there then.
        same: how many were as they were.
    """

    written: int
    removed: int
    same: int


def save(layout: Layout, stack: str, cluster: str, file: Path) -> About:
    """Save a cluster's objects as of now.

    Args:
        layout: the cluster.
        stack: whose it is.
        cluster: its identity, the UID of the namespace kube-system.
        file: where; one that is there is replaced once the new one is whole.

    Raises:
        ProviderError: etcd does not answer.
        OSError: the file cannot be written.
    """
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with EtcdKeys(layout) as etcd:
        _, entries = etcd.all(_ROOT)
        kept = ((key, value) for key, value in entries if not key.startswith(_OF_THE_MOMENT))
        return snapshot_file.write(file, About(stack, cluster, now), kept)


def restore(layout: Layout, cluster: str, file: Path) -> Restored:
    """Make a cluster's objects what they were.

    A restore that was cut off is finished by another one: what is as it was is left alone.

    Args:
        layout: the cluster.
        cluster: its identity.
        file: the snapshot.

    Raises:
        OfAnother: it is of another cluster.
        Damaged: it is no snapshot, or not as it was written.
        ProviderError: etcd does not answer.
        OSError: the file cannot be read.
    """
    about, entries = snapshot_file.read(file)
    if about.cluster != cluster:
        raise OfAnother(f"{file.name} is of a cluster that is gone: {about.stack} was made again since {about.taken}")
    passed = int((datetime.now(UTC) - datetime.fromisoformat(about.taken)).total_seconds())
    wanted = {key: snapshot_clocks.moved(key, value, passed) for key, value in entries}
    with EtcdKeys(layout) as etcd, _standing_still(layout):
        _, now = etcd.all(_ROOT)
        same, changed, gone = 0, set(wanted), []
        for key, value in now:
            if key.startswith(_OF_THE_MOMENT):
                continue
            if key not in wanted:
                gone.append(key)
            elif wanted[key] == value:
                same += 1
                changed.discard(key)
        etcd.write([(key, wanted[key]) for key in sorted(changed, key=_order)])
        etcd.write([(key, None) for key in sorted(gone, key=_order, reverse=True)])
    return Restored(len(changed), len(gone), same)


def _order(key: bytes) -> tuple[int, bytes]:
    for place, prefix in enumerate(_FIRST):
        if key.startswith(prefix):
            return place, key
    return len(_FIRST) + key.startswith(_LAST), key


@contextmanager
def _standing_still(layout: Layout) -> Iterator[None]:
    """Hold the controllers for a moment; where this process is killed meanwhile, `up` restarts them."""
    running = processes.running(layout.directory)
    pids = [pid for name in _CONTROLLERS for pid in running.get(name, ())]
    try:
        _signal(pids, signal.SIGSTOP)
        yield
    finally:
        _signal(pids, signal.SIGCONT)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
