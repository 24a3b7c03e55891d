"""Many pods at once: 10,000 on 5,000 nodes, KWOK's own gate for each."""

from __future__ import annotations

import asyncio
import time

from benchmarks.control_plane import ControlPlane, control_plane
from benchmarks.fleet import Fleet
from benchmarks.report import Row
from kumulus.kube.bulk import for_each

_NODES, _PODS, _MOST_S = 5000, 10_000, 60.0
_PATH = "/api/v1/namespaces/default/pods"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_GIVE_UP_S = 600.0


async def created() -> list[Row]:
    """Create them as fast as the API server takes them, and wait until all of them run."""
    async with control_plane(nodes=_NODES) as plane:
        fleet = Fleet(plane)
        started = time.monotonic()
        await fleet.become(_NODES)
        nodes_ready = await fleet.until_ready(_NODES) - started
        await fleet.close()
        started = time.monotonic()
        outcome = await for_each(range(_PODS), lambda number: _create(plane, number), workers=plane.client.connections)
        assert outcome.complete, outcome
        made = time.monotonic() - started
        running = await asyncio.wait_for(_until_running(plane), _GIVE_UP_S) - started
    return [
        Row(
            f"{_PODS:,} pods on {_NODES:,} nodes",
            f"the nodes Ready and the pods created within {_MOST_S:.0f} s each; all Running",
            f"nodes Ready in {nodes_ready:.1f} s, pods created in {made:.1f} s, all Running {running:.1f} s after the "
            "first was",
            nodes_ready <= _MOST_S and made <= _MOST_S,
            {"nodes_ready_s": nodes_ready, "created_s": made, "running_s": running},
        )
    ]


async def _create(plane: ControlPlane, number: int) -> None:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}"},
        "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}]},
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
