"""What users have in namespaces saved and put back through the API, beside controllers; strangers are left alone."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.snapshots import file as snapshot_file
from kumulus.extras.snapshots.objects import restore, save
from kumulus.extras.snapshots.restored import RELEASED, OfAnother
from kumulus.kube import Client
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.faults.new_pods import wait_until_all_are_managed
from tests.integration.conftest import Plane, Pools, pod_spec, remove_namespaces
from tests.support import processes
from tests.support.api import Object

pytestmark = pytest.mark.integration
NAMESPACES = "/api/v1/namespaces"
APPS, BATCH = "/apis/apps/v1/namespaces", "/apis/batch/v1/namespaces"
MINE, THEIRS = "objects-mine", "objects-theirs"
_MOST_DRAWS = 5
_DELAY = "pod-complete.stage.kwok.x-k8s.io/delay"


@pytest.fixture
def spaces(plane: Plane) -> Iterator[None]:
    """A namespace of one's own, and one of somebody else."""
    for name in (MINE, THEIRS):
        plane.api.create(NAMESPACES, {"metadata": {"name": name}})
        plane.api.until(f"{NAMESPACES}/{name}/serviceaccounts", lambda found: "default" in found)
    yield
    remove_namespaces(plane, MINE, THEIRS)


def template(pool: str, app: str, delay: str = "") -> Object:
    annotations = {_DELAY: delay} if delay else {}
    return {"metadata": {"labels": {"app": app}, "annotations": annotations}, "spec": pod_spec(pool)}


def made(plane: Plane, pool: str, namespace: str) -> None:
    """A Deployment and a Job of three pods, a StatefulSet of two, a DaemonSet on both nodes, two pods, a ConfigMap."""
    owner = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template(pool, "web")}
    plane.api.create(f"{APPS}/{namespace}/deployments", {"metadata": {"name": "web"}, "spec": owner})
    stateful = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"app": "db"}}}
    plane.api.create(
        f"{APPS}/{namespace}/statefulsets",
        {"metadata": {"name": "db"}, "spec": {**stateful, "template": template(pool, "db")}},
    )
    everywhere = {"selector": {"matchLabels": {"app": "agent"}}, "template": template(pool, "agent")}
    plane.api.create(f"{APPS}/{namespace}/daemonsets", {"metadata": {"name": "agent"}, "spec": everywhere})
    short: dict[str, Any] = {"completions": 3, "parallelism": 3, "completionMode": "Indexed"}
    short["template"] = template(pool, "train", "1h")
    short["template"]["spec"] |= {"restartPolicy": "Never"}
    plane.api.create(f"{BATCH}/{namespace}/jobs", {"metadata": {"name": "train"}, "spec": short})
    plane.api.create(f"{NAMESPACES}/{namespace}/pods", {"metadata": {"name": "alone"}, "spec": pod_spec(pool)})
    waits = pod_spec(pool, cpu="9999")
    plane.api.create(f"{NAMESPACES}/{namespace}/pods", {"metadata": {"name": "waits"}, "spec": waits})
    plane.api.create(f"{NAMESPACES}/{namespace}/configmaps", {"metadata": {"name": "settings"}, "data": {"a": "1"}})


def standing(plane: Plane, namespace: str, phases: dict[str, int]) -> dict[str, tuple[str, str]]:
    """Each pod's node and phase by its name, once so many are in each phase and there are no others."""

    def reached(pods: Any) -> bool:
        found = [each["status"].get("phase") for each in pods.values()]
        return {phase: found.count(phase) for phase in set(found)} == phases

    found = plane.api.until(f"{NAMESPACES}/{namespace}/pods", reached)
    return {name: (each["spec"].get("nodeName", ""), each["status"]["phase"]) for name, each in found.items()}


def versions(plane: Plane, namespace: str) -> dict[str, str]:
    """Whatever somebody has in a namespace, with the version of each object."""
    paths = [f"{NAMESPACES}/{namespace}/pods", f"{NAMESPACES}/{namespace}/configmaps"]
    paths += [f"{APPS}/{namespace}/deployments", f"{APPS}/{namespace}/replicasets", f"{BATCH}/{namespace}/jobs"]
    found = {f"{path}/{each['name']}": each["resourceVersion"] for path in paths for each in plane.api.metadata(path)}
    return found | {namespace: plane.api.get(f"{NAMESPACES}/{namespace}")["metadata"]["resourceVersion"]}


