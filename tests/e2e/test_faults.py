"""Faults through pulumi: of nodes and of pods, previewed, applied, taken for no drift, and taken away again."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import processes
from tests.support.pods import JOBS, PODS, TOLERATE_ALL
from tests.support.project import NODES, Project

pytestmark = pytest.mark.e2e
GPU = "nvidia.com/gpu"
SLEEPS = ["sleep", "30"]
POOL_FAULTS: list[dict[str, Any]] = [
    {"name": "lost-gpu", "kind": "gpu-fell-off-bus", "target": {"nodeGroup": "a100", "rack": "r1"}},
    {"name": "tired", "kind": "not-ready", "target": {"names": ["a100-use1-0"]}},
    {"name": "dead", "kind": "unreachable", "target": {"names": ["a100-use1-1"]}},
    {"name": "share", "labels": {"example.com/state": "odd"}, "target": {"percent": 50}},
]
POD_FAULTS: list[dict[str, Any]] = [
    {"name": "flaky", "kind": "container-fails", "exitCode": 3, "reason": "NCCLTimeout", "share": 100,
     "message": 'said "no"', "repeat": False, "pods": {"labels": {"app": "flaky"}}},
    {"name": "oom", "kind": "out-of-memory", "delay": "1s", "jitter": "1s", "pods": {"labels": {"app": "oom"}}},
    {"name": "init", "kind": "init-fails", "pods": {"labels": {"app": "init"}}},
    {"name": "evict", "kind": "evicted", "pods": {"labels": {"app": "evict"}}},
    {"name": "pull", "kind": "image-pull-error", "pods": {"images": ["gone:*"]}},
    {"name": "stuck", "kind": "stuck-terminating", "pods": {"labels": {"app": "stuck"}}},
]  # fmt: skip


def cluster(*faults: dict[str, Any], replicas: int = 4) -> dict[str, Any]:
    capacity = {"cpu": "8", "memory": "64Gi", "pods": "110", GPU: "8"}
    group = {
        "name": "a100",
        "placement": [{"availabilityZone": "use1", "replicas": replicas}],
        "topology": {"nodesPerRack": 2, "racksPerBlock": 2},
        "nodeTemplate": {"capacity": capacity},
    }
    # A silent kubelet is noticed after 40 s instead of 200.
    return {"nodeGroups": [group], "faults": list(faults), "kwok": {"heartbeatFactor": 1}}


def pod(app: str, restart: str = "Never", **spec: Any) -> dict[str, Any]:
    spec = {
        "restartPolicy": restart,
        "tolerations": TOLERATE_ALL,
        "containers": [{"name": "main", "image": "none"}, {"name": "side", "image": "none"}],
        **spec,
    }
    return {"metadata": {"name": app, "labels": {"app": app}}, "spec": spec}


def state(pod: dict[str, Any], container: int = 0, of: str = "containerStatuses") -> dict[str, Any]:
    found: dict[str, Any] = pod["status"][of][container]
    return found


def nodes(project: Project) -> dict[str, Any]:
    """The nodes without what changes by itself."""
    found = {}
    for node in project.api().list(NODES):
        meta = {k: v for k, v in node["metadata"].items() if k not in ("resourceVersion", "managedFields")}
        listed = [{k: v for k, v in each.items() if not k.endswith("Time")} for each in node["status"]["conditions"]]
        listed.sort(key=lambda each: str(each["type"]))
        found[meta["name"]] = {**node, "metadata": meta, "status": {**node["status"], "conditions": listed}}
    return found


def settled(project: Project) -> dict[str, Any]:
    project.api().until(
        NODES,
        lambda found: not any("node.kubernetes.io" in str(node["spec"].get("taints")) for node in found.values()),
    )
    return nodes(project)


def command(project: Project, *arguments: str) -> str:
    """Run `kumulus fault` on the project's cluster."""
    done = project.kumulus("fault", *arguments, "-s", project.stack)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def test_faults_of_pods_and_nodes_come_and_go(tmp_path: Path) -> None:
    project = Project(tmp_path)
    try:
        project.write_stack(cluster(*POD_FAULTS), stack="faulty")
        project.up()
        before = settled(project)
        pods_fail(project)
        nodes_fail(project, before)
        faults_outside_the_stack(project, before)
        project.destroy()
        assert project.processes() == {}
    finally:
        project.close()


