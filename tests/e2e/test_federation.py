"""Clusters as one: a hub's Jobs run on its workers, one of which is lost and comes back; drift and removal."""

import base64
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.model.identity import STACK_ID
from tests.support import listeners, processes
from tests.support.api import Api, Refused
from tests.support.project import Project

pytestmark = pytest.mark.e2e

GROUP = {
    "name": "cpu",
    "placement": [{"availabilityZone": "z", "replicas": 3}],
    "nodeTemplate": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
}
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
HUB, WORKERS = "fed-hub", ("fed-worker-0", "fed-worker-1")
# As many as fill both workers, and some that wait.
FIRST, NUMBER, PATIENCE_S = 12, 20, 240.0


def config(*, federated: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kumulus:hub": "hub",
        "kumulus:defaults": {"nodeGroups": [GROUP]},
        "kumulus:clusters": [{"name": "hub", "nodeGroups": []}, {"name": "worker", "count": 2}],
    }
    return {**found, "kumulus:federation": {"kind": "multikueue"}} if federated else found


def job(name: str) -> dict[str, Any]:
    """A Job of two pods that run for half a minute; six of them at once fill a worker."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    template = {
        "metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "30s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    metadata = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "default"}}
    spec = {"suspend": True, "parallelism": 2, "completions": 2, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A hub and two workers that are up."""
    try:
        toolchain.find("kueue")
    except toolchain.ToolMissing as error:
        pytest.skip(str(error))
    made = Project(tmp_path_factory.mktemp("project"))
    try:
        made.write_config(config(), stack="fed")
        with listeners.none_amiss(made.home):
            made.up()
            yield made
    finally:
        made.close()


def finished(jobs: list[dict[str, Any]]) -> set[str]:
    return {
        each["metadata"]["name"]
        for each in jobs
        if any(c["type"] == "Complete" and c["status"] == "True" for c in each.get("status", {}).get("conditions", ()))
    }


def seen_on_workers(project: Project, where: dict[str, set[str]]) -> None:
    """Note on which workers pods of each Job are; a worker that is down shows none."""
    for name in WORKERS:
        with suppress(OSError, HTTPException, Refused):
            for pod in project.api(name).list(PODS):
                if pod["status"].get("phase") in ("Running", "Succeeded"):
                    where.setdefault(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], set()).add(name)


def noted(hub: Api) -> int:
    """Of how many Jobs the hub has noted the worker."""
    found = hub.list(f"{KUEUE}/namespaces/default/workloads")
    return sum(bool(each.get("status", {}).get("clusterName")) for each in found)


def wait_for_jobs(project: Project, hub: Api, least: int, where: dict[str, set[str]]) -> set[str]:
    give_up = time.monotonic() + PATIENCE_S
    while True:
        seen_on_workers(project, where)
        done = finished(hub.list(JOBS))
        if len(done) >= least:
            return done
        assert time.monotonic() < give_up, f"{len(done)} of {least} Jobs: {sorted(done)}; pods were on {where}"
        time.sleep(0.5)


def test_no_job_is_lost_or_run_twice_when_a_worker_is_lost_and_comes_back(fed: Project) -> None:
    hub = fed.api(HUB)
    for number in range(FIRST):
        hub.create(JOBS, job(f"job-{number}"))
    where: dict[str, set[str]] = {}
    give_up = time.monotonic() + PATIENCE_S
    # Kueue starts a Job on a worker before it notes on the hub where. One that is lost in between goes to another.
    while not (len(where) == FIRST and noted(hub) == FIRST):
        seen_on_workers(fed, where)
        assert time.monotonic() < give_up, f"{noted(hub)} of {FIRST} Jobs are noted, pods are on {where}"
    begun = {name for name, names in where.items() if names == {WORKERS[0]}}
    assert begun - finished(hub.list(JOBS)), f"nothing is amid its work on {WORKERS[0]}: {where}"
    lost = [pid for name, pids in fed.processes().items() if name.startswith(f"{WORKERS[0]}/") for pid in pids]
    assert lost
    processes.kill(lost)
    for number in range(FIRST, NUMBER):
        hub.create(JOBS, job(f"job-{number}"))
    fed.up("--refresh")
    assert wait_for_jobs(fed, hub, NUMBER, where) == {f"job-{number}" for number in range(NUMBER)}
    assert {name: names for name, names in where.items() if len(names) != 1} == {}
    assert [each["status"].get("succeeded") for each in hub.list(JOBS)] == [2] * NUMBER


def test_a_hub_may_do_nothing_else_in_a_worker(fed: Project) -> None:
    worker = fed.api(WORKERS[0])
    name = f"multikueue-{HUB}"
    data = worker.get(f"/api/v1/namespaces/kueue-system/secrets/{name}")["data"]
    held = fed.api(HUB).get("/api/v1/namespaces/kueue-system/secrets/multikueue-worker-0")["data"]["kubeconfig"]
    theirs = Api(base64.b64decode(held).decode())
    try:
        assert theirs.list(JOBS) is not None
        for path in ("/api/v1/nodes", PODS, "/api/v1/namespaces/kube-system/secrets"):
            with pytest.raises(Refused, match="403"):
                theirs.list(path)
    finally:
        theirs.close()
    assert data["token"] not in fed.backend_file().read_text()


def test_what_is_taken_away_or_changed_is_drift_and_put_right(fed: Project) -> None:
    hub, worker = fed.api(HUB), fed.api(WORKERS[1])
    assert hub.get(f"{KUEUE}/clusterqueues/default")["metadata"]["labels"][STACK_ID]
    hub.delete("/api/v1/namespaces/kueue-system/secrets/multikueue-worker-1")
    role = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/multikueue-{HUB}"
    rules = worker.get(role)["rules"]
    worker.merge(role, {"rules": rules[:1]})
    steps = {each.name: each for each in fed.foresee("--refresh").steps}
    assert steps["federation-hub"].op == steps["federation-worker-1"].op == "update"
    assert "federation-worker-0" not in steps
    fed.up("--refresh")
    assert worker.get(role)["rules"] == rules
    assert hub.get("/api/v1/namespaces/kueue-system/secrets/multikueue-worker-1")["data"]["kubeconfig"]
    assert not fed.foresee("--refresh").steps


def test_without_its_section_nothing_of_it_is_left(fed: Project) -> None:
    identities = {name: fed.identity(name) for name in (HUB, *WORKERS)}
    fed.write_config(config(federated=False))
    fed.up()
    assert not [name for name in fed.processes() if name.endswith("/kueue")]
    for name in (HUB, *WORKERS):
        api = fed.api(name)
        kinds = api.metadata("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        assert not [each["name"] for each in kinds if each["name"].endswith("kueue.x-k8s.io")]
        roles = api.metadata("/apis/rbac.authorization.k8s.io/v1/clusterroles")
        assert not [each["name"] for each in roles if each["name"].startswith("multikueue-")]
    assert {name: fed.identity(name) for name in identities} == identities
