"""Pod lifecycles on a real control plane: what KWOK makes of their stages, for pods of every kind of owner."""

import asyncio
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from kumulus.kube.codecs import STRATEGIC_MERGE_PATCH
from kumulus.kwok.fault_stages import pod_stages
from kumulus.kwok.lifecycle_stages import stage_objects
from kumulus.kwok.stages import API_VERSION
from kumulus.model.fault_effects import PodEffects
from kumulus.model.lifecycles import Lifecycle
from kumulus.model.nodes import node_manifest
from kumulus.model.pools import POOL_LABEL
from kumulus.provider.connections import Connections
from kumulus.runtimes.kwok.layout import Layout
from kumulus.stackfile.expand import pools
from kumulus.stackfile.model import ClusterSpec
from tests.integration.conftest import JOBS, NODES, PODS, Plane, Pools, plane_at
from tests.integration.test_running_pods import observed
from tests.support import processes
from tests.support.api import Object
from tests.support.draws import CRITICAL, distance, normal, waits
from tests.support.said import Said

pytestmark = pytest.mark.integration
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
STAGES = f"/apis/{API_VERSION}/stages"
TRAINING = {"lognormal": {"median": "10s", "sigma": 0.3}}
# By how many seconds KWOK may be late on a busy machine: an end is noted as the second in which it gets to the pod.
LATE = 8
# A duration of its own for each kind of workload, in seconds, and so far from the next that none is taken for another.
RUNS = {"JobSet": 2, "Job": 10, "MPIJob": 18, "PyTorchJob": 26, "RayJob": 34, "VolcanoJob": 42}
LIFECYCLES = [
    {"name": "steps", "selector": {"labels": {"life": "steps"}},
     "imagePull": "2s", "init": "2s", "startUp": "1s", "run": "3s"},
    {"name": "crash", "selector": {"labels": {"life": "crash"}}, "run": "1s", "failures": [
        {"share": 1, "exitCode": 137, "reason": "OOMKilled", "message": 'it said "no"'}]},
    {"name": "forever", "selector": {"labels": {"life": "forever"}}, "imagePull": "1s"},
    *({"name": f"check-{way}", "selector": {"labels": {"life": way}}, "mustRun": way} for way in ("fail", "pending")),
    {"name": "drawn", "selector": {"labels": {"life": "drawn"}}, "run": TRAINING},
    {"name": "sized", "selector": {"labels": {"life": "sized"}}, "resizes": [
        {"share": 0.4, "outcome": "deferred", "after": "3s"}, {"share": 0.4, "outcome": "infeasible"}]},
    {"name": "ends", "selector": {"labels": {"life": "ends"}}, "termination": "6s"},
    *({"name": kind.lower(), "run": f"{run}s", "selector": {"ownerKinds": [kind]}} for kind, run in RUNS.items()),
]  # fmt: skip

GROUP = {
    "name": "a",
    "placement": [{"availabilityZone": "z", "replicas": 2}],
    "nodeTemplate": {"taints": [], "capacity": {"cpu": "900", "memory": "9Ti", "pods": "5k"}},
}


TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}
OWNERS: dict[str, tuple[str, str, dict[str, str], str]] = {
    "jobset": ("batch/v1", "Job", {"jobset.sigs.k8s.io/jobset-name": "a"}, "JobSet"),
    "mpi": ("kubeflow.org/v2beta1", "MPIJob", {}, "MPIJob"),
    "mpi-launcher": ("batch/v1", "Job", {"training.kubeflow.org/operator-name": "mpi-operator"}, "MPIJob"),
    "pytorch": ("kubeflow.org/v1", "PyTorchJob", {}, "PyTorchJob"),
    "ray": ("ray.io/v1", "RayCluster", {"ray.io/cluster": "a"}, "RayJob"),
    "volcano": ("batch.volcano.sh/v1alpha1", "Job", {}, "VolcanoJob"),
}


def lifecycles() -> list[Lifecycle]:
    return [each.lifecycle() for each in ClusterSpec.checked({"podLifecycles": LIFECYCLES}).podLifecycles]


