"""A cluster's objects put back as they were, under a control plane that goes on running."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.snapshots import kwok as snapshot
from kumulus.extras.snapshots.restored import RELEASED as WITH_RELEASE
from kumulus.extras.snapshots.restored import OfAnother
from kumulus.host import processes
from kumulus.kube import Client, load_kubeconfig
from kumulus.model.identity import STACK_ID
from kumulus.nodes.faults.new_pods import wait_until_all_are_managed
from kumulus.provider.connections import Connections
from kumulus.runtimes.kwok.etcd_keys import EtcdKeys
from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import JOBS, NODES, PODS, Plane, Pools, job, plane_at, pod
from tests.support.api import Api, Object

pytestmark = pytest.mark.integration
_LASTS_S = 10
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


async def test_a_pod_runs_for_the_rest_of_its_duration(
    plane: Plane, pools: Pools, workloads: Create, tmp_path: Path
) -> None:
    inputs = pools.inputs(1)
    pool = inputs["name"]
    await pools.create(inputs)
    workloads(JOBS, job(f"{pool}-job", pool, f"{_LASTS_S}s"))
    running(plane, f"test={pool}", 1)
    layout, file = Layout(plane.directory), tmp_path / "full.snapshot"
    snapshot.save(layout, "dev", identity(plane), file)
    (name,) = running(plane, f"test={pool}", 1)

    # By now it would have ended, and it has.
    began, ended = _times(in_phase(plane, pool, "Succeeded"))
    await asyncio.to_thread(snapshot.restore, layout, identity(plane), file)
    found = in_phase(plane, pool, "Succeeded", later_than=ended)
    assert found["metadata"]["name"] == name
    again, over = _times(found)
    assert again - began >= _LASTS_S - 1, "it has begun later, by what has passed since"
    assert over - again >= _LASTS_S - 1, "and runs for as long as it was to"


def in_phase(plane: Plane, pool: str, phase: str, later_than: float = 0.0) -> Object:
    """The one pod of a pool once it is in a phase, and, where it ended, once it did so later than that."""
    found = plane.api.until(
        PODS,
        lambda pods: any(
            each["status"].get("phase") == phase and (not later_than or _times(each)[1] > later_than)
            for each in pods.values()
        ),
        labelSelector=f"test={pool}",
    )
    (pod,) = found.values()
    return pod


def _times(pod: Object) -> tuple[float, float]:
    """When a pod began, and when it ended; 0 where it has not."""
    (container,) = pod["status"]["containerStatuses"]
    ended = container["state"].get("terminated", {}).get("finishedAt")
    began = datetime.fromisoformat(pod["status"]["startTime"]).timestamp()
    return began, datetime.fromisoformat(ended).timestamp() if ended else 0.0


@pytest.fixture
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Plane, Plane]]:
    """The clusters of two stacks, in which nobody else has anything."""
    with plane_at(tmp_path_factory.mktemp("one")) as one, plane_at(tmp_path_factory.mktemp("other")) as other:
        yield one, other


def uids(plane: Plane, path: str) -> dict[str, str]:
    return {each["name"]: each["uid"] for each in plane.api.metadata(path)}


TEAM, OURS, RELEASED = "snapshot-team", "snapshot-ours", "snapshot-released"
NAMESPACES = "/api/v1/namespaces"


async def test_what_users_had_comes_into_another_stack_s_cluster_whose_own_stays(
    two: tuple[Plane, Plane], tmp_path: Path
) -> None:
    one, other = two
    connections = Connections()
    ours, theirs = (Pools.on(each, connections) for each in two)
    inputs = ours.inputs(3, "p-z")
    await ours.create(inputs)
    await _taken(one)
    selector, file = "test=p-z", tmp_path / "full.snapshot"
    _fill(one.api)
    pods = running(one, selector, 3)
    snapshot.save(Layout(one.directory), "dev", identity(one), file)
    placed = _placed(one.api, selector)

    outputs = await theirs.create(theirs.inputs(2, "p-z"))
    await _taken(other)
    other.api.create(PODS, pod("their-own", "p-z"))
    other.api.create(NAMESPACES, {"metadata": {"name": "their-own"}})
    running(other, selector, 1)
    layout = Layout(other.directory)
    with pytest.raises(OfAnother, match="on nodes that are not here: p-z-2; restore it into a stack with"):
        await asyncio.to_thread(snapshot.restore_into, layout, file)
    assert running(other, selector, 1).keys() == {"their-own"}, "nothing is done by halves"
    same = theirs.inputs(3, "p-z")
    await theirs.update(same, outputs)
    await _taken(other)
    before, namespaces = (identity(other), theirs.uids(same)), uids(other, NAMESPACES)
    authority = other.api.get(f"{NAMESPACES}/default/configmaps/kube-root-ca.crt")["data"]

    done = await asyncio.to_thread(snapshot.restore_into, layout, file)
    assert done.left == {WITH_RELEASE: (OURS, RELEASED)}
    alone = other.api.list("/api/v1/configmaps", fieldSelector="metadata.name=of-users")
    assert [each["metadata"]["namespace"] for each in alone] == [TEAM], "and nothing is where no namespace is"
    assert uids(other, PODS) == pods, "they are the same ones, and the only ones"
    assert _placed(other.api, selector) == placed
    assert (identity(other), theirs.uids(same)) == before
    assert uids(other, NAMESPACES).keys() == {*namespaces, TEAM}, "not those of a stack, nor of a Helm release"
    assert uids(other, f"{NAMESPACES}/{TEAM}/configmaps").keys() & {"of-users", "of-stack"} == {"of-users"}
    assert other.api.get(f"{NAMESPACES}/default/configmaps/kube-root-ca.crt")["data"] == authority
    assert await theirs.drift(same) == {}
    # Its controllers take them up: a Job's pods run to their end, and what is made now runs.
    other.api.until(JOBS, lambda found: found.get("work", {}).get("status", {}).get("succeeded") == 2)
    other.api.create(PODS, pod("after", "p-z"))
    other.api.until(PODS, lambda found: found.get("after", {}).get("status", {}).get("phase") == "Running")
    again = await asyncio.to_thread(snapshot.restore_into, layout, file)
    assert "kube-controller-manager" in processes.running(other.directory)
    assert again.removed >= 1
    assert running(other, selector, 3) == pods
    await connections.close()


def _fill(api: Api) -> None:
    """Pods and a Job, a namespace of users, one of a stack, and one of a Helm release."""
    for name, labels in ((TEAM, {}), (OURS, {STACK_ID: "0" * 32}), (RELEASED, {})):
        api.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
        api.create(f"{NAMESPACES}/{name}/configmaps", {"metadata": {"name": "of-users"}, "data": {"from": "one"}})
    release = {"metadata": {"name": "sh.helm.release.v1.theirs.v1"}, "type": "helm.sh/release.v1"}
    api.create(f"{NAMESPACES}/{RELEASED}/secrets", release)
    marked = {"name": "of-stack", "labels": {STACK_ID: "0" * 32}}
    api.create(f"{NAMESPACES}/{TEAM}/configmaps", {"metadata": marked})
    api.create(JOBS, job("work", "p-z", f"{2 * _LASTS_S}s", parallelism=2, cpu="1"))
    last = pod("on-the-last", "p-z")
    last["spec"]["nodeSelector"]["kubernetes.io/hostname"] = "p-z-2"
    api.create(PODS, last)


async def _taken(plane: Plane) -> None:
    """Wait until KWOK has all nodes: pods that are bound before it has, it may pass over."""
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        await wait_until_all_are_managed(client, asyncio.Event())


def _placed(api: Api, selector: str) -> dict[str, str]:
    found = api.list(PODS, labelSelector=selector)
    return {each["metadata"]["name"]: each["spec"]["nodeName"] for each in found}


async def test_a_snapshot_of_another_cluster_is_refused_and_changes_nothing(
    plane: Plane, pools: Pools, tmp_path: Path
) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    layout, file = Layout(plane.directory), tmp_path / "full.snapshot"
    snapshot.save(layout, "dev", identity(plane), file)
    with pytest.raises(OfAnother, match="made again"):
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

    monkeypatch.setattr(EtcdKeys, "write", fails)
    with pytest.raises(RuntimeError, match="cut off"):
        await asyncio.to_thread(snapshot.restore, layout, identity(plane), file)
    # They did stand still, and do no longer.
    assert len(seen[0]) == 3
    assert processes.suspended(processes.running(plane.directory)) == set()
