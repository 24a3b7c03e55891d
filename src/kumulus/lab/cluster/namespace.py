"""The namespace of a repetition: everything it creates is in it and goes with it.

A run leaves the cluster as it found it. What a run that was killed has left, the next one removes.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import psutil

from kumulus.kube import ApiError
from kumulus.kube.bulk import for_each
from kumulus.kube.media import MERGE_PATCH
from kumulus.kube.objects import find, names
from kumulus.kube.objects import remove as delete
from kumulus.lab.errors import LabError
from kumulus.lab.plan.pods import EXPERIMENT_LABEL

if TYPE_CHECKING:
    from kumulus.kube import Client

_NAMESPACES = "/api/v1/namespaces"
_OWNER = "kumulus.io/experiment-process"
_PATIENCE = 120.0
_FREE = {"metadata": {"finalizers": None}}


def own_process() -> str:
    """This process, so that another can tell whether it still runs: host, pid and time of its start."""
    return f"{socket.gethostname()} {os.getpid()} {psutil.Process().create_time():.0f}"


def still_runs(process: str) -> bool:
    """Whether a process noted by :func:`own_process` still runs; one of another host is taken to."""
    host, pid, started = (*process.split(), "", "", "")[:3]
    if host != socket.gethostname():
        return bool(host)
    try:
        return abs(psutil.Process(int(pid)).create_time() - float(started)) < 2
    except (psutil.Error, ValueError):
        return False


async def clear_leftovers(client: Client) -> list[str]:
    """Remove the namespaces of runs that were killed; returns their names.

    Raises:
        LabError: another experiment runs on the cluster: the two would measure each other.
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    found = await client.get(_NAMESPACES, {"labelSelector": EXPERIMENT_LABEL})
    left = []
    for each in found["items"]:
        owner = each["metadata"].get("annotations", {}).get(_OWNER, "")
        name = each["metadata"]["name"]
        if each["status"].get("phase") != "Terminating" and still_runs(owner):
            host, pid, *_ = owner.split()
            raise LabError(
                f"another experiment runs on this cluster (namespace {name}, process {pid} on {host}); "
                f"wait for it, or delete the namespace if it is gone"
            )
        left.append(name)
    for name in left:
        await remove(client, name)
    return left


async def make(client: Client, name: str, experiment: str) -> None:
    """Make a namespace and wait until pods can be created in it.

    Raises:
        LabError: the controller manager does not make its ServiceAccount.
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    metadata = {"name": name, "labels": {EXPERIMENT_LABEL: experiment}, "annotations": {_OWNER: own_process()}}
    await client.create(_NAMESPACES, {"metadata": metadata})
    give_up = time.monotonic() + 30
    # Pods are refused until the controller manager has made it.
    while await find(client, f"{_NAMESPACES}/{name}/serviceaccounts/default") is None:
        if time.monotonic() > give_up:
            raise LabError(f"the namespace {name} gets no ServiceAccount; does the controller manager run?")
        await asyncio.sleep(0.05)


async def remove(client: Client, name: str, collections: Iterable[str] = ()) -> None:
    """Delete a namespace and wait until it is gone.

    Args:
        client: of the cluster.
        name: the namespace.
        collections: what to delete in it before its pods, so that no controller makes new ones: paths.

    Raises:
        LabError: it is still there after two minutes.
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    if await find(client, f"{_NAMESPACES}/{name}") is None:
        return
    pods = f"{_NAMESPACES}/{name}/pods"
    # A Deployment's ReplicaSet and a JobSet's Jobs would make new pods for as long as they outlive it.
    owners = (f"/apis/apps/v1/namespaces/{name}/replicasets", f"/apis/batch/v1/namespaces/{name}/jobs")
    for path in dict.fromkeys((*collections, *owners)):
        if path != pods:
            await _remove_all(client, path, {"propagationPolicy": "Background"})
    # The Job controller takes its finalizer off the pods of deleted Jobs one after the other, some dozens a second.
    await _remove_all(client, pods, {"gracePeriodSeconds": 0}, free=True)
    await delete(client, f"{_NAMESPACES}/{name}")
    give_up = time.monotonic() + _PATIENCE
    while await find(client, f"{_NAMESPACES}/{name}") is not None:
        if time.monotonic() > give_up:
            raise LabError(f"the namespace {name} is still being deleted after {_PATIENCE:.0f} s; look at its status")
        await asyncio.sleep(0.2)


async def _remove_all(client: Client, path: str, options: Mapping[str, Any], free: bool = False) -> None:
    """Delete a collection's objects, many at a time: the API server itself deletes them one after the other.

    Args:
        client: of the cluster.
        path: the collection.
        options: DeleteOptions.
        free: whether to take their finalizers off first.
    """

    async def remove_one(each: str) -> None:
        try:
            if free:
                await client.write("PATCH", f"{path}/{each}", _FREE, content_type=MERGE_PATCH)
            await client.delete(f"{path}/{each}", options)
        except ApiError as error:
            if error.status != 404:
                raise

    outcome = await for_each(await names(client, path), remove_one, workers=client.connections)
    if outcome.failed:
        raise outcome.failed[0][1]
