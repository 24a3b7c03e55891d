"""What becomes of a pod while it runs on an emulated node, on each Kubernetes version: as a kubelet would have it."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from kumulus.model.lifecycles import DELAY_ANNOTATION, EMULATED_CONDITION
from tests.integration.conftest import JOBS, NODES, PODS, Plane, Pools
from tests.support.api import MERGE_PATCH, Object
from tests.support.ends_of_pods import Place

pytestmark = [pytest.mark.integration, pytest.mark.every_version]
GATE = "example.com/open"


@pytest.fixture
async def node(plane: Plane, pools: Pools) -> AsyncIterator[str]:
    """A node; the pods on it are removed after the test."""
    inputs = pools.inputs(
        1, labels={"runs": "pods"}, taints=[], nodeInfo={"kubeletVersion": plane.wanted.kubernetes_version}
    )
    await pools.create(inputs)
    (name,) = pools.nodes(inputs)
    yield name
    Place(plane.api, "").remove_all()


def pod(name: str, *command: str, policy: str = "Never", container: Object | None = None, **spec: Any) -> Object:
    """A pod of one container."""
    main = {"name": "main", "image": "busybox", **({"command": list(command)} if command else {}), **(container or {})}
    return {"metadata": {"name": name}, "spec": {"restartPolicy": policy, "containers": [main], **spec}}


def seen(plane: Plane, name: str, there: Callable[[Object], object]) -> Object:
    """The pod as soon as it is as awaited."""
    found = plane.api.until(
        PODS, lambda pods: name in pods and bool(there(pods[name])), fieldSelector=f"metadata.name={name}"
    )
    return found[name]


def running(plane: Plane, body: Object) -> Object:
    """The pod once it runs."""
    plane.api.create(PODS, body)
    return seen(plane, body["metadata"]["name"], lambda pod: pod["status"]["phase"] == "Running")


def container(pod: Object) -> Object:
    found: Object = pod["status"]["containerStatuses"][0]
    return found


def conditions(pod: Object) -> dict[str, Object]:
    return {each["type"]: each for each in pod["status"]["conditions"]}


def observed(pod: Object) -> bool:
    """Whether its kubelet has seen its spec, and says so in the conditions that are its own."""
    own = [each for kind, each in conditions(pod).items() if kind not in (EMULATED_CONDITION, GATE)]
    latest = pod["metadata"]["generation"]
    return pod["status"].get("observedGeneration") == latest and {each.get("observedGeneration") for each in own} == {
        latest
    }


def times(*moments: str) -> list[float]:
    return [datetime.fromisoformat(each).timestamp() for each in moments]


def resized(plane: Plane, name: str, cpu: str, memory: str) -> None:
    requests = {"cpu": cpu, "memory": memory}
    body = {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}
    plane.api.request("PATCH", f"{PODS}/{name}/resize", body, "application/strategic-merge-patch+json")


SIZED: Object = {
    "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
    "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
}


@pytest.mark.usefixtures("node")
def test_a_pod_is_resized_in_place_and_restarted_where_its_policy_says_so(plane: Plane) -> None:
    first = running(plane, pod("w", policy="Always", container=SIZED))
    assert observed(first)
    assert container(first)["resources"] == SIZED["resources"]
    assert container(first)["allocatedResources"] == SIZED["resources"]["requests"]
    resized(plane, "w", "200m", "1Gi")
    second = seen(plane, "w", observed)
    assert second["metadata"]["generation"] == 2
    assert container(second)["resources"]["requests"] == {"cpu": "200m", "memory": "1Gi"}
    assert container(second)["restartCount"] == 0
    resized(plane, "w", "200m", "2Gi")
    third = seen(plane, "w", observed)
    assert container(third)["allocatedResources"] == {"cpu": "200m", "memory": "2Gi"}
    assert container(third)["restartCount"] == 1
    assert container(third)["lastState"]["terminated"]["startedAt"] == container(first)["state"]["running"]["startedAt"]
    assert conditions(third)["Ready"]["status"] == "True"


@pytest.mark.parametrize("outcome", ["Deferred", "Infeasible"])
@pytest.mark.usefixtures("node")
def test_a_resize_waits_as_long_as_the_pod_declares_it(plane: Plane, outcome: str) -> None:
    body = pod("w", policy="Always", container=SIZED)
    body["metadata"]["annotations"] = {"kumulus.io/resize": outcome.lower()}
    running(plane, body)
    resized(plane, "w", "200m", "1Gi")
    held = seen(plane, "w", lambda found: observed(found) and "PodResizePending" in conditions(found))
    assert conditions(held)["PodResizePending"]["reason"] == outcome
    assert container(held)["resources"] == SIZED["resources"]
    plane.api.merge(f"{PODS}/w", {"metadata": {"annotations": None}})
    done = seen(plane, "w", lambda found: "PodResizePending" not in conditions(found))
    assert container(done)["resources"]["requests"]["cpu"] == "200m"


# By command: the exit code, and after how many seconds.
ENDS = {
    ("true",): (0, 0),
    ("/bin/false",): (1, 0),
    ("sleep", "2"): (0, 2),
    ("sh", "-c", "echo begins; sleep 2; exit 42"): (42, 2),
}


@pytest.mark.usefixtures("node")
def test_bare_pods_end_as_their_commands_say(plane: Plane) -> None:
    for index, command in enumerate(ENDS):
        plane.api.create(PODS, pod(f"w{index}", *command))
    for name, command in {"stays": ("sleep", "inf"), "unknown": ("python", "x.py")}.items():
        plane.api.create(PODS, pod(name, *command))
    for index, (code, seconds) in enumerate(ENDS.values()):
        found = seen(plane, f"w{index}", lambda pod: pod["status"]["phase"] in ("Succeeded", "Failed"))
        end = container(found)["state"]["terminated"]
        assert (end["exitCode"], end["reason"]) == (code, "Error" if code else "Completed")
        assert found["status"]["phase"] == ("Failed" if code else "Succeeded")
        started, finished = times(end["startedAt"], end["finishedAt"])
        assert finished - started >= seconds
        assert conditions(found)[EMULATED_CONDITION]["reason"] == "ExitCodeDeclared"
    phases = {each["metadata"]["name"]: each["status"]["phase"] for each in plane.api.list(PODS)}
    assert (phases["stays"], phases["unknown"]) == ("Running", "Running")


@pytest.mark.usefixtures("node")
def test_a_failed_container_is_restarted_where_its_pod_says_so(plane: Plane) -> None:
    plane.api.create(PODS, pod("w", "false", policy="OnFailure"))
    found = seen(plane, "w", lambda pod: pod["status"].get("containerStatuses") and container(pod)["restartCount"] >= 1)
    assert container(found)["lastState"]["terminated"]["exitCode"] == 1
    assert found["status"]["phase"] == "Running"


@pytest.mark.usefixtures("node")
def test_a_pod_whose_init_container_fails_never_starts(plane: Plane) -> None:
    inits = [{"name": name, "image": "busybox", "command": [name]} for name in ("true", "false", "echo")]
    plane.api.create(PODS, pod("ends", initContainers=inits))
    plane.api.create(PODS, pod("again", policy="Always", initContainers=inits))
    ended = seen(plane, "ends", lambda found: found["status"]["phase"] == "Failed")
    assert [list(each["state"]) for each in ended["status"]["initContainerStatuses"]] == [
        ["terminated"],
        ["terminated"],
        ["waiting"],
    ]
    assert ended["status"]["initContainerStatuses"][1]["state"]["terminated"]["exitCode"] == 1
    assert conditions(ended)["Initialized"]["message"] == "containers with incomplete status: [false echo]"
    again = seen(
        plane,
        "again",
        lambda found: any(each["restartCount"] >= 1 for each in found["status"].get("initContainerStatuses", [])),
    )
    assert again["status"]["phase"] == "Pending"
    assert conditions(again)["Initialized"]["status"] == "False"
    assert again["status"]["initContainerStatuses"][1]["state"]["waiting"]["reason"] == "CrashLoopBackOff"


@pytest.mark.usefixtures("node")
def test_a_sidecar_ends_with_its_pod_as_by_a_signal(plane: Plane) -> None:
    side = {"name": "side", "image": "busybox", "restartPolicy": "Always"}
    plane.api.create(PODS, pod("w", "true", initContainers=[side]))
    found = seen(plane, "w", lambda found: found["status"]["phase"] == "Succeeded")
    end = found["status"]["initContainerStatuses"][0]["state"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (143, "Error")


@pytest.mark.usefixtures("node")
def test_jobs_fail_by_their_back_off_limit_and_their_failure_policy(plane: Plane) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}
    validators = "ghcr.io/nvidia/aicr-validators/deployment:v1"
    checking = pod("x", container={"name": "validator", "image": validators, "args": ["operator-health"]})["spec"]
    check = {"name": "cuda-validation", "image": "nvcr.io/nvidia/gpu-operator-validator:v25", "command": ["vectorAdd"]}
    echoing = pod("x", "sh", "-c", "echo validation is successful", initContainers=[check])["spec"]
    specs = {
        "limit": {"backoffLimit": 0, "template": {"spec": pod("x", "false")["spec"]}},
        "policy": {
            "backoffLimit": 6,
            "podFailurePolicy": {"rules": [rule]},
            "template": {"spec": pod("x", "sh", "-c", "exit 3")["spec"]},
        },
        "succeeds": {"template": {"spec": pod("x", "sh", "-c", "sleep 1; exit 0")["spec"]}},
        "assumed": {"template": {"spec": pod("x", "python", "x.py")["spec"]}},
        "annotated": {
            "template": {"metadata": {"annotations": {DELAY_ANNOTATION: "1s"}}, "spec": pod("x", "x")["spec"]}
        },
        "gpu-validator": {"backoffLimit": 0, "template": {"spec": pod("x", "python", "x.py")["spec"]}},
        "aicr-operator-health-0a1b2c3d": {"backoffLimit": 0, "template": {"spec": checking}},
        "echoes": {"backoffLimit": 0, "template": {"spec": echoing}},
    }
    for name, spec in specs.items():
        plane.api.create(JOBS, {"metadata": {"name": name}, "spec": spec})

    def reasons(jobs: Any) -> dict[str, str]:
        ended = {
            name: [c for c in job["status"].get("conditions", []) if c["type"] in ("Failed", "Complete")]
            for name, job in jobs.items()
        }
        return {name: found[0]["reason"] for name, found in ended.items() if found}

    found = plane.api.until(JOBS, lambda jobs: len(reasons(jobs)) == len(specs))
    complete = "CompletionsReached"
    assert reasons(found) == {
        "limit": "BackoffLimitExceeded",
        "policy": "PodFailurePolicy",
        "succeeds": complete,
        "assumed": complete,
        "annotated": complete,
        "gpu-validator": "BackoffLimitExceeded",
        "aicr-operator-health-0a1b2c3d": "BackoffLimitExceeded",
        "echoes": "BackoffLimitExceeded",
    }
    marks = {
        each["metadata"]["labels"]["job-name"]: conditions(each)[EMULATED_CONDITION]["reason"]
        for each in plane.api.list(PODS)
    }
    assert marks["succeeds"] == marks["annotated"] == "ExitCodeDeclared"
    assert marks["assumed"] == "ExitCodeAssumed"
    assert marks["echoes"] == marks["aicr-operator-health-0a1b2c3d"] == "MustRun"


@pytest.mark.usefixtures("node")
def test_a_pod_is_ready_when_its_probes_begin(plane: Plane) -> None:
    probe = {"readinessProbe": {"initialDelaySeconds": 3, "httpGet": {"path": "/", "port": 80}}}
    first = running(plane, pod("w", policy="Always", container=probe))
    assert conditions(first)["Ready"]["status"] == "False"
    assert (container(first)["ready"], container(first)["started"]) == (False, True)
    ready = seen(plane, "w", lambda found: conditions(found)["Ready"]["status"] == "True")
    started, since = times(
        container(ready)["state"]["running"]["startedAt"], conditions(ready)["Ready"]["lastTransitionTime"]
    )
    assert since - started >= 3
    assert container(ready)["resources"] == {}


@pytest.mark.usefixtures("node")
def test_a_pod_fails_at_its_deadline_also_at_one_that_is_set_later(plane: Plane) -> None:
    running(plane, pod("w", policy="Always"))
    plane.api.merge(f"{PODS}/w", {"spec": {"activeDeadlineSeconds": 2}})
    found = seen(plane, "w", lambda pod: pod["status"]["phase"] == "Failed")
    assert found["status"]["reason"] == "DeadlineExceeded"
    assert container(found)["state"]["terminated"]["exitCode"] == 143


def is_said(status: str, pod: Object) -> bool:
    """Whether that is the status of its condition Ready."""
    return bool(conditions(pod)["Ready"]["status"] == status)


@pytest.mark.usefixtures("node")
def test_readiness_gates_are_their_controllers(plane: Plane) -> None:
    first = running(plane, pod("w", policy="Always", readinessGates=[{"conditionType": GATE}]))
    ready = conditions(first)["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    assert ready["message"] == f'corresponding condition of pod readiness gate "{GATE}" does not exist.'
    assert GATE not in conditions(first)
    assert conditions(first)["ContainersReady"]["status"] == "True"
    for status in ("True", "False"):
        gate = {"status": {"conditions": [{"type": GATE, "status": status}]}}
        plane.api.request("PATCH", f"{PODS}/w/status", gate, "application/strategic-merge-patch+json")
        seen(plane, "w", partial(is_said, status))


@pytest.mark.usefixtures("node")
def test_ephemeral_containers_run_and_a_new_image_restarts(plane: Plane) -> None:
    running(plane, pod("w", policy="Always"))
    debugger = {"name": "debugger", "image": "busybox"}
    body = {"spec": {"ephemeralContainers": [debugger]}}
    plane.api.request("PATCH", f"{PODS}/w/ephemeralcontainers", body, "application/strategic-merge-patch+json")
    found = seen(plane, "w", observed)
    (status,) = found["status"]["ephemeralContainerStatuses"]
    assert (status["name"], list(status["state"])) == ("debugger", ["running"])
    plane.api.request(
        "PATCH",
        f"{PODS}/w",
        {"spec": {"containers": [{"name": "main", "image": "other"}]}},
        "application/strategic-merge-patch+json",
    )
    found = seen(plane, "w", observed)
    assert (container(found)["image"], container(found)["restartCount"]) == ("other", 1)
    assert found["status"]["ephemeralContainerStatuses"] == [status]


def test_a_node_lets_pods_have_what_is_advertised_and_declares_its_features(plane: Plane, node: str) -> None:
    resource = {"status": {"capacity": {"example.com/dongle": "4"}}}
    plane.api.request("PATCH", f"{NODES}/{node}/status", resource, MERGE_PATCH)
    found = plane.api.until(NODES, lambda nodes: "example.com/dongle" in nodes[node]["status"]["allocatable"])[node]
    assert found["status"]["allocatable"]["example.com/dongle"] == "4"
    assert found["status"]["nodeInfo"]["kubeletVersion"] == plane.wanted.kubernetes_version
    declared = found["status"].get("declaredFeatures", [])
    assert ("RestartAllContainersOnContainerExits" in declared) == (
        not plane.wanted.kubernetes_version.startswith("v1.35")
    )
