"""A cluster's objects put back as they were, under a control plane that goes on running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kumulus.host import processes
from kumulus.runtimes.kwok import snapshot
from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import JOBS, NODES, PODS, Plane, Pools, job, pod
from tests.support.api import Object

pytestmark = pytest.mark.integration
Create = Callable[[str, Object], Object]


def identity(plane: Plane) -> str:
    return str(plane.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"])


def running(plane: Plane, selector: str, count: int) -> dict[str, str]:
    """The UIDs of pods, once so many run."""
    found = plane.api.until(
        PODS,
        lambda pods: sum(each["status"].get("phase") == "Running" for each in pods.values()) == count,
        labelSelector=selector,
    )
    return {name: each["metadata"]["uid"] for name, each in found.items()}


async def test_nodes_and_pods_come_back_with_their_uids_and_stay(
    plane: Plane, pools: Pools, workloads: Create, tmp_path: Path
) -> None:
    inputs = pools.inputs(5)
    pool, selector = inputs["name"], f"test={inputs['name']}"
    outputs = await pools.create(inputs)
    workloads(JOBS, job(f"{pool}-job", pool, "1h", parallelism=4, cpu="1"))
    workloads(PODS, pod(pool, pool, cpu="1"))
    pods, nodes, layout = running(plane, selector, 5), pools.uids(inputs), Layout(plane.directory)
    file = tmp_path / "full.snapshot"
    about = snapshot.save(layout, "dev", identity(plane), file)
    assert (about.nodes, about.pods) == (len(plane.api.list(NODES)), len(plane.api.list("/api/v1/pods")))

    for name in list(nodes)[:2]:
        plane.api.delete(f"{NODES}/{name}")
    plane.api.delete(f"{PODS}/{pool}?gracePeriodSeconds=0")
    plane.api.merge(f"{NODES}/{list(nodes)[2]}", {"metadata": {"labels": {"team": "other", "extra": "x"}}})
    workloads(PODS, pod(f"{pool}-later", pool, cpu="1"))
    assert await pools.drift(inputs) != {}

    done = await asyncio.to_thread(snapshot.restore, layout, identity(plane), file)
    assert done.written >= 4
    assert done.removed >= 1
    assert pools.uids(inputs) == nodes
    assert running(plane, selector, 5) == pods
    assert await pools.drift(inputs) == {}
    assert await pools.update(inputs, outputs) == inputs
    # Nobody tidies up afterwards, and whoever stood still goes on: what is made now is scheduled and runs.
    workloads(PODS, pod(f"{pool}-after", pool, cpu="1"))
    assert running(plane, selector, 6).items() > pods.items()
    assert processes.suspended(processes.running(plane.directory)) == set()

    again = await asyncio.to_thread(snapshot.restore, layout, identity(plane), file)
    assert again.removed >= 1
    assert running(plane, selector, 5) == pods


async def test_a_snapshot_of_another_cluster_is_refused_and_changes_nothing(
    plane: Plane, pools: Pools, tmp_path: Path
) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    layout, file = Layout(plane.directory), tmp_path / "full.snapshot"
    snapshot.save(layout, "dev", identity(plane), file)
    with pytest.raises(snapshot.OfAnother, match="made again"):
        snapshot.restore(layout, "another", file)
    assert len(pools.uids(inputs)) == 2


async def test_the_controllers_go_on_after_a_restore_that_fails(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, file = Layout(plane.directory), tmp_path / "full.snapshot"
    snapshot.save(layout, "dev", identity(plane), file)
    seen: list[set[int]] = []

    def fails(*_: Any) -> None:
        seen.append(processes.suspended(processes.running(plane.directory)))
        raise RuntimeError("cut off")

    monkeypatch.setattr(snapshot.EtcdKeys, "write", fails)
    with pytest.raises(RuntimeError, match="cut off"):
        snapshot.restore(layout, identity(plane), file)
    # They did stand still, and do no longer.
    assert len(seen[0]) == 3
    assert processes.suspended(processes.running(plane.directory)) == set()
