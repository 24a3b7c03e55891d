"""Many pods at once: 10,000 on 5,000 nodes, as in KWOK's own benchmark, and the same through kube-scheduler.

KWOK's benchmark binds the pods itself (``nodeName``), starts no scheduler, and requires 5,000 nodes Ready and then
10,000 pods Running, each within 60 s: test/e2e/benchmark.go and test/e2e/kwokctl/benchmark of sigs.k8s.io/kwok v0.8.0.
Here a scheduler runs, as in every cluster of Kumulus.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from benchmarks.control_plane import ControlPlane, control_plane, pools, scale, stock_control_plane
from benchmarks.fleet import Fleet, until_ready
from benchmarks.report import Row
from kumulus.kube.bulk import for_each
from kumulus.kube.codecs import METADATA
from kumulus.kube.watch import Events, follow

_NODES, _PODS, _MOST_S = 5000, 10_000, 60.0
_PATH = "/api/v1/namespaces/default/pods"
_GIVE_UP_S = 600.0


@dataclass(frozen=True)
class _Times:
    """Seconds until 5,000 nodes were Ready, for the creation of the pods, and from its start until all pods ran."""

    nodes_ready: float
    created: float
    running: float

    @property
    def figures(self) -> dict[str, float]:
        return {"nodes_ready_s": self.nodes_ready, "created_s": self.created, "running_s": self.running}


async def created() -> list[Row]:
    """Create the pods already bound, then left to kube-scheduler, then as ``kwokctl scale`` does on its own plane."""
    names = [name for pool in pools(_NODES) for name in pool.node_names()]
    bound = await _measured(lambda number: {"nodeName": names[number % _NODES]})
    scheduled = await _measured(lambda _: {})
    stock = await _scaled()
    return [
        Row(
            f"{_PODS:,} pods bound to {_NODES:,} nodes, as KWOK's own benchmark has them",
            f"the nodes Ready and then all pods Running within {_MOST_S:.0f} s each",
            f"nodes Ready in {bound.nodes_ready:.1f} s, pods created in {bound.created:.1f} s, all Running after "
            f"{bound.running:.1f} s",
            bound.nodes_ready <= _MOST_S and bound.running <= _MOST_S,
            bound.figures,
        ),
        Row(
            f"{_PODS:,} pods that kube-scheduler binds to {_NODES:,} nodes",
            "",
            f"created in {scheduled.created:.1f} s, all Running after {scheduled.running:.1f} s",
            None,
            scheduled.figures,
        ),
        Row(
            f"{_NODES:,} nodes and {_PODS:,} pods by `kwokctl scale`, on the control plane that kwokctl makes",
            "",
            f"nodes Ready in {stock.nodes_ready:.1f} s, pods created in {stock.created:.1f} s, all Running after "
            f"{stock.running:.1f} s",
            None,
            stock.figures,
        ),
    ]


async def _measured(spec: Callable[[int], Mapping[str, Any]]) -> _Times:
    """Create the nodes, then the pods with the given spec fields, on a new control plane."""
    async with control_plane(nodes=_NODES) as plane:
        fleet = Fleet(plane)
        started = time.monotonic()
        await fleet.become(_NODES)
        nodes_ready = await fleet.until_ready(_NODES) - started
        await fleet.close()

        async def create(number: int) -> None:
            await _create(plane, number, spec(number))

        async def create_all() -> None:
            outcome = await for_each(range(_PODS), create, workers=plane.client.connections)
            assert outcome.complete, outcome

        return await _times(plane, nodes_ready, create_all())


async def _scaled() -> _Times:
    """As KWOK's benchmark does it: all pods on one node, as ``kwokctl scale pod`` makes them."""
    async with stock_control_plane() as plane:
        started = time.monotonic()
        await scale(plane, "node", "fake-node", replicas=_NODES)
        nodes_ready = await until_ready(plane.client, _NODES) - started
        pods = scale(plane, "pod", "fake-pod", "--param", '.nodeName="fake-node-000000"', replicas=_PODS)
        return await _times(plane, nodes_ready, pods)


async def _times(plane: ControlPlane, nodes_ready: float, creation: Awaitable[None]) -> _Times:
    """Wait for the creation of the pods, and until all of them run."""
    started = time.monotonic()
    all_run = asyncio.create_task(_until_running(plane))
    await creation
    made = time.monotonic() - started
    return _Times(nodes_ready, made, await asyncio.wait_for(all_run, _GIVE_UP_S) - started)


async def _create(plane: ControlPlane, number: int, spec: Mapping[str, Any]) -> None:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}"},
        "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}], **spec},
    }
    await plane.client.create(_PATH, pod)


async def _until_running(plane: ControlPlane) -> float:
    """Wait until every pod is Running; returns the time when they were (``time.monotonic``).

    It uses a watch, as KWOK's benchmark does: listing 10,000 pods would cost the API server more than the pods do.
    """
    running: set[str] = set()
    async with aclosing(
        follow(plane.client, _PATH, {"fieldSelector": "status.phase=Running"}, codec=METADATA)
    ) as all_news:
        async for news in all_news:
            if isinstance(news, Events):
                running |= {event.key for event in news.events if event.kind != "DELETED"}
            if len(running) == _PODS:
                break
    return time.monotonic()