def pods_fail(project: Project) -> None:
    api = project.api()
    template = pod("flaky")
    template["metadata"].pop("name")
    api.create(PODS, {**pod("early"), "metadata": {"name": "early", "labels": {"app": "later"}}})
    init = [{"name": "nccl", "image": "none"}]
    for each in (
        pod("oom", "Always"),
        pod("init", initContainers=init),
        pod("evict"),
        pod("pull", containers=[{"name": "main", "image": "none"}, {"name": "side", "image": "gone:1"}]),
        pod("stuck"),
    ):
        api.create(PODS, each)
    api.create(JOBS, {"metadata": {"name": "retried"}, "spec": {"backoffLimit": 3, "template": template}})
    api.until(PODS, lambda found: found["stuck"]["status"]["phase"] == "Running")
    api.delete(f"{PODS}/stuck")

    oom = api.until(PODS, lambda found: bool(state_or_none(found["oom"]).get("lastState")))["oom"]
    assert state(oom)["lastState"]["terminated"]["exitCode"] == 137
    assert state(oom)["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert state(oom)["restartCount"] >= 1
    failed = api.until(
        PODS, lambda found: all(found[name]["status"]["phase"] == "Failed" for name in ("init", "evict"))
    )
    assert state(failed["init"], of="initContainerStatuses")["state"]["terminated"]["exitCode"] == 1
    assert state(failed["init"])["state"] == {"waiting": {"reason": "PodInitializing"}}
    initialized = next(each for each in failed["init"]["status"]["conditions"] if each["type"] == "Initialized")
    assert initialized["message"] == "containers with incomplete status: [nccl]"
    assert failed["init"]["status"]["podIP"]
    assert failed["evict"]["status"]["reason"] == "Evicted"
    backed_off = api.until(PODS, lambda found: "ImagePullBackOff" in str(found["pull"]["status"]))
    assert backed_off["pull"]["status"]["phase"] == "Pending"
    assert state(backed_off["pull"], 1)["state"]["waiting"]["reason"] == "ImagePullBackOff"
    assert "deletionTimestamp" in api.get(f"{PODS}/stuck")["metadata"]
    # Once: the pods that were there when the fault began; a Job made later is spared.
    api.until(JOBS, lambda found: found["retried"]["status"].get("succeeded") == 1)

    # A fault that hits a Job's pod again and again: the Job's controller retries it.
    again = {**POD_FAULTS[0], "name": "again", "repeat": True, "share": 99.9, "pods": {"labels": {"app": "again"}}}
    project.write_stack(cluster(*POD_FAULTS[:1], again))
    project.up()
    template["metadata"]["labels"]["app"] = "again"
    api.create(JOBS, {"metadata": {"name": "again"}, "spec": {"backoffLimit": 6, "template": template}})
    api.until(JOBS, lambda found: found["again"]["status"].get("failed", 0) >= 2)
    ended = [each for each in api.list(PODS, labelSelector="app=again") if each["status"]["phase"] == "Failed"]
    terminated = state(ended[0])["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"], terminated["message"]) == (3, "NCCLTimeout", 'said "no"')
    # What is over is over: the pod that was stuck goes, the one without its image runs.
    api.until(PODS, lambda found: "stuck" not in found and found["pull"]["status"]["phase"] == "Running")
    api.delete(f"{JOBS}/again?propagationPolicy=Background")


def state_or_none(pod: dict[str, Any]) -> dict[str, Any]:
    return next(iter(pod["status"].get("containerStatuses") or [{}]))


