"""Many pods at once: 10,000 on 5,000 nodes, as in KWOK's own benchmark.

KWOK's benchmark binds the pods itself (``nodeName``), starts no scheduler, and requires 5,000 nodes Ready and then
10,000 pods Running, each within 60 s: test/e2e/benchmark.go and test/e2e/kwokctl/benchmark of sigs.k8s.io/kwok v0.8.0.
Here a scheduler runs, as in every cluster of Kumulus.
"""

import asyncio
import time
from contextlib import aclosing

from benchmarks.control_plane import ControlPlane, control_plane, pools
from benchmarks.fleet import Fleet
from benchmarks.report import Row
from kumulus.kube.bulk import for_each
from kumulus.kube.messages import MessageCodec
from kumulus.kube.watch import Events, follow

_NODES, _PODS, _MOST_S = 5000, 10_000, 60.0
_PATH = "/api/v1/namespaces/default/pods"
_GIVE_UP_S = 600.0


async def created() -> list[Row]:
    """Create 5,000 nodes, then 10,000 pods that are bound to them."""
    names = [name for pool in pools(_NODES) for name in pool.node_names()]
    async with control_plane(nodes=_NODES) as plane:
        fleet = Fleet(plane)
        started = time.monotonic()
        await fleet.become(_NODES)
        nodes_ready = await fleet.until_ready(_NODES) - started
        await fleet.close()

        async def create(number: int) -> None:
            await _create(plane, number, names[number % _NODES])

        started = time.monotonic()
        all_run = asyncio.create_task(_until_running(plane))
        outcome = await for_each(range(_PODS), create, workers=plane.client.connections)
        assert outcome.complete, outcome
        made = time.monotonic() - started
        running = await asyncio.wait_for(all_run, _GIVE_UP_S) - started
    return [
        Row(
            f"{_PODS:,} pods bound to {_NODES:,} nodes, as KWOK's own benchmark has them",
            f"the nodes Ready and then all pods Running within {_MOST_S:.0f} s each",
            f"nodes Ready in {nodes_ready:.1f} s, pods created in {made:.1f} s, all Running after {running:.1f} s",
            nodes_ready <= _MOST_S and running <= _MOST_S,
            {"nodes_ready_s": nodes_ready, "created_s": made, "running_s": running},
        )
    ]


async def _create(plane: ControlPlane, number: int, node: str) -> None:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}"},
        "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}], "nodeName": node},
    }
    await plane.client.create(_PATH, pod)


async def _until_running(plane: ControlPlane) -> float:
    """Wait until every pod is Running; returns the time when they were (``time.monotonic``).

    It uses a watch, as KWOK's benchmark does: listing 10,000 pods would cost the API server more than the pods do.
    """
    running: set[str] = set()
    async with aclosing(
        follow(plane.client, _PATH, {"fieldSelector": "status.phase=Running"}, codec=MessageCodec("Pod"))
    ) as all_news:
        async for news in all_news:
            if isinstance(news, Events):
                running |= {event.key for event in news.events if event.kind != "DELETED"}
            if len(running) == _PODS:
                break
    return time.monotonic()