def one_ends(plane: Plane, namespace: str) -> None:
    """One pod of the Job ends well."""
    pods = plane.api.list(f"{NAMESPACES}/{namespace}/pods", labelSelector="app=train")
    name = sorted(each["metadata"]["name"] for each in pods)[0]
    state = {"terminated": {"exitCode": 0, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}}
    container = {"name": "c", "image": "none", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    status = {"phase": "Succeeded", "containerStatuses": [container]}
    plane.api.merge(f"{NAMESPACES}/{namespace}/pods/{name}/status", {"status": status})


ALL = {"Running": 10, "Succeeded": 1, "Pending": 1}


def settled(plane: Plane, pool: str) -> dict[str, tuple[str, str]]:
    made(plane, pool, MINE)
    standing(plane, MINE, {"Running": 11, "Pending": 1})
    one_ends(plane, MINE)
    plane.api.until(f"{BATCH}/{MINE}/jobs", lambda found: found["train"]["status"].get("succeeded") == 1)
    return standing(plane, MINE, ALL)


def disturb(plane: Plane) -> None:
    """Pods are deleted and made, a Deployment is scaled, a Job goes, settings change."""
    plane.api.merge(f"{APPS}/{MINE}/deployments/web", {"spec": {"replicas": 5}})
    plane.api.delete(f"{BATCH}/{MINE}/jobs/train?propagationPolicy=Background")
    plane.api.delete(f"{NAMESPACES}/{MINE}/pods/alone?gracePeriodSeconds=0")
    plane.api.merge(f"{APPS}/{MINE}/statefulsets/db", {"spec": {"replicas": 1}})
    plane.api.delete(f"{APPS}/{MINE}/daemonsets/agent")
    plane.api.merge(f"{NAMESPACES}/{MINE}/configmaps/settings", {"data": {"a": "2"}})
    plane.api.create(f"{NAMESPACES}/{MINE}/configmaps", {"metadata": {"name": "later"}, "data": {}})
    standing(plane, MINE, {"Running": 6, "Pending": 1})


def put_back(plane: Plane, before: dict[str, tuple[str, str]]) -> None:
    """All is what it was, and nobody makes a pod more of it or takes one away."""
    assert standing(plane, MINE, ALL) == before
    jobs = plane.api.until(f"{BATCH}/{MINE}/jobs", lambda found: found["train"]["status"].get("succeeded") == 1)
    assert jobs["train"]["status"]["active"] == 2
    replicas = plane.api.list(f"{APPS}/{MINE}/replicasets")
    assert [each["status"].get("replicas") for each in replicas] == [3], "one, which has taken its pods"
    owners = [["ReplicaSet"]] * 3 + [["Job"]] * 3 + [["StatefulSet"]] * 2 + [["DaemonSet"]] * 2 + [[]] * 2
    owned = plane.api.list(f"{NAMESPACES}/{MINE}/pods")
    by = {each["metadata"]["name"]: [o["kind"] for o in each["metadata"].get("ownerReferences", [])] for each in owned}
    assert sorted(map(str, by.values())) == sorted(map(str, owners))
    assert plane.api.get(f"{NAMESPACES}/{MINE}/configmaps/settings")["data"] == {"a": "1"}
    names = {each["metadata"]["name"] for each in plane.api.list(f"{NAMESPACES}/{MINE}/configmaps")}
    assert "later" not in names
    # A Deployment that is changed now rolls out: whoever owns what is right.
    plane.api.merge(f"{APPS}/{MINE}/deployments/web", {"spec": {"replicas": 4}})
    after = standing(plane, MINE, {**ALL, "Running": 11})
    assert after.items() > before.items()


async def test_what_users_had_is_there_again_and_a_stranger_s_is_untouched(
    plane: Plane, pools: Pools, client: Client, spaces: None, tmp_path: Path
) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    await wait_until_all_are_managed(client, asyncio.Event())
    made(plane, inputs["name"], THEIRS)
    standing(plane, THEIRS, {"Running": 11, "Pending": 1})
    before, file = settled(plane, inputs["name"]), tmp_path / "full.snapshot"
    about = await save(client, "dev", file, [MINE])
    assert (about.nodes, about.pods) == (len(plane.api.list("/api/v1/nodes")), 12)
    disturb(plane)
    theirs, nodes = versions(plane, THEIRS), pools.uids(inputs)
    done = await restore(client, file)
    assert (done.removed, done.left, done.remade) == (3, {}, ())
    put_back(plane, before)
    assert versions(plane, THEIRS) == theirs
    assert pools.uids(inputs) == nodes
    assert await pools.drift(inputs) == {}


async def test_what_is_as_it_was_stays(
    plane: Plane, pools: Pools, client: Client, spaces: None, tmp_path: Path
) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    await wait_until_all_are_managed(client, asyncio.Event())
    settled(plane, inputs["name"])
    file = tmp_path / "full.snapshot"
    await save(client, "dev", file, [MINE])
    before = {each["name"]: each["uid"] for each in plane.api.metadata(f"{NAMESPACES}/{MINE}/pods")}
    done = await restore(client, file)
    assert (done.written, done.removed) == (0, 0)
    assert {each["name"]: each["uid"] for each in plane.api.metadata(f"{NAMESPACES}/{MINE}/pods")} == before


# Killed when the Deployment alone has gone: tests/integration/test_restores_cut_off.py.
async def test_one_that_is_killed_is_finished_by_another(
    plane: Plane, pools: Pools, client: Client, spaces: None, tmp_path: Path
) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    await wait_until_all_are_managed(client, asyncio.Event())
    before, file = settled(plane, inputs["name"]), tmp_path / "full.snapshot"
    await save(client, "dev", file, [MINE])
    program = (
        "import asyncio, sys; from pathlib import Path; from kumulus.extras.snapshots.objects import restore\n"
        "from kumulus.kube import Client, load_kubeconfig\n"
        "async def main():\n"
        "    async with Client(load_kubeconfig(Path(sys.argv[1]))) as client:\n"
        "        await restore(client, Path(sys.argv[2]))\n"
        "asyncio.run(main())\n"
    )
    line = [sys.executable, "-c", program, plane.observed.kubeconfig, str(file)]
    for _ in range(_MOST_DRAWS):
        disturb(plane)
        if await asyncio.to_thread(_killed, plane, line) == -signal.SIGKILL:
            break
        # On a busy machine the restore may end before its moment is seen: all is as before, so it is tried again.
        standing(plane, MINE, ALL)
    else:
        pytest.fail(f"none of {_MOST_DRAWS} restores was killed while it was under way")
    await restore(client, file)
    put_back(plane, before)


def _killed(plane: Plane, line: list[str]) -> int:
    """Begin a restore, and kill it once all pods but one have gone, the last that it takes away; how it ended."""
    path = f"{NAMESPACES}/{MINE}/pods"
    restoring = subprocess.Popen(line)
    processes.await_that(
        lambda: len(plane.api.list(path)) <= 1 or restoring.poll() is not None, 60, "it is under way", pause=0.01
    )
    restoring.kill()
    return restoring.wait(10)


async def test_it_is_refused_for_another_cluster_without_its_nodes_and_without_its_namespace(
    plane: Plane, pools: Pools, client: Client, spaces: None, tmp_path: Path
) -> None:
    inputs = pools.inputs(1)
    await pools.create(inputs)
    await wait_until_all_are_managed(client, asyncio.Event())
    file = tmp_path / "full.snapshot"
    with pytest.raises(ProviderError, match="there is no namespace objects-none"):
        await save(client, "dev", file, [MINE, "objects-none"])
    assert not file.exists()
    plane.api.create(f"{NAMESPACES}/{MINE}/pods", {"metadata": {"name": "alone"}, "spec": pod_spec(inputs["name"])})
    standing(plane, MINE, {"Running": 1})
    await save(client, "dev", file, [MINE])
    about, entries = snapshot_file.read(file)
    other = tmp_path / "other.snapshot"
    snapshot_file.write(other, snapshot_file.SnapshotSummary("dev", "another", about.taken, form="objects"), entries)
    with pytest.raises(OfAnother, match="of a cluster that is gone"):
        await restore(client, other)
    await pools.delete(inputs)
    with pytest.raises(OfAnother, match="on nodes that are not here"):
        await restore(client, file)


async def test_a_namespace_that_a_release_is_in_since_stays(
    plane: Plane, client: Client, spaces: None, tmp_path: Path
) -> None:
    settings = f"{NAMESPACES}/{MINE}/configmaps"
    plane.api.create(settings, {"metadata": {"name": "settings"}, "data": {"a": "1"}})
    file = tmp_path / "full.snapshot"
    await save(client, "dev", file, [MINE, THEIRS])
    plane.api.merge(f"{settings}/settings", {"data": {"a": "2"}})
    release = {"metadata": {"name": "sh.helm.release.v1.chart.v1"}, "type": "helm.sh/release.v1"}
    plane.api.create(f"{NAMESPACES}/{MINE}/secrets", release)
    before = versions(plane, MINE)
    done = await restore(client, file)
    assert (done.left, done.written, done.removed) == ({RELEASED: (MINE,)}, 0, 0)
    assert versions(plane, MINE) == before
