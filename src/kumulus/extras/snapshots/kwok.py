"""A cluster's objects as of one moment, saved and restored under a control plane that keeps running.

They are read from etcd at one revision and written back key by key, where they differ: objects keep their UIDs, so that
references to them stay valid, and every watch sees the change. Whatever depends on the clock continues where it was.
The controllers are paused during that time: while an owner is restored and its dependents are not, they would delete
and recreate objects.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from kumulus.extras.snapshots import file as snapshot_file
from kumulus.extras.snapshots.file import SnapshotSummary
from kumulus.extras.snapshots.kwok_workloads import defined, is_namespace, namespaces, workloads
from kumulus.extras.snapshots.restored import RELEASED, Begin, OfAnother, Restored, require_nodes, unrecorded
from kumulus.host import files, processes
from kumulus.kube.message_tables import classes_of, tables_of
from kumulus.kube.messages import opened, sealed
from kumulus.model.durations import timestamp
from kumulus.nodes.reporter import Silent
from kumulus.runtimes.directories import lock_file
from kumulus.runtimes.kwok import starting
from kumulus.runtimes.kwok.etcd_keys import EtcdKeys
from kumulus.runtimes.kwok.layout import Layout

_ROOT = b"/registry/"
# What belongs to the moment, not to the state: events expire by a lease of etcd's, and the addresses and leases are
# those of processes that run now.
_OF_THE_MOMENT = (
    b"/registry/events/",
    b"/registry/masterleases/",
    b"/registry/leases/kube-system/",
    b"/registry/services/endpoints/default/kubernetes",
    b"/registry/endpointslices/default/kubernetes",
)
# Owners and containers come before what they own or contain.
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
_SHARED = (b"/registry/namespaces/", b"/registry/priorityclasses/", b"/registry/storageclasses/")
_MANAGER = "kube-controller-manager"
_CONTROLLERS = (_MANAGER, "kube-scheduler", "kwok-controller")


def save(layout: Layout, stack: str, cluster: str, file: Path) -> SnapshotSummary:
    """Save a cluster's objects as of now; ``cluster`` is the UID of its namespace kube-system."""
    now = timestamp()
    with EtcdKeys(layout) as etcd:
        kept = ((key, value) for key, value in etcd.all(_ROOT) if not key.startswith(_OF_THE_MOMENT))
        return snapshot_file.write(file, SnapshotSummary(stack, cluster, now), kept)


def restore(layout: Layout, cluster: str, file: Path, begin: Begin = unrecorded) -> Restored:
    """Make a cluster's objects what they were.

    Another restore finishes one that was interrupted: objects that are already as they were are left alone.

    Raises:
        OfAnother: the snapshot is of another cluster.
    """
    about, entries = snapshot_file.read(file)
    if about.cluster != cluster:
        raise OfAnother(
            f"{file.name} is of a cluster that is gone: {about.stack} was made again since {about.taken}\n"
            f"  What its users had in it can be put into this one: kumulus snapshot restore --of {about.stack}"
        )
    passed = _seconds_since(about)
    wanted = {key: moved(key, value, passed) for key, value in entries}
    begin(())
    with EtcdKeys(layout) as etcd, _paused_controllers(layout):
        return _apply(etcd, wanted, dict(etcd.all(_ROOT)))


def restore_into(layout: Layout, file: Path, begin: Begin = unrecorded) -> Restored:
    """Replace what users have in this cluster by what they had in another stack's cluster.

    The cluster's own objects stay: its nodes, and all that a stack has made; see :mod:`.snapshot_workloads`. Another
    restore finishes one that was interrupted.

    Raises:
        OfAnother: its pods are on nodes that this cluster does not have.
    """
    about, entries = snapshot_file.read(file)
    then = dict(entries)
    begin(())
    with EtcdKeys(layout) as etcd, _paused_controllers(layout):
        now = dict(etcd.all(_ROOT))
        known = defined(now)
        staying = {*workloads(now, known).left, *workloads(then, known).left}
        here = workloads(now, known, staying)
        there = workloads(then, known, staying).within(namespaces(now), known)
        nodes = {key.rpartition(b"/")[2].decode() for key in now if key.startswith(b"/registry/minions/")}
        require_nodes(about, file, there.nodes(), nodes)
        passed = _seconds_since(about)
        wanted = {key: moved(key, value, passed) for key, value in there.entries.items()}
        # Namespaces, priority classes and storage classes that exist already keep their owners: they are not changed.
        wanted |= {key: now[key] for key in wanted if key in now and key.startswith(_SHARED)}
        # Deleting a namespace deletes all that is in it, and some of that is the cluster's own: the namespace stays.
        present = {key: value for key, value in here.entries.items() if key in wanted or not is_namespace(key)}
        done = _apply(etcd, wanted, present)
    left = tuple(sorted({*staying, *there.left}))
    return replace(done, left={RELEASED: left} if left else {})


def _seconds_since(about: SnapshotSummary) -> int:
    return int((datetime.now(UTC) - datetime.fromisoformat(about.taken)).total_seconds())


