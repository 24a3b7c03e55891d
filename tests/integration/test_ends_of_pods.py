"""How a deleted pod of an emulated node ends: as on a kubelet's node, whoever owns it and whatever deletes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from tests.integration.conftest import JOBS, NODES, PODS, Plane, Pools
from tests.support import processes
from tests.support.api import Api, Object

pytestmark = pytest.mark.integration
SETS = {
    "Job": JOBS,
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
}
DIFFERENT = (
    *("lastTransitionTime", "lastProbeTime", "startedAt", "finishedAt", "startTime", "hostIP", "hostIPs", "podIP"),
    *("podIPs", "containerID", "image", "imageID", "qosClass", "resources", "allocatedResources"),
    "observedGeneration",
)
"""Fields of a status that are another pod's others."""
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
GPU = "nvidia.com/gpu"


def kubelets(code: int) -> Object:
    """The status that a kubelet writes when it has killed a deleted pod's container, without times and addresses.

    From its source (k8s.io/kubernetes v1.35.4, pkg/kubelet: generateAPIPodStatus, getPhase; status/generate.go).

    Args:
        code: the container's exit code.
    """
    ended = {"terminated": {"exitCode": code, "reason": "Error"}}
    return {
        "phase": "Failed",
        "conditions": [
            {"type": "ContainersReady", "status": "False", "reason": "PodFailed"},
            {"type": "Initialized", "status": "True"},
            {"type": "PodReadyToStartContainers", "status": "False"},
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "False", "reason": "PodFailed"},
        ],
        "containerStatuses": [{"name": "main", "ready": False, "started": False, "restartCount": 0, "state": ended}],
    }


Delete = Callable[[Api, Object], None]


def _delete(api: Api, pod: Object, query: str = "") -> None:
    api.delete(f"{PODS}/{pod['metadata']['name']}{query}")


def _evict(api: Api, pod: Object) -> None:
    # As `kubectl drain` does.
    name = pod["metadata"]["name"]
    api.create(f"{PODS}/{name}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})


def _taint(api: Api, pod: Object) -> None:
    taint = {"key": "example.com/broken", "effect": "NoExecute"}
    api.merge(f"{NODES}/{pod['spec']['nodeName']}", {"spec": {"taints": [taint]}})


def _preempt(api: Api, pod: Object) -> None:
    spec = {**_spec(pod["metadata"]["labels"]["end"], gpus=8), "priorityClassName": "high"}
    api.create(PODS, {"metadata": {"name": "winner", "labels": {"app": "winner"}}, "spec": spec})


WAYS: dict[str, Delete] = {
    "deletion": _delete,
    "force": partial(_delete, query="?gracePeriodSeconds=0"),
    "eviction": _evict,
    "taint": _taint,
    "preemption": _preempt,
}
OWNERS = ("nobody", "Job", "Job without finalizers", "Deployment", "StatefulSet")


def _spec(label: str, gpus: int = 1) -> Object:
    return {
        "nodeSelector": {"end": label},
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "none", "resources": {"limits": {GPU: str(gpus)}}}],
    }


@pytest.fixture(scope="module")
def classes(plane: Plane) -> Iterator[None]:
    for name, value in (("high", 1000), ("low", -10)):
        plane.api.create(CLASSES, {"metadata": {"name": name}, "value": value})
    yield
    for name in ("high", "low"):
        plane.api.delete(f"{CLASSES}/{name}")


@pytest.fixture
def clean(plane: Plane) -> Iterator[None]:
    """Afterwards there is no workload left."""
    yield
    for path in (*SETS.values(), PODS):
        plane.api.delete(f"{path}?propagationPolicy=Background&gracePeriodSeconds=0")
    plane.api.until(PODS, lambda found: not found)


def owned(api: Api, owner: str, label: str) -> Object:
    """A running pod of an owner."""
    name, template = "w", {"metadata": {"labels": {"app": "w", "end": label}}, "spec": _spec(label, gpus=8)}
    kind = owner.partition(" ")[0]
    if kind == "nobody":
        api.create(PODS, {"metadata": {"name": name, **template["metadata"]}, "spec": template["spec"]})
    elif kind == "Job":
        template["metadata"]["annotations"] = {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}
        template["spec"] |= {"restartPolicy": "Never"}
        api.create(JOBS, {"metadata": {"name": name}, "spec": {"template": template}})
    else:
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": template}
        api.create(SETS[kind], {"metadata": {"name": name}, "spec": {**spec, "serviceName": "w"}})
    found = api.until(PODS, lambda pods: [p for p in pods.values() if p["status"]["phase"] == "Running"] != [])
    pod = next(iter(found.values()))
    if owner.endswith("without finalizers"):
        pod = api.merge(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"finalizers": None}})
    return pod


