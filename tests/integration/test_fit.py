"""Will it fit? The real scheduler's answer agrees with what then happens, and leaves nothing behind."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.capture import mark
from kumulus.extras.capture.dry import dry_run
from kumulus.extras.capture.fit import FitAnswer, fit
from kumulus.extras.capture.probe import Probe, looked_at, unschedulable
from kumulus.extras.capture.raising import exceeded
from kumulus.extras.journal import book
from kumulus.extras.lab.measure.summary import plain
from kumulus.extras.watch.live.pod import explain
from kumulus.kube import Client, load_kubeconfig
from kumulus.model.identity import RUN_LABEL
from kumulus.model.pools import POOL_LABEL
from tests.integration.conftest import NODES, PODS, Plane, Pools
from tests.integration.test_snapshot import Create

pytestmark = pytest.mark.integration
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
NAMESPACES = "/api/v1/namespaces"


@pytest.fixture(autouse=True)
def marked(plane: Plane) -> Iterator[None]:
    """The control plane is the clone of some capture."""
    plane.api.create(mark.MARK.rpartition("/")[0], {"metadata": {"name": mark.MARK.rpartition("/")[2]}, "data": {}})
    yield
    plane.api.delete(mark.MARK)


def probe(pool: str, count: int, cpu: str = "1", namespace: str = "default", **spec: Any) -> Probe:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    labels = {"test": pool}
    return Probe("x", namespace, labels, {"containers": [container], "nodeSelector": {"team": pool}, **spec}, count)


async def ask(plane: Plane, wanted: Probe, **options: Any) -> FitAnswer:
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        return await fit(client, wanted, **options)


async def nodes(pools: Pools, count: int, **more: Any) -> str:
    """Nodes of four CPUs that only pods of theirs select."""
    pool = pools.name()
    labels = {"team": pool, "kumulus.io/group": pool}
    asked = {"labels": labels, "taints": [], "capacity": {"cpu": "4", "pods": "110"}}
    await pools.create(pools.inputs(count, pool, **{**asked, **more}))
    return pool


def left(plane: Plane) -> list[str]:
    """What a run has made that is there still, and journals."""
    paths = ("/api/v1/pods", NODES, CLASSES, NAMESPACES)
    found = [each["name"] for path in paths for each in plane.api.metadata(path, labelSelector=RUN_LABEL)]
    return found + [each.changes.run for each in book.read(plane.identity)[0]]


async def test_what_fits_is_said_as_it_then_happens(plane: Plane, pools: Pools, workloads: Create) -> None:
    pool = await nodes(pools, 3)
    workloads(PODS, real("taken", probe(pool, 1, cpu="2")))
    plane.api.until(PODS, lambda found: all(each["spec"].get("nodeName") for each in found.values()))
    answer = await ask(plane, probe(pool, 15))
    assert (answer.verdict.fitted, answer.groups) == (10, {pool: 10})
    assert "Insufficient cpu" in answer.verdict.reason
    assert [change.what for change in answer.changes] == [f"2 more nodes like those of {pool}"]
    assert left(plane) == []
    # What then happens.
    for index in range(15):
        workloads(PODS, real(f"real-{index}", probe(pool, 1)))
    found = plane.api.until(
        PODS,
        lambda pods: (
            sum(bool(each["spec"].get("nodeName")) for each in pods.values()) >= 11
            and all(each["spec"].get("nodeName") or each["status"].get("conditions") for each in pods.values())
        ),
        labelSelector=f"test={pool}",
    )
    assert sum(bool(each["spec"].get("nodeName")) for each in found.values()) == 10 + 1


def real(name: str, like: Probe) -> dict[str, Any]:
    spec = {**like.spec, "containers": [{**like.spec["containers"][0], "image": "x"}]}
    return {"metadata": {"name": name, "labels": dict(like.labels)}, "spec": spec}


async def test_nodes_that_would_be_added_declare_what_those_that_are_there_do(plane: Plane, pools: Pools) -> None:
    pool = await nodes(pools, 1, declaredFeatures=["RestartAllContainersOnContainerExits"])
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    wanted = probe(pool, 6)
    wanted.spec["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    answer = await ask(plane, wanted)
    assert answer.verdict.fitted == 4
    assert f"1 more node like those of {pool}" in [change.what for change in answer.changes]


async def test_a_constraint_that_is_in_the_way_is_found(plane: Plane, pools: Pools) -> None:
    pool = await nodes(pools, 2)
    apart = {"labelSelector": {"matchLabels": {"test": pool}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    answer = await ask(plane, probe(pool, 4, affinity=affinity))
    assert answer.verdict.fitted == 2
    assert "dropping podAntiAffinity" in [change.what for change in answer.changes]
    assert f"2 more nodes like those of {pool}" in [change.what for change in answer.changes]
    assert left(plane) == []


async def test_a_taint_in_the_way_is_named_and_a_toleration_is_tried(plane: Plane, pools: Pools) -> None:
    pool = await nodes(pools, 2, taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
    answer = await ask(plane, probe(pool, 8))
    assert (answer.verdict.fitted, answer.untolerated["team=a:NoSchedule"]) == (0, 2)
    assert "adding a toleration for team=a:NoSchedule" in [change.what for change in answer.changes]
    why = f"one more node like those of {pool} takes none, as the pods do not tolerate team=a:NoSchedule"
    assert why in answer.tried
    assert "with a toleration for team=a:NoSchedule 8 of 9 fit" in (await ask(plane, probe(pool, 9))).tried
    assert left(plane) == []


async def test_what_fits_needs_no_change_and_nobody_is_preempted(plane: Plane, pools: Pools, workloads: Create) -> None:
    pool = await nodes(pools, 1)
    workloads(PODS, real(f"{pool}-low", probe(pool, 1, cpu="3")))
    workloads(CLASSES, {"metadata": {"name": f"{pool}-high"}, "value": 1000})
    low = plane.api.until(PODS, lambda found: all(each["spec"].get("nodeName") for each in found.values()))
    answer = await ask(plane, probe(pool, 1, priorityClassName=f"{pool}-high"))
    assert (answer.verdict.all_fit, answer.changes) == (True, [])
    answer = await ask(plane, probe(pool, 1, cpu="2", priorityClassName=f"{pool}-high"), changes=False)
    assert answer.verdict.fitted == 0
    uid = plane.api.get(f"{PODS}/{pool}-low")["metadata"]["uid"]
    assert uid == low[f"{pool}-low"]["metadata"]["uid"]
    assert left(plane) == []


@pytest.mark.every_version
async def test_what_is_read_of_kube_schedulers_and_admissions_texts_is_there(
    plane: Plane, pools: Pools, workloads: Create
) -> None:
    pool = await nodes(pools, 3)
    await pools.create(pools.inputs(2, labels={"team": "other"}, taints=[], capacity={"cpu": "4", "pods": "110"}))
    workloads(PODS, real(f"{pool}-big", probe(pool, 1, cpu="5")))
    waiting = plane.api.until(
        PODS, lambda found: "conditions" in found.get(f"{pool}-big", {}).get("status", {}), timeout=60
    )[f"{pool}-big"]
    (condition,) = waiting["status"]["conditions"]
    there = len(plane.api.list(NODES))
    # `fit` asks again if the scheduler looked at fewer nodes than there are, and says nothing of preemption.
    assert looked_at(condition["message"]) == there
    assert "preemption" in condition["message"]
    assert "preemption" not in str(unschedulable(waiting))
    # The views and the reports sum up reasons without their numbers.
    reasons = explain(condition["reason"], condition["message"])
    assert set(reasons) == {"Insufficient cpu", "node(s) didn't match Pod's node affinity/selector"}
    said = plain(f"{condition['reason']}: {condition['message']}")
    assert said == "Unschedulable: Insufficient cpu, node(s) didn't match Pod's node affinity/selector"
    workloads("/api/v1/namespaces", {"metadata": {"name": pool}})
    quotas = f"/api/v1/namespaces/{pool}/resourcequotas"
    plane.api.create(quotas, {"metadata": {"name": "small"}, "spec": {"hard": {"requests.cpu": "2"}}})
    plane.api.until(quotas, lambda found: all("used" in each.get("status", {}) for each in found.values()))
    answer = await ask(plane, probe(pool, 3, namespace=pool), changes=False)
    quota = exceeded(answer.verdict.reason)
    assert quota is not None
    assert (quota.name, quota.requested, quota.used, quota.limited) == (
        "small",
        {"requests.cpu": "1"},
        {"requests.cpu": "2"},
        {"requests.cpu": "2"},
    )


async def test_a_quota_is_what_ends_it(plane: Plane, pools: Pools, workloads: Create, tmp_path: Path) -> None:
    pool = await nodes(pools, 2)
    workloads("/api/v1/namespaces", {"metadata": {"name": pool}})
    quotas = f"/api/v1/namespaces/{pool}/resourcequotas"
    plane.api.create(quotas, {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "3"}}})
    plane.api.until(quotas, lambda found: all("used" in each.get("status", {}) for each in found.values()))
    answer = await ask(plane, probe(pool, 5, namespace=pool))
    assert (answer.verdict.fitted, answer.verdict.refused) == (3, 2)
    assert answer.verdict.reason.startswith("exceeded quota: small"), "of no pod that the user knows of"
    assert POOL_LABEL not in answer.verdict.reason
    assert [change.what for change in answer.changes] == ["raising the quota small (pods from 3 to 5)"]
    assert plane.api.get(f"{quotas}/small")["spec"]["hard"] == {"pods": "3"}
    assert left(plane) == []


async def test_a_quota_is_moved_and_nodes_are_added(plane: Plane, pools: Pools, workloads: Create) -> None:
    pool = await nodes(pools, 2)
    for namespace, most in ((pool, "3"), (f"{pool}-rich", "50")):
        workloads("/api/v1/namespaces", {"metadata": {"name": namespace}})
        path = f"/api/v1/namespaces/{namespace}/resourcequotas"
        plane.api.create(path, {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": most}}})
        plane.api.until(path, lambda found: all("used" in each.get("status", {}) for each in found.values()))
    # Two nodes of four CPUs have room for eight, the quota for three.
    answer = await ask(plane, probe(pool, 12, namespace=pool))
    assert (answer.verdict.fitted, answer.verdict.refused) == (3, 9)
    raised = f"raising the quota pods (pods from 3 to 12), which the quota pods of {pool}-rich has to spare"
    assert f"with {raised} 8 of 12 fit" in answer.tried
    assert f"{raised} and 1 more node like those of {pool}" in [change.what for change in answer.changes]
    for namespace, most in ((pool, "3"), (f"{pool}-rich", "50")):
        found = plane.api.get(f"/api/v1/namespaces/{namespace}/resourcequotas/pods")
        assert found["spec"]["hard"] == {"pods": most}
    assert left(plane) == []


async def test_pods_of_no_class_preempt_nobody(plane: Plane, pools: Pools, workloads: Create) -> None:
    pool = await nodes(pools, 1)
    workloads(CLASSES, {"metadata": {"name": f"{pool}-low"}, "value": -10})
    low = real(f"{pool}-low", probe(pool, 1, cpu="3"))
    workloads(PODS, {**low, "spec": {**low["spec"], "priorityClassName": f"{pool}-low"}})
    there = plane.api.until(PODS, lambda found: all(each["spec"].get("nodeName") for each in found.values()))
    answer = await ask(plane, probe(pool, 1, cpu="2"), changes=False)
    assert answer.verdict.fitted == 0
    assert plane.api.get(f"{PODS}/{pool}-low")["metadata"]["uid"] == there[f"{pool}-low"]["metadata"]["uid"]
    assert left(plane) == []


async def test_a_namespace_that_the_clone_lacks_is_made_and_removed(plane: Plane, pools: Pools) -> None:
    pool = await nodes(pools, 1)
    answer = await ask(plane, probe(pool, 2, namespace=f"{pool}-new"), changes=False)
    assert answer.verdict.fitted == 2
    assert f"{pool}-new" not in [each["name"] for each in plane.api.metadata(NAMESPACES)]
    assert left(plane) == []


async def test_a_quota_that_is_changed_meanwhile_stays_as_it_was_changed(plane: Plane, workloads: Create) -> None:
    """As by somebody who gives a team more, while it is raised for a question."""
    name = f"fit-{uuid.uuid4().hex[:6]}"
    workloads(NAMESPACES, {"metadata": {"name": name}})
    path = f"{NAMESPACES}/{name}/resourcequotas"
    for quota in ("mine", "kept"):
        plane.api.create(path, {"metadata": {"name": quota}, "spec": {"hard": {"pods": "3", "requests.cpu": "2"}}})
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client, dry_run(client, "x", print) as dry:
        for quota in ("mine", "kept"):
            await dry.raise_quota(name, quota, {"pods": "5", "requests.cpu": "2500m"})
            await dry.raise_quota(name, quota, {"pods": "9"})
        plane.api.merge(f"{path}/mine", {"spec": {"hard": {"pods": "7"}}})
    assert plane.api.get(f"{path}/mine")["spec"]["hard"] == {"pods": "7", "requests.cpu": "2"}
    assert plane.api.get(f"{path}/kept")["spec"]["hard"] == {"pods": "3", "requests.cpu": "2"}


async def test_a_cluster_that_is_not_marked_as_the_clone_is_not_touched(
    plane: Plane, pools: Pools, tmp_path: Path
) -> None:
    pool = await nodes(pools, 1)
    for name in ("stack.yaml", "workload.yaml"):
        (tmp_path / name).write_text("a capture\n")
    before = picture(plane)
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        with pytest.raises(mark.NotTheClone, match=r"^the cluster is the clone of another capture than /"):
            await fit(client, probe(pool, 1), tmp_path)
        await mark.write(client, tmp_path, "stack.yaml", "workload.yaml")
        assert (await fit(client, probe(pool, 1), tmp_path)).verdict.all_fit
        (tmp_path / "workload.yaml").write_text("captured again\n")
        with pytest.raises(mark.NotTheClone):
            await fit(client, probe(pool, 1), tmp_path)
        plane.api.delete(mark.MARK)
        with pytest.raises(mark.NotTheClone, match=r"^the cluster is no clone of a capture$"):
            await fit(client, probe(pool, 1))
    assert picture(plane) == before
    plane.api.create(mark.MARK.rpartition("/")[0], {"metadata": {"name": mark.MARK.rpartition("/")[2]}})


def picture(plane: Plane) -> list[set[str]]:
    """What is there, by UID; what earlier tests have deleted may go meanwhile."""
    return [
        {each["uid"] for each in plane.api.metadata(path) if "deletionTimestamp" not in each}
        for path in ("/api/v1/pods", NODES, CLASSES, NAMESPACES)
    ]
