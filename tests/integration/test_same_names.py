"""A pod made under the name of a deleted one is nobody's to delete but its owner's.

KWOK deletes by name. StatefulSets, and the jobs of Volcano, MPI and PyTorch, give their pods the same names again.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from kumulus.kube import ApiError, Client, load_kubeconfig, objects
from kumulus.kube.bulk import for_all
from kumulus.kube.errors import tolerating
from tests.integration.conftest import PODS, Plane, Pools

pytestmark = pytest.mark.integration
TRIES, AT_ONCE, PATIENCE, AGAIN = 100, 32, 60.0, 0.002


@pytest.mark.parametrize("grace", [0, 30])
async def test_a_pod_made_again_under_its_name_stays(plane: Plane, pools: Pools, grace: int) -> None:
    inputs = pools.inputs(4)
    await pools.create(inputs)
    try:
        async with Client(load_kubeconfig(Path(plane.observed.kubeconfig))) as client:
            assert await lost(client, list(pools.nodes(inputs)), TRIES, grace) == 0
    finally:
        plane.api.delete(f"{PODS}?gracePeriodSeconds=0")
        plane.api.until(PODS, lambda found: not found)


async def lost(client: Client, nodes: list[str], tries: int, grace: int) -> int:
    """How many pods are gone that nobody has deleted."""
    again: dict[str, str] = {}

    async def once(number: int) -> None:
        name, node = f"same-{number}", nodes[number % len(nodes)]
        first = await made(client, name, node)
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await client.get(f"{PODS}/{name}")
                if found["status"].get("phase") == "Running":
                    break
                await asyncio.sleep(AGAIN)
        # A request that is sent again, as its answer was lost, must not be what deletes the second one.
        exactly = {"gracePeriodSeconds": grace, "preconditions": {"uid": first}}
        with tolerating(409):
            await objects.remove(client, f"{PODS}/{name}", exactly)
        again[name] = await made(client, name, node)

    await for_all(range(tries), once, workers=AT_ONCE)
    await until_done(client, nodes[0])
    there = {
        pod["metadata"]["uid"]
        async for page in client.pages(PODS)
        for pod in page
        if "deletionTimestamp" not in pod["metadata"]
    }
    return len(set(again.values()) - there)


async def made(client: Client, name: str, node: str) -> str:
    """Make a pod as soon as there is none of its name; returns its UID."""
    spec: dict[str, Any] = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            made = await client.create(PODS, {"metadata": {"name": name}, "spec": spec})
            return str(made["metadata"]["uid"])
        except ApiError as error:
            if error.status != 409:
                raise
            if time.monotonic() > ends:
                raise TimeoutError(f"{name} is still there") from None
        await asyncio.sleep(AGAIN)


async def until_done(client: Client, node: str) -> None:
    """Wait until kwok-controller has done what it was about to do: it is done with a pod that came after all others."""
    await made(client, "last", node)
    await objects.remove(client, f"{PODS}/last", {"gracePeriodSeconds": 30})
    async with asyncio.timeout(PATIENCE):
        with tolerating(404):
            while True:
                await client.get(f"{PODS}/last")
                await asyncio.sleep(AGAIN)
