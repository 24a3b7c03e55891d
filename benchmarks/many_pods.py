"""Many pods at once: 10,000 on 5,000 nodes, which is KWOK's own gate, and the same through kube-scheduler.

KWOK binds the pods itself (``nodeName``), starts no scheduler, and asks for 5,000 nodes Ready and then for 10,000 pods
Running, each within 60 s: test/e2e/benchmark.go and test/e2e/kwokctl/benchmark of sigs.k8s.io/kwok v0.8.0. Here a
scheduler runs, as in every cluster of Kumulus.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.control_plane import ControlPlane, control_plane, pools
from benchmarks.fleet import Fleet
from benchmarks.report import Row
from kumulus.kube.bulk import for_each

_NODES, _PODS, _MOST_S = 5000, 10_000, 60.0
_PATH = "/api/v1/namespaces/default/pods"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_GIVE_UP_S = 600.0


@dataclass(frozen=True)
class _Times:
    """Seconds that 5,000 nodes took to be Ready, the creation of the pods, and from its beginning until all ran."""

    nodes_ready: float
    created: float
    running: float

    @property
    def figures(self) -> dict[str, float]:
        return {"nodes_ready_s": self.nodes_ready, "created_s": self.created, "running_s": self.running}


async def created() -> list[Row]:
    """Create the pods as fast as the API server takes them: bound to their nodes, and left to kube-scheduler."""
    names = [name for pool in pools(_NODES) for name in pool.node_names()]
    bound = await _measured(lambda number: {"nodeName": names[number % _NODES]})
    scheduled = await _measured(lambda _: {})
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
    ]


async def _measured(spec: Callable[[int], Mapping[str, Any]]) -> _Times:
    """Make the nodes, then the pods, each with what is given of its spec, on a control plane of their own."""
    async with control_plane(nodes=_NODES) as plane:
        fleet = Fleet(plane)
        started = time.monotonic()
        await fleet.become(_NODES)
        nodes_ready = await fleet.until_ready(_NODES) - started
        await fleet.close()

        async def create(number: int) -> None:
            await _create(plane, number, spec(number))

        started = time.monotonic()
        outcome = await for_each(range(_PODS), create, workers=plane.client.connections)
        assert outcome.complete, outcome
        made = time.monotonic() - started
        return _Times(nodes_ready, made, await asyncio.wait_for(_until_running(plane), _GIVE_UP_S) - started)


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
    """Wait until every pod is Running; returns since when (``time.monotonic``)."""
    query = {"resourceVersion": "0", "includeObject": "None"}
    while True:
        looked = time.monotonic()
        rows = (await plane.client.get(_PATH, query, accept=_TABLE))["rows"]
        if len(rows) == _PODS and all(row["cells"][2] == "Running" for row in rows):
            return looked
        await asyncio.sleep(0.5)