def life_after(api: Api, pod: Object, version: str) -> list[Object]:
    """A pod as every watch saw it from a resourceVersion until it was gone."""
    uid, seen = pod["metadata"]["uid"], []
    for event in api.events(PODS, version, 60, fieldSelector=f"metadata.name={pod['metadata']['name']}"):
        if event["object"]["metadata"]["uid"] == uid:
            seen.append(event["object"])
            if event["type"] == "DELETED":
                return seen
    raise AssertionError(f"the pod is still there: {seen}")


def essence(pod: Object) -> Object:
    """A pod's status without what is not its kubelet's to say, and what differs from pod to pod."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            left = {key: bare(each) for key, each in value.items() if key not in DIFFERENT}
            return {key: each for key, each in left.items() if each not in ({}, [], "", None)}
        return [bare(each) for each in value] if isinstance(value, list) else value

    found: Object = bare(pod["status"])
    listed = [each for each in found["conditions"] if each["type"] != "DisruptionTarget"]
    return {**found, "conditions": sorted(listed, key=lambda each: str(each["type"]))}


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("classes", "clean")
async def test_a_deleted_pod_ends_as_on_a_kubelets_node(plane: Plane, pools: Pools, way: str, owner: str) -> None:
    label = f"{way}-{owner.replace(' ', '-').lower()}"
    await pools.create(pools.inputs(1, labels={"end": label}, taints=[]))
    pod = owned(plane.api, owner, label)
    version = plane.api.version(PODS)
    WAYS[way](plane.api, pod)
    seen = life_after(plane.api, pod, version)
    if way == "force" and "finalizers" not in pod["metadata"]:
        # The API server removes it at once; its kubelet never gets to write anything, here and on a real node.
        return
    assert essence(seen[-1]) == kubelets(137 if way == "force" else 143)
    # Job controllers and PodDisruptionBudgets count by this: never Ready again after it has ended.
    assert all(not _is_ready(each) for each in seen[_ended(seen) :])


def _ended(seen: list[Object]) -> int:
    return next(index for index, each in enumerate(seen) if each["status"]["phase"] == "Failed")


def _is_ready(pod: Object) -> bool:
    return {each["type"]: each["status"] for each in pod["status"]["conditions"]}.get("Ready") == "True"


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
}


@pytest.mark.parametrize("doing", ENDS)
@pytest.mark.usefixtures("clean")
async def test_what_a_pods_containers_did_decides_how_it_ends(plane: Plane, pools: Pools, doing: str) -> None:
    init, containers, init_after, after, phase = ENDS[doing]
    await pools.create(pools.inputs(1, labels={"end": "doing"}, taints=[]))
    spec = {**_spec("doing"), "containers": [{"name": name, "image": "none"} for name in "ab"]}
    if init:
        spec["initContainers"] = [{"name": "first", "image": "none"}]
    body = {"metadata": {"name": "w", "labels": {"app": "w"}, "finalizers": ["example.com/keep"]}, "spec": spec}
    plane.api.create(PODS, body)
    plane.api.until(PODS, lambda pods: pods["w"]["status"]["phase"] == "Running")
    initialized = {"type": "Initialized", "status": "False" if init == RUNS else "True"}
    listed = {"containerStatuses": [_container(*each) for each in zip("ab", containers, strict=True)]}
    if init:
        listed["initContainerStatuses"] = [_container("first", init)]
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
    pod = owned(plane.api, "nobody", "killed")
    version = plane.api.version(PODS)
    processes.kill(plane.processes()["kwok-controller"])
    # What it does first, without what it does then.
    plane.api.delete(f"{PODS}/w?gracePeriodSeconds=30")
    plane.api.merge(f"{PODS}/w/status", {"status": {"phase": "Failed"}})
    await plane.repair()
    assert life_after(plane.api, pod, version)


@pytest.mark.usefixtures("classes", "clean")
async def test_a_job_gives_way_to_one_of_higher_priority(plane: Plane, pools: Pools) -> None:
    await pools.create(pools.inputs(4, labels={"end": "jobs"}, taints=[]))
    plane.api.create(JOBS, gpu_job("many", 32, "low"))
    running(plane.api, "many", 32)
    # kubernetes #139428: 1.35.4 refuses the status of a Job that has more ready pods than active ones, as while victims
    # are Ready. Their finalizers then stay, and they keep their GPUs.
    plane.api.create(JOBS, gpu_job("urgent", 16, "high"))
    running(plane.api, "urgent", 16)


def gpu_job(name: str, pods: int, priority: str) -> Object:
    annotations = {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}
    spec = {**_spec("jobs"), "restartPolicy": "Never", "priorityClassName": priority}
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
