"""A full cluster saved and restored."""

import asyncio
import hashlib
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.control_plane import ControlPlane, control_plane
from benchmarks.fleet import Fleet, until_ready
from benchmarks.report import Row
from benchmarks.usage import until_at_rest
from kumulus.extras.snapshots import kwok as snapshot
from kumulus.kube import objects
from kumulus.kube.bulk import for_each
from kumulus.nodes.faults.new_pods import wait_until_all_are_managed
from kumulus.runtimes.kwok.layout import Layout

# `KUMULUS_BENCH_SNAPSHOT=100x100` overrides the full size.
NODES, PODS = (int(each) for each in os.environ.get("KUMULUS_BENCH_SNAPSHOT", "10000x10000").split("x"))
_MOST_SAVED_S, _MOST_RESTORED_S = 10.0, 20.0
_PODS = "/api/v1/namespaces/default/pods"
_NOW = {"gracePeriodSeconds": 0}
_COLLECTIONS = ("/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces", "/api/v1/serviceaccounts")
_RUN_S = 120.0


async def full() -> list[Row]:
    """10,000 nodes and 10,000 pods: saved, then restored after all pods and a tenth of the nodes are deleted, twice."""
    with tempfile.TemporaryDirectory() as folder:
        async with control_plane(nodes=NODES) as plane:
            return await _measure(plane, Path(folder))


async def _measure(plane: ControlPlane, folder: Path) -> list[Row]:
    fleet = Fleet(plane)
    await fleet.become(NODES)
    await fleet.until_ready(NODES)
    await _filled(plane)
    layout, file = Layout(Path(plane.observed.directory)), folder / "full.snapshot"
    until_at_rest(plane.observed.directory)
    began = time.monotonic()
    snapshot.save(layout, "bench", plane.observed.identity, file)
    saved = time.monotonic() - began
    before = await _digest(plane)
    restored, equal = [], []
    for _ in range(2):
        await _emptied(plane)
        until_at_rest(plane.observed.directory)
        began = time.monotonic()
        await asyncio.to_thread(snapshot.restore, layout, plane.observed.identity, file)
        ready = await until_ready(plane.client, NODES)
        await _running(plane)
        restored.append(max(ready, time.monotonic()) - began)
        equal.append(_different(before, await _digest(plane)))
    await fleet.close()
    worst, different = max(restored), max(equal)
    return [
        Row(
            f"{NODES:,} nodes and {PODS:,} pods saved and, emptied, restored",
            f"saved within {_MOST_SAVED_S:.0f} s, all Ready again within {_MOST_RESTORED_S:.0f} s; twice, and equal",
            f"saved in {saved:.1f} s ({file.stat().st_size / 2**20:.1f} MiB); all Ready, and all pods running, "
            f"{restored[0]:.1f} s and {restored[1]:.1f} s after the restore began; {different:,} objects differ",
            saved <= _MOST_SAVED_S and worst <= _MOST_RESTORED_S and not different,
            {"saved_s": saved, "restored_0_s": restored[0], "restored_1_s": restored[1], "different": float(different)},
        )
    ]


async def _filled(plane: ControlPlane) -> None:
    """A pod on each node, running."""
    await wait_until_all_are_managed(plane.client, asyncio.Event())
    names = [node["metadata"]["name"] async for page in plane.client.pages("/api/v1/nodes") for node in page]
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}

    async def one(index: int) -> None:
        spec = {"nodeName": names[index % len(names)], "containers": [container]}
        await plane.client.write("POST", _PODS, {"metadata": {"name": f"pod-{index}"}, "spec": spec})

    done = await for_each(range(PODS), one, workers=plane.client.connections, most_failures=1)
    assert not done.failed, done.failed[0]
    await _running(plane)


async def _running(plane: ControlPlane) -> None:
    """Wait until all pods run."""
    ends = time.monotonic() + _RUN_S
    query = {"fieldSelector": "status.phase!=Running", "limit": "1"}
    while True:
        if not (await plane.client.get(_PODS, query))["items"]:
            return
        if time.monotonic() > ends:
            found = await plane.client.get(_PODS, {**query, "limit": "0"})
            raise RuntimeError(f"{len(found['items']):,} pods do not run")
        await asyncio.sleep(0.2)


async def _emptied(plane: ControlPlane) -> None:
    """All pods and every tenth node deleted."""
    # Not by deleting the collection: for 10,000 that takes longer than the request timeout.
    pods = [f"{_PODS}/{name}" for name in await objects.names(plane.client, _PODS)]
    nodes = [f"/api/v1/nodes/{name}" for name in (await objects.names(plane.client, "/api/v1/nodes"))[::10]]
    done = await for_each(
        [*pods, *nodes], lambda path: objects.remove(plane.client, path, _NOW), workers=plane.client.connections
    )
    assert not done.failed, done.failed[0]


async def _digest(plane: ControlPlane) -> dict[str, str]:
    """A checksum of each object without its timestamps, by its path."""
    found = {}
    for path in _COLLECTIONS:
        async for page in plane.client.pages(path):
            for each in page:
                metadata = each["metadata"]
                text = repr(_timeless(each)).encode()
                name = f"{path} {metadata.get('namespace')}/{metadata['name']}"
                found[name] = hashlib.sha256(text).hexdigest()
    return found


def _timeless(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {
            key: _timeless(value)
            for key, value in sorted(found.items())
            if key not in ("resourceVersion", "managedFields") and not key.endswith(("Time", "Timestamp", "At"))
        }
    return [_timeless(each) for each in found] if isinstance(found, list) else found


def _different(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    return sum(one.get(name) != other.get(name) for name in {*one, *other})