@dataclasses.dataclass
class Living(Plane):
    """A control plane with pods that live there, all at once."""

    before: str
    """The resourceVersion of pods before these were made, from which their lives can be read again."""

    def begin(self) -> None:
        """Make the pods of the tests that look at single lives: side by side they take as long as the longest."""
        self.api.create(PODS, pod("steps", "steps", init=2))
        for policy in ("Never", "OnFailure", "Always"):
            self.api.create(PODS, pod(f"crash-{policy.lower()}", "crash", policy))
        self.api.create(PODS, pod("forever", "forever"))
        for policy in ("Never", "Always"):
            self.api.create(PODS, pod(f"fail-{policy.lower()}", "fail", policy))
        self.api.create(PODS, pod("pending", "pending", init=1))
        # Owned, not controlled: the Job controller would see to what it controls. The garbage collector leaves a pod
        # whose owner's kind it does not know, and asks for that of any other.
        suspended = {"metadata": {"name": "a"}, "spec": {"suspend": True, "template": TEMPLATE}}
        uid = self.api.create(JOBS, suspended)["metadata"]["uid"]
        for name, (version, kind, labels, _) in OWNERS.items():
            owner = {"apiVersion": version, "kind": kind, "name": "a", "uid": uid if version == "batch/v1" else "none"}
            self.api.create(PODS, pod(f"of-{name}", labels=labels, ownerReferences=[owner]))
        self.api.create(JOBS, {"metadata": {"name": "real"}, "spec": {"template": TEMPLATE}})

    def first(self, name: str, there: Callable[[Object], object], timeout: float = 120) -> Object:
        """The first moment in a pod's life, gone by or to come, at which it is as wanted."""
        for event in self.api.events(PODS, self.before, timeout, fieldSelector=f"metadata.name={name}"):
            found: Object = event["object"]
            if there(found):
                return found
        raise AssertionError(f"{name}: not as awaited after {timeout:.0f} s")


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    """A control plane made without lifecycles, to which they were added while a pod was running."""
    home = tmp_path_factory.mktemp("home")
    with plane_at(home) as made:
        runtime, api = made.runtime, made.api
        (pool,) = pools(ClusterSpec.checked({"nodeGroups": [GROUP]}), "test")
        for ordinal in range(2):
            api.create(NODES, node_manifest(pool, ordinal, "2026-01-01T00:00:00Z"))
        # KWOK leaves a pod alone that is bound before it has seen that the node's lease is its own.
        api.until(NODES, lambda found: all(ready(node) for node in found.values()))
        api.create(PODS, pod("old", "steps"))
        api.until(PODS, lambda found: found["old"]["status"].get("phase") == "Running")
        before = processes.components(home)
        changed = dataclasses.replace(made.wanted, options={"stageObjects": True, "events": "kubelet"})
        observed = asyncio.run(runtime.repair(changed, made.identity, Said()))
        after = processes.components(home)
        assert {name for name in before if before[name] != after[name]} == {"test/kwok-controller"}
        plane = Living(runtime, changed, observed, api, api.version(PODS))
        for stage in stage_objects(lifecycles(), events=True):
            body = {"apiVersion": API_VERSION, "kind": "Stage", "metadata": stage.metadata, "spec": stage.spec}
            api.create(STAGES, body)
        plane.begin()
        yield plane


def pod(name: str, life: str = "", policy: str = "Never", init: int = 0, **metadata: Any) -> Object:
    labels = {**({"life": life} if life else {}), **metadata.pop("labels", {})}
    spec: Object = {"restartPolicy": policy, "containers": [{"name": "main", "image": "none"}]}
    if init:
        spec["initContainers"] = [{"name": f"init-{number}", "image": "none"} for number in range(init)]
    return {"metadata": {"name": name, "labels": labels, **metadata}, "spec": spec}


def ready(node: Object) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ()))


def seconds(start: str, end: str) -> float:
    first, last = (datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) for text in (start, end))
    return (last - first).total_seconds()


def main(found: Object) -> Object:
    """The status of a pod's container; of one that has none yet, nothing."""
    states: list[Object] = found["status"].get("containerStatuses") or [{"state": {}, "restartCount": 0}]
    return states[0]


