"""Restore what a run has changed: undo each kind of change, for a run that ends and for one that is gone.

Doing so twice is no error. An object of the same name without the run's mark is another owner's, and is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.extras.journal import autoscaling, federation, namespace, programs, snapshots
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import RaisedQuota, StoppedProgram
from kumulus.extras.journal.errors import NotPutBack
from kumulus.extras.schedulers import SchedulerError, children
from kumulus.extras.schedulers import objects as of_schedulers
from kumulus.host import processes
from kumulus.kube import objects
from kumulus.kube.bulk import for_all
from kumulus.kube.errors import tolerating
from kumulus.kube.namespaces import NAMESPACES
from kumulus.model.identity import RUN_LABEL
from kumulus.model.quantity import equal
from kumulus.model.words import counted
from kumulus.nodes.faults import operations, records

if TYPE_CHECKING:
    from kumulus.kube import Client


RUN_VARIABLE = "KUMULUS_RUN"
"""The environment variable by which the user's commands, and all that they start, are known; its value is the run."""


def end_commands(run: str) -> int:
    """Kill the user's commands that a run has started, and what they have started; returns how many processes."""
    pids = processes.with_variable(RUN_VARIABLE, run)
    processes.end(pids)
    return len(pids)


async def put_back(client: Client, journal: Journal) -> list[str]:
    """Restore everything that a journal lists, and remove each entry when done; returns what was done, in words.

    Raises:
        NotPutBack: something is still as the run left it.
        NotWritten: the journal cannot be written.
    """
    changes, lines = journal.changes, []
    if changes.commands:
        # First: they may change what is put back.
        if end_commands(changes.run):
            lines.append(f"{', '.join(changes.commands)} ended")
        journal.drop(commands=changes.commands)
    lines += await _put_back_control_plane(client, journal)
    lines += await _put_back_workers(client, journal)
    if changes.scheduler is not None:
        # Webhooks without a server would refuse the later requests.
        await end_scheduler(client, journal)
        lines.append(f"{changes.scheduler.name} removed")
    if ended := await end_faults(client, changes.run, changes.faults):
        lines.append(f"{counted(ended, 'fault')} ended")
    journal.drop(faults=changes.faults)
    if removed := await remove_marked(client, changes.run, await _unwanted(client, changes.nodes)):
        lines.append(f"{counted(removed, 'node')} removed")
    journal.drop(nodes=changes.nodes)
    if changes.autoscaler is not None:
        if await autoscaling.put_back(client, changes.autoscaler):
            lines.append("the autoscaler has the stack's pools again")
        journal.drop(autoscaler=None)
    if lowered := [each.path for each in changes.quotas if await _lower(client, each)]:
        lines.append(f"{counted(len(set(lowered)), 'quota')} lowered")
    journal.drop(quotas=changes.quotas)
    gone = [name for name in changes.namespaces if await remove_namespace(client, changes.run, name)]
    if gone:
        lines.append(f"namespace {', '.join(gone)} removed")
    journal.drop(namespaces=changes.namespaces)
    if removed := await remove_marked(client, changes.run, reversed(changes.outside), one_by_one=True):
        lines.append(f"{counted(removed, 'object')} removed")
    journal.drop(outside=changes.outside)
    # Last: a pod whose request was under way when the run ended is there by now.
    mine = {"labelSelector": f"{RUN_LABEL}={changes.run}"}
    if removed := sum([await remove_pods(client, path, mine) for path in changes.pods]):
        lines.append(f"{counted(removed, 'pod')} removed")
    journal.drop(pods=changes.pods)
    return lines


async def end_faults(client: Client, run: str, names: Iterable[str]) -> int:
    """End the faults that a run began; returns how many were still active."""
    ended, names = 0, list(names)
    known = await records.read(client) if names else None
    for name in reversed(names):
        there = known.faults.get(name) if known else None
        if there is None or there.run != run:
            continue
        _, applied = await operations.end(client, name)
        ended += 1
        if left := applied.left():
            raise NotPutBack(f"the fault {name} is not over: {left}")
    return ended


async def remove_marked(client: Client, run: str, paths: Iterable[str], *, one_by_one: bool = False) -> int:
    """Remove those objects that carry a run's mark; returns how many there were.

    Args:
        one_by_one: one at a time, in this order.
    """
    removed = 0

    async def remove(path: str) -> None:
        nonlocal removed
        found = await objects.find(client, path)
        if found is None or (found["metadata"].get("labels") or {}).get(RUN_LABEL) != run:
            return
        # An object that was created under this name since then is somebody else's.
        mine = {"preconditions": {"uid": found["metadata"]["uid"]}}
        with tolerating(409):
            removed += await objects.remove(client, path, mine)

    await for_all(paths, remove, workers=1 if one_by_one else client.connections)
    return removed


