"""Pod lifecycles and usage in a stack: previewed, added to a running cluster, changed in place, removed with the file.

The tests go through the life of one stack in their order.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from tests.support.api import Object
from tests.support.pods import JOBS, PODS, TOLERATE_ALL
from tests.support.project import Project, node_group
from tests.support.tools import missing, require
from tests.support.usage import Series, of_gpus, of_pods, scraped, top

pytestmark = pytest.mark.e2e
STAGES = "/apis/kwok.x-k8s.io/v1alpha1/stages"

TRAINING: dict[str, Any] = {
    "name": "training",
    "selector": {"ownerKinds": ["Job"]},
    "run": "8s",
    "resizes": [{"share": 0.5, "outcome": "infeasible"}],
}
USAGES = "/apis/kwok.x-k8s.io/v1alpha1/clusterresourceusages"
CLUSTER: dict[str, Any] = {
    "nodeGroups": [
        {**node_group("a100", 2, cpu="96", memory="1Ti", gpus=8), "gpuProduct": "NVIDIA-A100-SXM4-80GB"},
    ]
}
USES = {
    "name": "training",
    "selector": {"labels": {"app": "training"}},
    "cpu": "50%",
    "memory": "4Gi",
    "gpu": "80%",
    "gpuMemory": "25%",
}
XID = {"name": "xid", "kind": "xid-63", "target": {"names": ["a100-z-1"]}}


@dataclass
class Stack:
    """A stack that comes up without lifecycles and usage."""

    project: Project
    nodes: dict[str, str]
    identity: str

    def write(self, **more: Any) -> None:
        self.project.write_stack({**CLUSTER, **more})

    def same_cluster(self) -> None:
        assert (self.project.node_uids(), self.project.identity()) == (self.nodes, self.identity)


@pytest.fixture(scope="module")
def stack(module_project: Project) -> Stack:
    module_project.write_stack(CLUSTER)
    module_project.up()
    return Stack(module_project, module_project.node_uids(), module_project.identity())


def job(name: str) -> Object:
    spec = {"restartPolicy": "Never", "tolerations": TOLERATE_ALL, "containers": [{"name": "main", "image": "none"}]}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}


def ran(project: Project, name: str) -> float:
    """How long the pod of a new job runs, in seconds."""
    api = project.api()
    api.create(JOBS, job(name))
    api.until(JOBS, lambda jobs: jobs[name]["status"].get("succeeded") == 1)
    (pod,) = api.list(PODS, labelSelector=f"job-name={name}")
    end = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    start, finish = (datetime.fromisoformat(end[key]) for key in ("startedAt", "finishedAt"))
    api.delete(f"{JOBS}/{name}?propagationPolicy=Background")
    return (finish - start).total_seconds()


def trains(node: str) -> dict[str, Any]:
    requests = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "4"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": requests}}
    spec = {"nodeName": node, "tolerations": TOLERATE_ALL, "containers": [container]}
    return {"metadata": {"name": "trains", "labels": {"app": "training"}}, "spec": spec}


def filled(project: Project, share: float) -> Series:
    """The node's series, once KWOK has those of its pod and knows how much of its memory a GPU in use has filled."""
    memory = 81920 * share
    return scraped(
        project.cluster(),
        "a100-z-0",
        lambda found: (
            of_gpus(found, "DCGM_FI_DEV_FB_USED").get("0") == memory
            and of_pods(found, "pod_memory_working_set_bytes") == {"trains": 4 * 2**30}
        ),
    )


def test_lifecycles_are_added_in_place(stack: Stack) -> None:
    project, before = stack.project, stack.project.processes()
    # However late KWOK is: the bounds only tell one duration from the next.
    assert ran(project, "before") < 8

    stack.write(podLifecycles=[TRAINING])
    project.up()
    changed = {name for name, pids in project.processes().items() if pids != before[name]}
    assert changed == {"quickstart/kwok-controller"}
    stack.same_cluster()
    assert 8 <= ran(project, "eight") < 24


def test_usage_is_added_in_place(stack: Stack) -> None:
    require("metrics-server")
    project = stack.project
    project.api().create(PODS, trains("a100-z-0"))

    stack.write(podLifecycles=[TRAINING], podUsage=[USES], faults=[XID])
    project.up()
    stack.same_cluster()
    found = filled(project, 0.25)
    busy = of_gpus(found, "DCGM_FI_DEV_GPU_UTIL")
    assert [round(busy[str(gpu)]) for gpu in range(8)] == [80] * 4 + [0] * 4
    assert of_gpus(found, "DCGM_FI_DEV_GPU_TEMP")["0"] > of_gpus(found, "DCGM_FI_DEV_GPU_TEMP")["7"]
    assert set(of_gpus(found, "DCGM_FI_DEV_XID_ERRORS").values()) == {0}
    scraped(project.cluster(), "a100-z-1", lambda s: set(of_gpus(s, "DCGM_FI_DEV_XID_ERRORS").values()) == {63})
    used = top(project.kubeconfig(), "pods", "trains", variables=project.environment)["trains"]
    assert (3900 <= int(used[0].removesuffix("m")) <= 4100, used[1]) == (True, "4096Mi")


def test_both_are_changed_in_place(stack: Stack) -> None:
    project, before = stack.project, stack.project.processes()
    assert project.foresee("--refresh").steps == ()
    usage = {} if missing("metrics-server") else {"podUsage": [{**USES, "gpuMemory": "50%"}], "faults": [XID]}
    stack.write(podLifecycles=[{**TRAINING, "run": "14s"}], **usage)
    foreseen = project.preview("--diff").stdout
    assert '"run: 8s" => "run: 14s"' in foreseen
    assert re.search(rf"~ {2 if usage else 1} to update\n\s+\d+ unchanged", foreseen)
    project.up()
    assert project.processes() == before
    if usage:
        filled(project, 0.5)
    assert ran(project, "fourteen") >= 14


def test_without_them_nothing_of_them_is_left(stack: Stack) -> None:
    project = stack.project
    stack.write()
    project.up()
    assert project.api().list(STAGES) == []
    assert ran(project, "after") < 8
    stack.same_cluster()
    assert len(stack.nodes) == 2
    if not missing("metrics-server"):
        assert "quickstart/metrics-server" not in project.processes()
        assert project.api().list(USAGES) == []
        assert project.api().get(f"{PODS}/trains")["status"]["phase"] == "Running"
    project.destroy()
    assert project.processes() == {}
