"""Clusters for tests: 30 nodes from nothing, beside kwokctl's own; a reset; and the memory of one cluster."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

import psutil

from benchmarks.control_plane import scale, stock_control_plane
from benchmarks.fleet import until_ready
from benchmarks.report import Row
from kumulus.host import processes
from kumulus.kube import objects
from kumulus.testing import AsyncCluster
from kumulus.testing.reset import Reset

_NODES, _MORE, _PODS, _KINDS = 30, 130, 200, 3
_RUNS = 3
# Without it, the API server refuses pods.
_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
_MOST_START_S, _MOST_RESET_S, _MOST_MB = 3.0, 1.0, 200.0


async def clusters() -> list[Row]:
    """A cluster of 30 nodes, three times; a reset after a test in each; its memory at rest."""
    starts, resets, memory = [], list[Reset](), list[float]()
    for _ in range(_RUNS):
        began = time.monotonic()
        async with AsyncCluster(nodes=_NODES) as cluster:
            starts.append(time.monotonic() - began)
            assert all(node.ready for node in await cluster.nodes())
            memory.append(_own_mb(cluster))
            await _used(cluster)
            resets.append(await cluster.reset())
    theirs = [await _of_kwokctl() for _ in range(_RUNS)]
    start, kwokctl = statistics.median(starts), statistics.median(theirs)
    reset, own = statistics.median(each.seconds for each in resets), statistics.median(memory)
    return [
        Row(
            f"`Cluster(nodes={_NODES})` until all are Ready and take pods",
            f"{_MOST_START_S:.0f} s",
            f"{start:.1f} s, median of {_RUNS}; `kwokctl create cluster` and `scale` {kwokctl:.1f} s",
            start <= _MOST_START_S,
            {"start_s": start, "kwokctl_s": kwokctl},
        ),
        Row(
            f"`reset()` after a test that made {_MORE - _NODES} nodes, {_PODS} pods and {_KINDS} CRDs",
            f"{_MOST_RESET_S:.0f} s",
            f"{reset:.2f} s, median of {_RUNS}; {resets[0].removed:,} objects removed",
            reset <= _MOST_RESET_S,
            {"reset_s": reset, "removed": float(resets[0].removed)},
        ),
        Row(
            f"A cluster of {_NODES} nodes: its own memory, not shared with others",
            f"{_MOST_MB:.0f} MB",
            f"{own:.0f} MB, median of {_RUNS}",
            own <= _MOST_MB,
            {"own_mb": own},
        ),
    ]


async def _used(cluster: AsyncCluster) -> None:
    """Do what a test does that is hard to undo."""
    await cluster.resize(_MORE)
    await cluster.apply([_kind(f"Thing{index}") for index in range(_KINDS)])
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    spec = {"replicas": _PODS, "selector": {"matchLabels": labels}, "template": pod}
    await cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})

    async def running() -> bool:
        return sum(each.phase == "Running" for each in await cluster.pods()) == _PODS

    await cluster.wait(running, timeout=120)


def _kind(name: str) -> dict[str, Any]:
    plural = f"{name.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "singular": name.lower(), "kind": name}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def _of_kwokctl() -> float:
    """Seconds that kwokctl takes for as many nodes that take pods, with its own defaults and the same programs."""
    began = time.monotonic()
    async with stock_control_plane(settling=0) as plane:
        await scale(plane, "node", replicas=_NODES)
        await until_ready(plane.client, _NODES)
        while True:
            if await objects.find(plane.client, _ACCOUNT) is not None:
                return time.monotonic() - began
            await asyncio.sleep(0.02)


def _own_mb(cluster: AsyncCluster) -> float:
    """What would be free again without the cluster's processes, in MB."""
    found = processes.running(cluster.kubeconfig.parent)
    return sum(psutil.Process(pid).memory_full_info().uss for pids in found.values() for pid in pids) / 1e6
