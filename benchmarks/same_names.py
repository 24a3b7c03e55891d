"""Pods that are made again under the name of a deleted one, at once: whether each of them stays.

KWOK deletes by name. StatefulSets, and the jobs of Volcano, MPI and PyTorch, give their pods the same names again.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.control_plane import control_plane
from benchmarks.report import Row
from kumulus.kube import ApiError, Client, objects
from kumulus.kube.bulk import for_all
from kumulus.kube.errors import tolerating
from kumulus.nodes.faults.new_pods import wait_until_all_are_managed

PODS = "/api/v1/namespaces/default/pods"
_TRIES, _NODES, _AT_ONCE, _PATIENCE_S = 500, 10, 32, 60.0
_AGAIN_S = 0.002


async def kept() -> list[Row]:
    """500 pods deleted and made again, with and without a grace period, on a kwok-controller of 32 workers."""
    rows = []
    for grace in (0, 30):
        async with control_plane() as plane:
            nodes = [f"node-{number}" for number in range(_NODES)]
            for node in nodes:
                await plane.client.create("/api/v1/nodes", {"metadata": {"name": node}})
            # Pods that are bound to a node before KWOK has it never run.
            await wait_until_all_are_managed(plane.client, asyncio.Event())
            gone = await lost(plane.client, nodes, _TRIES, grace)
        rows.append(
            Row(
                f"{_TRIES} pods made again under the name of a deleted one, grace period {grace} s",
                "none deleted with it",
                f"{gone} deleted",
                gone == 0,
                {"lost": gone, "tries": _TRIES},
            )
        )
    return rows


async def lost(client: Client, nodes: list[str], tries: int, grace: int) -> int:
    """How many pods are gone that nobody has deleted.

    Args:
        client: of the cluster.
        nodes: the emulated nodes that they are for.
        tries: how many pods are made, deleted and made again as soon as their name is free.
        grace: the grace period of their deletion in seconds.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
        TimeoutError: a pod did not start, or did not go.
    """
    again: dict[str, str] = {}

    async def once(number: int) -> None:
        name, node = f"same-{number}", nodes[number % len(nodes)]
        first = await _made(client, name, node)
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                found = await client.get(f"{PODS}/{name}")
                if found["status"].get("phase") == "Running":
                    break
                await asyncio.sleep(_AGAIN_S)
        # A request that is sent again, as its answer was lost, must not be what deletes the second one.
        exactly = {"gracePeriodSeconds": grace, "preconditions": {"uid": first}}
        with tolerating(409):
            await objects.remove(client, f"{PODS}/{name}", exactly)
        again[name] = await _made(client, name, node)

    await for_all(range(tries), once, workers=_AT_ONCE)
    await _until_done(client, nodes[0])
    there = {
        pod["metadata"]["uid"]
        async for page in client.pages(PODS)
        for pod in page
        if "deletionTimestamp" not in pod["metadata"]
    }
    return len(set(again.values()) - there)


async def _made(client: Client, name: str, node: str) -> str:
    """Make a pod as soon as there is none of its name; returns its UID."""
    spec: dict[str, Any] = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
    ends = time.monotonic() + _PATIENCE_S
    while True:
        try:
            made = await client.create(PODS, {"metadata": {"name": name}, "spec": spec})
            return str(made["metadata"]["uid"])
        except ApiError as error:
            if error.status != 409:
                raise
            if time.monotonic() > ends:
                raise TimeoutError(f"{name} is still there") from None
        await asyncio.sleep(_AGAIN_S)


async def _until_done(client: Client, node: str) -> None:
    """Wait until kwok-controller has done what it was about to do: it is done with a pod that came after all others."""
    await _made(client, "last", node)
    await objects.remove(client, f"{PODS}/last", {"gracePeriodSeconds": 30})
    async with asyncio.timeout(_PATIENCE_S):
        with tolerating(404):
            while True:
                await client.get(f"{PODS}/last")
                await asyncio.sleep(_AGAIN_S)