def _is_given_up(node: dict[str, Any]) -> bool:
    """Whether the node controller has found its kubelet silent, and has both said and tainted it."""
    ready = {each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"}
    return ready == {"Unknown"} and "node.kubernetes.io/unreachable" in str(node["spec"])


def _says_ready(pod: dict[str, Any]) -> str:
    return {each["type"]: str(each["status"]) for each in pod["status"].get("conditions") or ()}.get("Ready", "")


def nodes_fail(project: Project, before: dict[str, Any]) -> None:
    placed = {"tired": "a100-use1-0", "dead": "a100-use1-1", "gone": "a100-use1-1"}
    for name, node in placed.items():
        project.api().create(PODS, pod(name, "Always", nodeName=node))
    project.api().until(PODS, lambda found: {_says_ready(found[name]) for name in placed} == {"True"})
    project.write_stack(cluster(*POD_FAULTS[:1], *POOL_FAULTS))
    foreseen = project.foresee()
    assert {step.name for step in foreseen.steps} == {"again", "lost-gpu", "tired", "dead", "share"}
    message = foreseen.messages["lost-gpu"]
    assert "gpu-fell-off-bus on 2 nodes (a100-use1-[2-3]): −2 nvidia.com/gpu" in message
    assert " on them" in message
    assert nodes(project) == before
    # It would end on the silent node a while before that is given up; the node falls silent before it ends.
    ends = pod("ends", nodeName="a100-use1-1", containers=[{"name": "main", "image": "none", "command": SLEEPS}])
    project.api().create(PODS, ends)
    project.api().until(PODS, lambda found: _says_ready(found["ends"]) == "True")
    project.up()
    sick = nodes(project)
    assert [sick[f"a100-use1-{n}"]["status"]["allocatable"][GPU] for n in range(4)] == ["8", "8", "7", "7"]
    assert sum("example.com/state" in node["metadata"]["labels"] for node in sick.values()) == 2
    assert project.foresee("--refresh").steps == ()

    # A resize resolves a share again, and leaves the faults alone.
    project.write_stack(cluster(*POD_FAULTS[:1], *POOL_FAULTS, replicas=6))
    changed = {step.name: step for step in project.foresee().steps}
    assert set(changed) == {"a100-use1", "share"}
    project.up()
    grown = nodes(project)
    assert sum("example.com/state" in node["metadata"]["labels"] for node in grown.values()) == 3
    assert grown["a100-use1-3"]["status"]["allocatable"][GPU] == "7"

    # Meanwhile the node controller waits for the silent kubelet.
    project.api().delete(f"{PODS}/gone")
    a_group_that_goes_is_told(project)
    project.api().until(NODES, lambda found: _is_given_up(found["a100-use1-1"]), 90)
    # The controller has taken Ready from the pods of both nodes; a kubelet that lives gives it back.
    left = project.api().until(
        PODS, lambda found: [_says_ready(found[name]) for name in placed] == ["True", "False", "False"]
    )
    assert "deletionTimestamp" in left["gone"]["metadata"]
    assert {left[name]["status"]["phase"] for name in (*placed, "ends")} == {"Running"}

    project.write_stack(cluster(*POD_FAULTS[:1]))
    told = project.foresee().messages
    assert "gpu-fell-off-bus ends on 2 nodes (a100-use1-[2-3]): +2 nvidia.com/gpu" in told["lost-gpu"]
    assert "unreachable ends on 1 node (a100-use1-1): over: the kubelet is silent" in told["dead"]
    assert "running pod" in told["share"]
    project.up()
    assert settled(project) == before
    project.api().until(
        PODS,
        lambda found: (
            "gone" not in found
            and _says_ready(found["dead"]) == "True"
            and found["ends"]["status"]["phase"] == "Succeeded"
        ),
    )
    assert project.foresee("--refresh").steps == ()


def a_group_that_goes_is_told(project: Project) -> None:
    project.write_stack({**cluster(), "nodeGroups": []})
    told = project.foresee().messages
    assert "group a100, zone use1: −6 nodes (6 → 0): −48 nvidia.com/gpu" in told["a100-use1"]
    assert "gpu-fell-off-bus ends on 2 nodes" in told["lost-gpu"]
    assert "two groups" not in told["a100-use1"]

    renamed = cluster()
    renamed["nodeGroups"][0]["name"] = "h100"
    project.write_stack(renamed)
    assert "; a100 and h100 are two groups: a node is called after its group" in project.foresee().messages["a100-use1"]


def faults_outside_the_stack(project: Project, before: dict[str, Any]) -> None:
    said = command(project, "inject", "brief", "--kind", "gpu-fell-of-bus")
    assert '"gpu-fell-of-bus" is not in the catalog; write gpu-fell-off-bus' in said
    command(project, "inject", "brief", "--kind", "xid-48", "--rack", "r0")
    assert nodes(project)["a100-use1-1"]["status"]["allocatable"][GPU] == "7"
    assert "brief" in command(project, "list")
    again = command(project, "inject", "brief", "--kind", "xid-48", "--rack", "r0")
    assert "brief was active already (xid-48 on 2 nodes, since " in again
    refused = command(project, "inject", "other", "--capacity", f"{GPU}=0", "--node", "a100-use1-1")
    assert "the fault brief is already active and decides the capacity of nvidia.com/gpu of a100-use1-1" in refused
    assert project.foresee("--refresh").steps == ()
    assert "is declared in the stack file" in command(project, "clear", "flaky")
    assert "brief is over; nodes restored: 2" in command(project, "clear", "brief")
    assert nodes(project) == before

    # It ends by itself, though the command that began it is over.
    assert "ends by itself at" in command(project, "inject", "brief", "--kind", "xid-48", "--rack", "r0", "--for", "3s")
    processes.await_that(lambda: nodes(project) == before, 60, "it has ended by itself", 0.2)
    command(project, "inject", "long", "--kind", "spot-reclaim", "--count", "2")
    assert len(nodes(project)) == 2
    assert "nodes restored: 2" in command(project, "clear", "--all")
    assert set(nodes(project)) == set(before)
    assert "brief" not in command(project, "list")