def _apply(etcd: EtcdKeys, wanted: Mapping[bytes, bytes], now: Mapping[bytes, bytes]) -> Restored:
    """Write and delete the keys in which the cluster differs from what is wanted."""
    present = {key: value for key, value in now.items() if not key.startswith(_OF_THE_MOMENT)}
    gone = [key for key in present if key not in wanted]
    changed = [key for key, value in wanted.items() if present.get(key) != value]
    etcd.write([(key, wanted[key]) for key in sorted(changed, key=_order)])
    etcd.write([(key, None) for key in sorted(gone, key=_order, reverse=True)])
    return Restored(len(changed), len(gone), len(wanted) - len(changed))


def _order(key: bytes) -> tuple[int, bytes]:
    for place, prefix in enumerate(_FIRST):
        if key.startswith(prefix):
            return place, key
    return len(_FIRST) + key.startswith(_LAST), key


@contextmanager
def _paused_controllers(layout: Layout) -> Iterator[None]:
    """Pause the controllers; if this process is killed before it resumes them, `up` restarts them.

    Not while another run changes the cluster: it would take the controllers for stuck, and restart them.

    The controller manager is restarted: it would learn of a Job and of its pods through two watches, in any order, and
    create pods that exist already; at its start, it reads everything before it does anything.
    """
    lock, _ = asyncio.run(files.take_lock(lock_file(layout)))
    try:
        running = processes.running(layout.directory)
        pids = [pid for name in _CONTROLLERS for pid in running.get(name, ())]
        try:
            _signal(pids, signal.SIGSTOP)
            yield
            processes.end(running.get(_MANAGER, []))
        finally:
            _signal(pids, signal.SIGCONT)
        if _MANAGER in running:
            asyncio.run(_started(layout))
    finally:
        os.close(lock)


async def _started(layout: Layout) -> None:
    await starting.start_components(layout)
    # A component that exits, as on a busy machine, is started again.
    await starting.all_running(layout, Silent())


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


# The times in an object are shifted by the time that has passed. A pod should run for the rest of its duration, and not
# end at once because that would be over by now. So the times of running pods, of Jobs, and of taints by which pods are
# evicted are moved. Sources of the numbers: ``generated.proto`` of k8s.io/api/core/v1, k8s.io/api/batch/v1 and of
# k8s.io/apimachinery's pkg/apis/meta/v1 and pkg/runtime. Fields that the tables do not name stay as they are.
_TABLES = tables_of(
    """
    Time: seconds 1 int64
    Condition: lastProbeTime 3 Time, lastTransitionTime 4 Time
    Running: startedAt 1 Time
    Terminated: startedAt 5 Time, finishedAt 6 Time
    ContainerState: running 2 Running, terminated 3 Terminated
    ContainerStatus: state 2 ContainerState, lastState 3 ContainerState
    PodStatus: phase 1 string, startTime 7 Time, containerStatuses 8 *ContainerStatus,
        initContainerStatuses 10 *ContainerStatus
    Pod: status 3 PodStatus
    JobStatus: conditions 1 *Condition, startTime 2 Time, completionTime 3 Time
    Job: status 3 JobStatus
    Taint: timeAdded 4 Time
    NodeSpec: taints 5 *Taint
    Node: spec 2 NodeSpec
    """
)
_ENDED = ("Succeeded", "Failed")


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(_TABLES)


def moved(key: bytes, value: bytes, seconds: int) -> bytes:
    """A stored object with its clocks put forward; the same one if it has none or is not in protobuf."""
    kind = next((each for each in _KINDS if key.startswith(each)), None)
    if kind is None or seconds <= 0:
        return value
    name, times = _KINDS[kind]
    try:
        envelope = opened(value)
        item = _classes()[name].FromString(envelope.raw)
    except DecodeError:
        return value
    found = [time for time in times(item) if time.seconds]
    if not found:
        return value
    for time in found:
        time.seconds += seconds
    envelope.raw = item.SerializeToString()
    return sealed(envelope)


def _of_pod(pod: Any) -> Iterator[Any]:
    """The times of a pod that has not ended."""
    status = pod.status
    if status.phase in _ENDED:
        return
    yield status.startTime
    for each in (*status.initContainerStatuses, *status.containerStatuses):
        for state in (each.state, each.lastState):
            yield from (state.running.startedAt, state.terminated.startedAt, state.terminated.finishedAt)


def _of_job(job: Any) -> Iterator[Any]:
    """A Job's deadline counts from its start, and its removal (``ttlSecondsAfterFinished``) from its end."""
    status = job.status
    yield from (status.startTime, status.completionTime)
    for each in status.conditions:
        yield from (each.lastProbeTime, each.lastTransitionTime)


def _of_node(node: Any) -> Iterator[Any]:
    """Pods that tolerate a taint for some time are evicted that long after it was added."""
    for taint in node.spec.taints:
        yield taint.timeAdded


_KINDS: Mapping[bytes, tuple[str, Callable[[Any], Iterator[Any]]]] = {
    b"/registry/pods/": ("Pod", _of_pod),
    b"/registry/jobs/": ("Job", _of_job),
    b"/registry/minions/": ("Node", _of_node),
}
