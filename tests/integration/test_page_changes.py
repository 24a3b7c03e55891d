"""Changes from the page on a real control plane."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kumulus.extras.watch.console.changes import Changes, Refused
from kumulus.runtimes.owner import cluster_owner
from tests.integration.conftest import NODES, PODS, Plane, Pools, pod
from tests.integration.test_console import looking, until
from tests.support.api import Object

pytestmark = pytest.mark.integration


async def test_what_is_said_is_what_is_done(
    plane: Plane, pools: Pools, workloads: Callable[[str, Object], Object]
) -> None:
    inputs = pools.inputs(3)
    await pools.create(inputs)
    pool = inputs["name"]
    names = [f"{pool}-{number}" for number in range(3)]
    workloads(PODS, pod(f"{pool}-p", pool))
    plane.api.until(PODS, lambda found: found[f"{pool}-p"]["status"]["phase"] == "Running")
    async with looking(plane) as live:
        await until(lambda: set(names) <= set(live.fleet.nodes), "the nodes are known")
        changes = Changes(live, cluster_owner(Path(plane.observed.kubeconfig)))

        async def done(**asked: object) -> str:
            plan = await changes.plan(asked)
            return plan["says"] + " | " + (await changes.do(plan["ticket"]))["done"]

        planned = await changes.plan({"do": "cordon", "nodes": names})
        assert "unschedulable" not in plane.api.get(f"{NODES}/{names[0]}")["spec"]
        assert (await changes.do(planned["ticket"]))["done"] == "3 nodes cordoned"
        assert plane.api.get(f"{NODES}/{names[0]}")["spec"]["unschedulable"] is True
        await done(do="uncordon", nodes=names)
        assert "unschedulable" not in plane.api.get(f"{NODES}/{names[0]}")["spec"]

        said = await done(do="inject", nodes=names[:2], kind="gpu-fell-off-bus", name=f"page-{pool}")
        assert f"gpu-fell-off-bus on 2 nodes ({pool}-[0-1])" in said
        assert plane.api.get(f"{NODES}/{names[0]}")["status"]["allocatable"]["nvidia.com/gpu"] == "7"
        with pytest.raises(Refused, match="is already active"):
            await changes.plan({"do": "inject", "nodes": names, "kind": "gpu-fell-off-bus", "name": f"page-{pool}"})
        await done(do="clear", name=f"page-{pool}")
        assert plane.api.get(f"{NODES}/{names[0]}")["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        with pytest.raises(Refused, match="no fault"):
            await changes.plan({"do": "clear", "name": f"page-{pool}"})

        assert "deleted" in await done(do="delete", pod=f"default/{pool}-p")
        plane.api.until(PODS, lambda found: f"{pool}-p" not in found)
