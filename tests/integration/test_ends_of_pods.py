"""How a deleted pod of an emulated node ends: as on a kubelet's node, whoever owns it and whatever deletes it."""

from collections.abc import Iterator, Mapping

import pytest

from kumulus.model.lifecycles import EMULATED_CONDITION
from tests.integration.conftest import JOBS, PODS, Plane, Pools
from tests.support import processes
from tests.support.api import Api, Object
from tests.support.ends_of_pods import (
    CLASSES,
    NOT_EMULATED,
    OWNERS,
    PRIORITIES,
    WAYS,
    Place,
    Recording,
    essence,
    fields,
    is_over,
    is_ready,
    is_removed_at_once,
    life_after,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def classes(plane: Plane) -> Iterator[None]:
    for name, value in PRIORITIES.items():
        plane.api.create(CLASSES, {"metadata": {"name": name}, "value": value})
    yield
    for name in PRIORITIES:
        plane.api.delete(f"{CLASSES}/{name}")


@pytest.fixture
def clean(plane: Plane) -> Iterator[None]:
    """Afterwards there is no workload left."""
    yield
    Place(plane.api, "").remove_all()


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("classes", "clean")
async def test_a_deleted_pod_ends_as_on_a_kubelets_node(plane: Plane, pools: Pools, way: str, owner: str) -> None:
    label, kubelets = f"{way}-{owner.replace(' ', '-').lower()}", Recording.read()
    await pools.create(pools.inputs(1, labels={"end": label}, taints=[]))
    place = Place(plane.api, label)
    pod = place.running(owner)
    version = plane.api.version(PODS)
    assert essence(pod) == kubelets.status(f"running {owner}")
    WAYS[way](place, pod)
    seen = life_after(plane.api, pod, version)
    if is_removed_at_once(way, pod):
        assert f"{way} of {owner}" not in kubelets.of
        return
    assert essence(seen[-1]) == kubelets.status(f"{way} of {owner}")
    # Job controllers and PodDisruptionBudgets count by this: never Ready again after it has ended.
    ended = next(index for index, each in enumerate(seen) if is_over(each))
    assert not any(map(is_ready, seen[ended:]))


@pytest.mark.usefixtures("clean")
async def test_a_status_has_all_that_a_kubelets_has_but_what_is_listed(plane: Plane, pools: Pools) -> None:
    kubelets = Recording.read()
    await pools.create(pools.inputs(1, labels={"end": "fields"}, taints=[]))
    place = Place(plane.api, "fields")
    running = place.running("nobody")
    place.remove_all()
    completed = place.completed()
    ended = completed["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended.pop("message") == "emulated; the exit code is assumed"
    (mark,) = (each for each in completed["status"]["conditions"] if each["type"] == EMULATED_CONDITION)
    assert (mark["status"], mark["reason"]) == ("True", "ExitCodeAssumed")
    assert essence(completed) == kubelets.status("completed Job")
    for name, pod in (("running", running), ("completed", completed)):
        lacking = set(kubelets.fields[name]) - fields(pod["status"])
        assert lacking <= NOT_EMULATED, name
        # The list is of what is lacking, and of nothing else.
        assert NOT_EMULATED & set(kubelets.fields[name]) == lacking


DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
BROKEN = {"terminated": {"exitCode": 3, "reason": "Error"}}
KILLED = {"terminated": {"exitCode": 143, "reason": "Error"}}
LOST = {
    "terminated": {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
    }
}
RUNS = {"running": {"startedAt": "2026-01-31T12:00:00Z"}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff"}}
CREATING, INITIALIZING = ({"waiting": {"reason": reason}} for reason in ("ContainerCreating", "PodInitializing"))
# By what a pod is doing: the states of its init container, if it has one, and of its two containers; the same after its
# deletion, by TerminatePod and hasPodInitialized of the kubelet's status manager (v1.35.4); and its phase.
Both = tuple[Object, Object]
ENDS: dict[str, tuple[Object | None, Both, Object | None, Both, str]] = {
    "one of two has succeeded": (None, (DONE, RUNS), None, (DONE, KILLED), "Failed"),
    "both have succeeded": (None, (DONE, DONE), None, (DONE, DONE), "Succeeded"),
    "one waits for its restart": (None, (RUNS, BACK_OFF), None, (KILLED, BROKEN), "Failed"),
    "neither was started": (None, (CREATING, CREATING), None, (LOST, LOST), "Failed"),
    "it initializes": (RUNS, (INITIALIZING, INITIALIZING), KILLED, (INITIALIZING, INITIALIZING), "Failed"),
    "it has initialized": (DONE, (RUNS, RUNS), DONE, (KILLED, KILLED), "Failed"),
    "no kubelet has seen it": ({}, ({}, {}), INITIALIZING, (INITIALIZING, INITIALIZING), "Failed"),
}


@pytest.mark.parametrize("doing", ENDS)
@pytest.mark.usefixtures("clean")
async def test_what_a_pods_containers_did_decides_how_it_ends(plane: Plane, pools: Pools, doing: str) -> None:
    init, containers, init_after, after, phase = ENDS[doing]
    await pools.create(pools.inputs(1, labels={"end": "doing"}, taints=[]))
    spec = {**Place(plane.api, "doing").pod(), "containers": [{"name": name, "image": "none"} for name in "ab"]}
    if init is not None:
        spec["initContainers"] = [{"name": "first", "image": "none"}]
    body = {"metadata": {"name": "w", "labels": {"app": "w"}, "finalizers": ["example.com/keep"]}, "spec": spec}
    plane.api.create(PODS, body)
    plane.api.until(PODS, lambda pods: pods["w"]["status"]["phase"] == "Running")
    initialized = {"type": "Initialized", "status": "False" if init in (RUNS, {}) else "True"}
    states = [_container(*each) for each in zip("ab", containers, strict=True)]
    listed = {"containerStatuses": states, "initContainerStatuses": [_container("first", init)] if init else None}
    if init == {}:
        listed["containerStatuses"] = None
    plane.api.merge(f"{PODS}/w/status", {"status": {**listed, "conditions": [initialized]}})
    plane.api.delete(f"{PODS}/w")
    found = plane.api.until(PODS, lambda pods: pods["w"]["status"]["phase"] in ("Succeeded", "Failed"))
    status = essence(found["w"])
    assert status["phase"] == phase
    assert tuple(each["state"] for each in status["containerStatuses"]) == after
    assert [each["state"] for each in status.get("initContainerStatuses", [])] == ([init_after] if init_after else [])
    reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    assert {each["type"]: each.get("reason") for each in status["conditions"]}["Ready"] == reason
    # It stays as long as its finalizer does, and no longer.
    version = plane.api.version(PODS)
    plane.api.merge(f"{PODS}/w", {"metadata": {"finalizers": None}})
    assert life_after(plane.api, found["w"], version)


def _container(name: str, state: Object) -> Object:
    before = {"lastState": BROKEN} if state is BACK_OFF else {}
    return {
        "name": name,
        "image": "none",
        "imageID": "",
        "ready": state is RUNS,
        "restartCount": 0,
        "state": state,
        **before,
    }


@pytest.mark.usefixtures("clean")
async def test_a_pod_that_ended_as_its_kwok_controller_was_killed_is_removed_by_the_next(
    plane: Plane, pools: Pools
) -> None:
    await pools.create(pools.inputs(1, labels={"end": "killed"}, taints=[]))
    pod = Place(plane.api, "killed").running("nobody")
    version = plane.api.version(PODS)
    processes.kill(plane.processes()["kwok-controller"])
    # What it does first, without what it does then.
    plane.api.delete(f"{PODS}/w?gracePeriodSeconds=30")
    plane.api.merge(f"{PODS}/w/status", {"status": {"phase": "Failed"}})
    await plane.repair()
    assert life_after(plane.api, pod, version)


# By itself, 1.37 would do, as it has the mend of #139428.
@pytest.mark.every_version
@pytest.mark.usefixtures("classes", "clean")
async def test_a_job_gives_way_to_one_of_higher_priority(plane: Plane, pools: Pools) -> None:
    await pools.create(pools.inputs(4, labels={"end": "jobs"}, taints=[]))
    place = Place(plane.api, "jobs")
    plane.api.create(JOBS, gpu_job(place, "many", 32, "low"))
    running(plane.api, "many", 32)
    # kubernetes #139428: 1.35.4 refuses the status of a Job that has more ready pods than active ones, as while victims
    # are Ready. Their finalizers then stay, and they keep their GPUs.
    plane.api.create(JOBS, gpu_job(place, "urgent", 16, "high"))
    running(plane.api, "urgent", 16)


def gpu_job(place: Place, name: str, pods: int, priority: str) -> Object:
    annotations = {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}
    spec = {**place.pod(), "restartPolicy": "Never", "priorityClassName": priority}
    template = {"metadata": {"annotations": annotations}, "spec": spec}
    # A Job counts a preempted pod as failed.
    return {
        "metadata": {"name": name},
        "spec": {"parallelism": pods, "completions": pods, "backoffLimit": 100, "template": template},
    }


def running(api: Api, job: str, pods: int) -> None:
    """Wait until so many pods of a Job run."""

    def there(found: Mapping[str, Object]) -> bool:
        return [each["status"]["phase"] for each in found.values()].count("Running") == pods

    api.until(PODS, there, timeout=60, labelSelector=f"batch.kubernetes.io/job-name={job}")