def initial(found: Object, number: int) -> Object:
    """The status of one of its init containers, likewise."""
    states: list[Object] = found["status"].get("initContainerStatuses") or [{"state": {}}] * (number + 1)
    return states[number]


def ran(end: Mapping[str, Any]) -> float:
    return seconds(end["startedAt"], end["finishedAt"])


def reached(plane: Plane, name: str, there: Callable[[Object], object], timeout: float = 120) -> Object:
    """Wait until a pod is as wanted."""
    found = plane.api.until(
        PODS, lambda pods: name in pods and bool(there(pods[name])), timeout, fieldSelector=f"metadata.name={name}"
    )
    return found[name]


def conditions(found: Object) -> dict[str, tuple[str, str | None]]:
    listed = found["status"].get("conditions") or []
    return {each["type"]: (each["status"], each.get("reason")) for each in listed}


def events_of(plane: Plane, name: str, there: Callable[[dict[str, Object]], bool]) -> dict[str, Object]:
    """The events of a pod by their reasons, once they are as wanted."""

    def by_reason(found: Mapping[str, Object]) -> dict[str, Object]:
        return {each["reason"]: each for each in found.values()}

    path = f"{PODS.rpartition('/')[0]}/events"
    found = plane.api.until(
        path, lambda found: there(by_reason(found)), 120, fieldSelector=f"involvedObject.name={name}"
    )
    return by_reason(found)


def about(duration: int) -> range:
    """A whole number of seconds and no less, or as many more as KWOK may be late."""
    return range(duration, duration + LATE)


def has_ended(found: Object) -> bool:
    return found["status"].get("phase") in ("Succeeded", "Failed")


@pytest.mark.parametrize(("life", "pulled"), [("", "already present"), ("forever", "Successfully pulled")])
def test_a_pod_gets_the_events_of_a_kubelet_where_they_are_asked_for(living: Living, life: str, pulled: str) -> None:
    name = f"told{life}"
    living.api.create(PODS, pod(name, life))
    living.api.until(PODS, lambda found: found[name]["status"].get("phase") == "Running")
    living.api.delete(f"{PODS}/{name}")
    wanted = {"Scheduled", "Pulled", "Created", "Started", "Killing"}
    events = events_of(living, name, lambda found: found.keys() == wanted)
    assert pulled in events["Pulled"]["message"]
    assert events["Started"]["source"]["component"] == "kubelet"


def test_a_restarted_container_is_pulled_created_and_started_once_more(living: Living) -> None:
    reasons = ("Pulled", "Created", "Started")
    found = events_of(
        living, "crash-always", lambda found: all(found.get(each, {}).get("count", 0) > 2 for each in reasons)
    )
    assert found["Started"]["firstTimestamp"] < found["Started"]["lastTimestamp"]
    assert "Killing" not in found