async def remove_pods(client: Client, collection: str, selectors: Mapping[str, str]) -> int:
    """Remove pods at once, without a grace period; returns how many there were.

    Args:
        collection: path of the collection that they are in.
        selectors: which, such as ``{"labelSelector": "kumulus.io/experiment-run=a"}``.
    """
    found = await objects.names(client, collection, selectors)
    await for_all(
        found,
        lambda name: objects.remove(client, f"{collection}/{name}", {"gracePeriodSeconds": 0}),
        workers=client.connections,
    )
    return len(found)


async def remove_namespace(client: Client, run: str, name: str, collections: Iterable[str] = ()) -> bool:
    """Remove a namespace that carries a run's mark, with everything in it; returns whether it existed.

    Args:
        collections: as of :func:`~kumulus.extras.journal.namespace.remove`.
    """
    found = await objects.find(client, f"{NAMESPACES}/{name}")
    if found is None or (found["metadata"].get("labels") or {}).get(RUN_LABEL) != run:
        return False
    await namespace.remove(client, name, collections)
    return True


async def _lower(client: Client, raised: RaisedQuota) -> bool:
    """Give a quota its own amounts again; returns False if it is gone, or has other amounts than the run's."""
    former, ours = json.loads(raised.former), json.loads(raised.raised)
    lowered = False

    async def attempt() -> bool:
        nonlocal lowered
        found = await client.get(raised.path)
        hard = found["spec"].get("hard") or {}
        back = {key: former[key] for key, amount in ours.items() if key in hard and equal(hard[key], amount)}
        if back:
            version = {"resourceVersion": found["metadata"]["resourceVersion"]}
            await client.merge_patch(raised.path, {"metadata": version, "spec": {"hard": back}})
            lowered = True
        return True

    with tolerating(404):
        await objects.persist(attempt, raised.path, "the ResourceQuota")
    return lowered


def _start(stopped: StoppedProgram) -> bool:
    """Start a program of the cluster, unless the cluster is gone."""
    if not Path(stopped.directory).is_dir():
        return False
    try:
        programs.start(stopped)
    except OSError as error:
        raise NotPutBack(
            f"{stopped.name} cannot be started: {error.strerror}; `pulumi up --refresh` starts a cluster's components"
        ) from None
    return True


async def _put_back_control_plane(client: Client, journal: Journal) -> list[str]:
    """Start the scheduler, and finish a restore, which may have paused controllers: later steps may need them."""
    changes, lines = journal.changes, []
    if changes.stopped is not None:
        if _start(changes.stopped):
            lines.append(f"{changes.stopped.name} started")
        journal.drop(stopped=None)
    if changes.restoring is not None:
        lines.append(await snapshots.finish(client, journal, changes.restoring))
        journal.drop(restoring=None)
    return lines


async def _put_back_workers(client: Client, journal: Journal) -> list[str]:
    """Start the workers of a hub that were killed, and let the hub reach the others directly again."""
    lines = []
    for kubeconfig in journal.changes.killed:
        if await federation.bring_back(Path(kubeconfig)):
            lines.append(f"{Path(kubeconfig).parent.name} started")
        journal.drop(killed=[kubeconfig])
    for rerouted in journal.changes.rerouted:
        if await federation.reach_directly(client, rerouted):
            lines.append(f"the hub reaches {rerouted.server} again")
        journal.drop(rerouted=[rerouted])
    return lines


async def end_scheduler(client: Client, journal: Journal) -> None:
    """End the programs of the scheduler that a run has started, and remove its objects from the cluster."""
    changes = journal.changes
    assert changes.scheduler is not None
    # It ends with the run that started it; if that was not possible, nothing else would end it.
    children.end(Path(changes.scheduler.directory))
    try:
        await of_schedulers.remove(client, changes.scheduler.name, run=changes.run)
    except SchedulerError as error:
        raise NotPutBack(" ".join(str(error).split())) from None
    journal.drop(scheduler=None)


async def _unwanted(client: Client, nodes: tuple[str, ...]) -> list[str]:
    """The nodes that a run added and that no pool wants by now."""
    if not nodes:
        return []
    known = await records.read(client)
    wanted = {name for pool in known.pools.values() for name in pool.node_names()}
    return [path for path in nodes if path.rpartition("/")[2] not in wanted]
