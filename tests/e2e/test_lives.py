"""Pod lifecycles in a stack: previewed, added to a running cluster, changed in place, and removed with the file."""

from datetime import datetime
from typing import Any

import pytest

from tests.support.api import Object
from tests.support.pods import JOBS, PODS, TOLERATE_ALL
from tests.support.project import NODES, Project, node_group
from tests.support.tools import require
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


@pytest.fixture(scope="module")
def project(module_project: Project) -> Project:
    """A stack without lifecycles and usage, up; its tests leave it so."""
    module_project.write_stack(CLUSTER)
    module_project.up()
    return module_project


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
    return (finish - start).total_seconds()


def test_lifecycles_are_added_changed_and_removed_in_place(project: Project) -> None:
    nodes, identity, before = project.node_uids(), project.identity(), project.processes()
    # However late KWOK is: the bounds only tell one duration from the next.
    assert ran(project, "before") < 8

    project.write_stack({**CLUSTER, "podLifecycles": [TRAINING]})
    project.up()
    changed = {name for name, pids in project.processes().items() if pids != before[name]}
    assert changed == {"quickstart/kwok-controller"}
    assert (project.node_uids(), project.identity()) == (nodes, identity)
    assert 8 <= ran(project, "eight") < 24
    assert project.foresee("--refresh").steps == ()

    project.write_stack({**CLUSTER, "podLifecycles": [{**TRAINING, "run": "14s"}]})
    foreseen = project.preview("--diff").stdout
    assert '"run: 8s" => "run: 14s"' in foreseen
    assert "1 to update" in foreseen
    after = project.processes()
    project.up()
    assert project.processes() == after
    assert ran(project, "fourteen") >= 14

    project.write_stack(CLUSTER)
    project.up()
    assert project.api().list(STAGES) == []
    assert ran(project, "after") < 8
    assert project.node_uids() == nodes
    assert len(project.api().list(NODES)) == 2
    project.api().delete(f"{JOBS}?propagationPolicy=Background")
    project.api().until(PODS, lambda found: not found)


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


def test_usage_is_added_changed_and_removed_in_place(project: Project) -> None:
    require("metrics-server")
    nodes, identity = project.node_uids(), project.identity()
    # On a busy machine the controller manager makes it only some seconds after the API server answers.
    project.api().until("/api/v1/namespaces/default/serviceaccounts", lambda found: "default" in found)
    project.api().create(PODS, trains("a100-z-0"))

    project.write_stack({**CLUSTER, "podUsage": [USES], "faults": [XID]})
    project.up()
    assert (project.node_uids(), project.identity()) == (nodes, identity)
    found = filled(project, 0.25)
    busy = of_gpus(found, "DCGM_FI_DEV_GPU_UTIL")
    assert [round(busy[str(gpu)]) for gpu in range(8)] == [80] * 4 + [0] * 4
    assert of_gpus(found, "DCGM_FI_DEV_GPU_TEMP")["0"] > of_gpus(found, "DCGM_FI_DEV_GPU_TEMP")["7"]
    assert set(of_gpus(found, "DCGM_FI_DEV_XID_ERRORS").values()) == {0}
    scraped(project.cluster(), "a100-z-1", lambda s: set(of_gpus(s, "DCGM_FI_DEV_XID_ERRORS").values()) == {63})
    used = top(project.kubeconfig(), "pods", "trains", variables=project.environment)["trains"]
    assert (3900 <= int(used[0].removesuffix("m")) <= 4100, used[1]) == (True, "4096Mi")
    assert project.foresee("--refresh").steps == ()

    before = project.processes()
    project.write_stack({**CLUSTER, "podUsage": [{**USES, "gpuMemory": "50%"}], "faults": [XID]})
    assert [step.op for step in project.foresee().steps] == ["update"]
    project.up()
    filled(project, 0.5)
    assert project.processes() == before

    project.write_stack(CLUSTER)
    project.up()
    assert "quickstart/metrics-server" not in project.processes()
    assert project.api().list(USAGES) == []
    assert project.node_uids() == nodes
    assert project.api().get(f"{PODS}/trains")["status"]["phase"] == "Running"
    project.destroy()
    assert project.processes() == {}