def test_a_pod_pulls_initialises_starts_runs_and_ends_as_a_kubelet_says_it(living: Living) -> None:
    pulling = living.first("steps", lambda found: found["status"].get("startTime"))
    assert (pulling["status"]["phase"], pulling["status"]["podIP"][:5]) == ("Pending", "10.0.")
    assert main(pulling)["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert conditions(pulling)["Initialized"] == ("False", "ContainersNotInitialized")
    second = living.first("steps", lambda found: "running" in initial(found, 1)["state"])
    assert ran(second["status"]["initContainerStatuses"][0]["state"]["terminated"]) in about(2)
    starting = living.first("steps", lambda found: "running" in main(found)["state"])
    assert (starting["status"]["phase"], main(starting)["ready"]) == ("Running", False)
    assert main(starting)["started"] is True, "it has no startup probe"
    assert conditions(starting)["Initialized"] == ("True", None)
    assert conditions(starting)["Ready"] == ("False", "ContainersNotReady")
    ready = living.first("steps", lambda found: conditions(found).get("Ready", ("",))[0] == "True")
    assert main(ready)["ready"] is True
    done = living.first("steps", has_ended)
    end = main(done)["state"]["terminated"]
    assert (done["status"]["phase"], end["exitCode"], end["reason"]) == ("Succeeded", 0, "Completed")
    assert ran(end) in about(4)
    assert 10 <= seconds(done["status"]["startTime"], end["finishedAt"]) < 10 + 4 * LATE
    assert conditions(done)["Ready"] == conditions(done)["ContainersReady"] == ("False", "PodCompleted")
    assert conditions(done)["kumulus.io/Emulated"] == ("True", "ExitCodeDeclared")
    assert main(done)["ready"] is False


def test_a_pod_that_ran_before_is_left_alone(living: Living) -> None:
    reached(living, "old", lambda found: found["status"]["phase"] == "Running")
    assert "kumulus.io/lifecycle" not in conditions(living.api.get(f"{PODS}/old"))


def test_a_failure_ends_a_pod_or_restarts_its_container_as_its_restart_policy_says(living: Living) -> None:
    failed = living.first("crash-never", has_ended)
    end = main(failed)["state"]["terminated"]
    assert failed["status"]["phase"] == "Failed"
    assert (end["exitCode"], end["reason"], end["message"]) == (137, "OOMKilled", 'it said "no"')
    assert ran(end) in about(1)
    assert conditions(failed)["Ready"] == ("False", "PodFailed")
    names = ("crash-onfailure", "crash-always")
    backing_off = [living.first(name, lambda found: "waiting" in main(found)["state"]) for name in names]
    for waiting in backing_off:
        assert main(waiting)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert (main(waiting)["restartCount"], waiting["status"]["phase"]) == (1, "Running")
        ended = main(waiting)["lastState"]["terminated"]
        assert (ended["exitCode"], ran(ended) in about(1)) == (137, True)
        again = living.first(waiting["metadata"]["name"], lambda found: main(found)["restartCount"] == 2)
        # A crash later its end is another's.
        since = main(again)["lastState"]["terminated"]["finishedAt"]
        assert seconds(since, main(again)["state"]["running"]["startedAt"]) in about(10)


def test_a_pod_that_must_run_is_never_ready_and_fails_or_waits_with_a_reason(living: Living) -> None:
    def is_ready_or_restarted(found: Object) -> bool:
        return conditions(found).get("Ready", ("",))[0] == "True" or main(found)["restartCount"] > 0

    failed = living.first("fail-never", lambda found: is_ready_or_restarted(found) or has_ended(found))
    end = main(failed)["state"]["terminated"]
    assert (failed["status"]["phase"], end["exitCode"], end["reason"]) == ("Failed", 1, "Emulated")
    assert end["message"] == "emulated; a check that has not run fails"
    assert conditions(failed)["kumulus.io/Emulated"] == ("True", "MustRun")
    again = living.first("fail-always", is_ready_or_restarted)
    assert (main(again)["restartCount"], conditions(again)["Ready"][0]) == (1, "False")
    waits = living.first("pending", lambda found: found["status"].get("containerStatuses"))
    assert waits["status"]["phase"] == "Pending"
    waiting = {"waiting": {"reason": "MustRun", "message": "emulated; no container can run"}}
    assert main(waits)["state"] == initial(waits, 0)["state"] == waiting
    assert conditions(waits)["kumulus.io/Emulated"] == ("True", "MustRun")
    # Others that were made with it have long ended.
    living.first("steps", has_ended)
    assert living.api.get(f"{PODS}/pending")["status"] == waits["status"]


def test_a_lifecycle_that_says_nothing_of_an_end_has_none(living: Living) -> None:
    found = living.first("forever", lambda found: found["status"].get("phase") == "Running")
    assert seconds(found["status"]["startTime"], main(found)["state"]["running"]["startedAt"]) in about(1)
    assert conditions(found)["Ready"] == ("True", None)


# Of the grace period 12 s, half is used; 5 s are too short.
@pytest.mark.parametrize(("grace", "lasts", "code"), [(12, 6, 143), (5, 5, 137)])
def test_a_deleted_pod_terminates_as_long_as_declared_and_within_its_grace_period(
    living: Living, grace: int, lasts: int, code: int
) -> None:
    api, name = living.api, f"ends-{grace}"
    service = {"metadata": {"name": name}, "spec": {"selector": {"ends": name}, "ports": [{"port": 80}]}}
    api.create(PODS.replace("pods", "services"), service)
    api.create(PODS, pod(name, "ends", labels={"ends": name}))

    def endpoint(wanted: Callable[[Object], bool]) -> None:
        def there(found: Mapping[str, Object]) -> bool:
            listed = [each["conditions"] for part in found.values() for each in part.get("endpoints") or ()]
            return len(listed) == 1 and wanted(listed[0])

        api.until(SLICES, there, labelSelector=f"kubernetes.io/service-name={name}")

    endpoint(lambda conditions: conditions["ready"] is True)
    version = api.version(PODS)
    api.delete(f"{PODS}/{name}?gracePeriodSeconds={grace}")
    endpoint(lambda conditions: (conditions["ready"], conditions["terminating"]) == (False, True))
    lived: list[Object] = []
    for event in api.events(PODS, version, 120, fieldSelector=f"metadata.name={name}"):
        lived.append(event["object"])
        if event["type"] == "DELETED":
            break
    seen = next(each for each in lived if each["status"]["observedGeneration"] == each["metadata"]["generation"])
    assert conditions(seen)["Ready"] == ("True", None), "a kubelet leaves it to its probe"
    assert "running" in main(seen)["state"]
    end = main(lived[-1])["state"]["terminated"]
    assert (end["exitCode"], end["reason"], lived[-1]["status"]["phase"]) == (code, "Error", "Failed")
    assert conditions(lived[-1])["Ready"] == ("False", "PodFailed")
    deleted = datetime.fromisoformat(seen["metadata"]["deletionTimestamp"]) - timedelta(seconds=grace)
    assert seconds(f"{deleted:%Y-%m-%dT%H:%M:%SZ}", end["finishedAt"]) in about(lasts)
    killing = events_of(living, name, lambda found: "Killing" in found)["Killing"]
    assert killing["firstTimestamp"] < end["finishedAt"], "it is written when the end begins"


def test_a_pod_that_terminates_is_gone_sooner_with_a_shorter_grace_period_and_at_once_if_forced(living: Living) -> None:
    api, names = living.api, ["ends-sooner", "ends-at-once"]
    for name in names:
        api.create(PODS, pod(name, "ends"))
    api.until(PODS, lambda found: all((found[name].get("status") or {}).get("phase") == "Running" for name in names))
    version = api.version(PODS)
    for name, grace in zip(names, (2, 0), strict=True):
        api.delete(f"{PODS}/{name}?gracePeriodSeconds=30")
        assert "running" in main(api.get(f"{PODS}/{name}"))["state"]
        api.delete(f"{PODS}/{name}?gracePeriodSeconds={grace}")
    assert api.list(PODS, fieldSelector="metadata.name=ends-at-once") == []
    lived = api.events(PODS, version, 60, fieldSelector="metadata.name=ends-sooner")
    gone: Object = next(event["object"] for event in lived if event["type"] == "DELETED")
    assert main(gone)["state"]["terminated"]["exitCode"] == 137, "its 6 s are longer than the 2 s"


def test_resizes_are_accepted_deferred_or_infeasible_as_drawn(living: Living) -> None:
    api, count = living.api, 20

    def resize(name: str, cpu: str) -> Object:
        body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
        return cast(Object, api.request("PATCH", f"{PODS}/{name}/resize", body, STRATEGIC_MERGE_PATCH))

    def pending(found: Object) -> Object | None:
        return next((each for each in found["status"]["conditions"] if each["type"] == "PodResizePending"), None)

    def observed(found: Object) -> bool:
        return bool(found["status"].get("observedGeneration") == found["metadata"]["generation"])

    def cpu(found: Object) -> str:
        return str(main(found)["resources"]["requests"]["cpu"])

    for number in range(count):
        body = pod(f"sized-{number}", "sized")
        body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
        api.create(PODS, body)
    names = [f"sized-{number}" for number in range(count)]
    api.until(PODS, lambda found: all(conditions(found[name]).get("Ready") == ("True", None) for name in names))
    version = api.version(PODS)
    generations = {name: resize(name, "200m")["metadata"]["generation"] for name in names}
    first: dict[str, Object] = {}
    for event in api.events(PODS, version, 120, labelSelector="life=sized"):
        found: Object = event["object"]
        if found["status"].get("observedGeneration") == generations[name := found["metadata"]["name"]]:
            first.setdefault(name, found)
        if len(first) == count:
            break
    by_outcome: dict[str, set[str]] = {"": set(), "Deferred": set(), "Infeasible": set()}
    for name, found in first.items():
        waits = pending(found)
        by_outcome[waits["reason"] if waits else ""].add(name)
        assert cpu(found) == ("100m" if waits else "200m")
        which = {"Deferred": 0, "Infeasible": 1}.get(waits["reason"] if waits else "")
        assert not waits or waits["message"] == f"declared by resizes[{which}] of the lifecycle sized"
    # By the seed and their names, these are always the same.
    assert all(by_outcome.values()), by_outcome
    later = api.until(PODS, lambda found: all(not pending(found[name]) for name in by_outcome["Deferred"]))
    assert {cpu(later[name]) for name in by_outcome["Deferred"]} == {"200m"}
    assert {cpu(later[name]) for name in by_outcome["Infeasible"]} == {"100m"}
    assert all(pending(later[name]) for name in by_outcome["Infeasible"])
    # As often as it is asked for, each time with a draw of its own, one gets it.
    name, asked = min(by_outcome["Infeasible"]), 2
    while pending(found) or asked == 2:
        asked += 1
        resize(name, f"{asked}00m")
        found = reached(living, name, observed)
        assert asked < 40
    assert cpu(found) == f"{asked}00m"


def test_pods_of_every_kind_of_workload_have_their_own_durations(living: Living) -> None:
    found = living.api.until(JOBS, lambda jobs: jobs["real"]["status"].get("succeeded") == 1)
    span = seconds(found["real"]["status"]["startTime"], found["real"]["status"]["completionTime"])
    # Of the pod, and of the Job controller that hears of its end.
    assert span in range(RUNS["Job"], RUNS["Job"] + 2 * LATE)
    for name, (_, _, _, workload) in OWNERS.items():
        assert ran(main(living.first(f"of-{name}", has_ended))["state"]["terminated"]) in about(RUNS[workload]), name


def test_hundreds_of_pods_run_as_long_as_drawn_through_updates_and_a_controller_restart(living: Living) -> None:
    count = 200
    for number in range(count):
        living.api.create(PODS, pod(f"drawn-{number}", "drawn"))
    living.api.until(PODS, lambda pods: sum(map(has_begun, pods.values())) >= count * 0.9, labelSelector="life=drawn")
    processes.kill(living.processes()["kwok-controller"])
    asyncio.run(living.repair())
    for number in range(0, count, 10):
        living.api.merge(f"{PODS}/drawn-{number}", {"metadata": {"labels": {"changed": "yes"}}})
    done = living.api.until(
        PODS, lambda pods: sum(map(has_ended, pods.values())) == count, 90, labelSelector="life=drawn"
    )
    stage = next(stage for stage in stage_objects(lifecycles()) if stage.name == "drawn.succeed")
    unstarted = [{**each, "status": {**each["status"], "containerStatuses": [STARTED]}} for each in done.values()]
    drawn = dict(zip(done, waits(stage, unstarted), strict=True))
    lasted = {name: ran(main(each)["state"]["terminated"]) for name, each in done.items()}
    # What was due while no controller ran ended when one came back; all others within their second.
    assert all(lasted[name] > drawn[name] - 1 for name in done)
    punctual = [name for name in done if lasted[name] - int(drawn[name] + 0.5) in (0, 1)]
    assert len(punctual) >= count / 5
    assert distance(list(drawn.values()), lambda x: normal(math.log(x / 10) / 0.3)) < CRITICAL


STARTED = {"restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}


def has_begun(found: Object) -> bool:
    return bool(found["status"].get("phase") != "Pending")


def running(found: Object) -> bool:
    return bool(found["status"].get("phase") == "Running")


def waiting(found: Object) -> list[str]:
    """Why its containers wait; nothing of one that does not."""
    states = [each["state"] for each in found["status"].get("containerStatuses", ())]
    return [each.get("waiting", {}).get("reason", "") for each in states]


def pulls(name: str) -> Object:
    """A pod that cannot have the image of one of its containers."""
    body = pod(name, policy="Always", init=1)
    body["spec"]["containers"] = [{"name": "main", "image": "gone:1"}, {"name": "side", "image": "busybox"}]
    return body


def test_a_pod_waits_for_an_image_that_is_missing_until_it_has_another(living: Living) -> None:
    stages = pod_stages("missing", PodEffects("imagePull", images=("gone:*",)), (), "2026-01-01T00:00:00Z")
    for stage in stages:
        living.api.create(STAGES, stage)
    off, backing_off = (["ErrImagePull", "ContainerCreating"], ["ImagePullBackOff", "ContainerCreating"])
    # KWOK learns of new stages a moment later, of each by itself; a pod that came before it did is left as it is.
    for number in range(20):
        living.api.create(PODS, pulls(f"first-{number}"))
        with suppress(AssertionError):
            reached(living, f"first-{number}", lambda found: waiting(found) == backing_off, timeout=5)
            break
    living.api.create(PODS, pulls("pulls"))
    waits = living.first("pulls", lambda found: waiting(found) == off)
    assert (waits["status"]["phase"], observed(waits)) == ("Pending", True)
    again = reached(living, "pulls", lambda found: waiting(found) == backing_off)
    assert again["status"]["conditions"] == waits["status"]["conditions"]
    assert {kind: status for kind, (status, _) in conditions(waits).items()} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "ContainersReady": "False",
        "Ready": "False",
        "PodScheduled": "True",
    }
    image = {"spec": {"containers": [{"name": "main", "image": "here:1"}]}}
    living.api.request("PATCH", f"{PODS}/pulls", image, STRATEGIC_MERGE_PATCH)
    runs = reached(living, "pulls", lambda found: running(found) and observed(found))
    assert runs["metadata"]["generation"] == 2
    assert conditions(runs)["Ready"][0] == "True"
    assert runs["status"]["podIPs"] == waits["status"]["podIPs"]
    living.api.delete(f"{PODS}/pulls")
    wanted = {"Pulled", "Created", "Started", "Killing"}
    told = events_of(living, "pulls", lambda found: wanted <= set(found))
    ours = {reason: each["source"] for reason, each in told.items() if each["source"].get("component") == "kubelet"}
    assert ours.keys() == wanted
    assert {each["host"] for each in ours.values()} == {runs["spec"]["nodeName"]}
    for stage in stages:
        living.api.delete(f"{STAGES}/{stage['metadata']['name']}")


async def test_pods_that_waited_for_their_nodes_run_once_those_are_made(living: Living) -> None:
    """KWOK passes over a pod that is bound before it holds the lease of the node."""
    connections = Connections()
    pools = Pools.on(living, connections)
    inputs = pools.inputs(10, capacity={"cpu": "1", "memory": "4Gi", "pods": "1"})
    for number in range(10):
        body = pod(f"waits-{number}", labels={"waits": "yes"})
        body["spec"] |= {"nodeSelector": {POOL_LABEL: inputs["name"]}, "tolerations": [{"operator": "Exists"}]}
        living.api.create(PODS, body)
    await pools.create(inputs)
    living.api.until(PODS, lambda found: all(map(running, found.values())), labelSelector="waits=yes")
    await pools.delete(inputs)
    await connections.close()


def test_without_lifecycles_pods_live_as_before(living: Living) -> None:
    """The last test: it takes the lifecycles away."""
    for stage in stage_objects(lifecycles()):
        living.api.delete(f"{STAGES}/{stage.name}")
    plain = dataclasses.replace(living.wanted, options={})
    asyncio.run(living.runtime.repair(plain, living.identity, Said()))
    assert any(document["kind"] == "Stage" for document in Layout(living.directory).documents())
    assert living.api.list(STAGES) == []
    living.api.create(PODS, pod("plain", "steps"))
    found = reached(living, "plain", running)
    assert conditions(found)["Ready"][0] == "True"
    living.api.create(JOBS, {"metadata": {"name": "plain"}, "spec": {"template": TEMPLATE}})
    living.api.until(JOBS, lambda jobs: jobs["plain"]["status"].get("succeeded") == 1)
