"""Clusters as one: a hub's Jobs run on its workers. One of them is killed, cut off and brought back amid a run, and no
Job is lost; what a hub may do; drift and removal."""

import base64
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

import pytest
import yaml

from kumulus.model.identity import STACK_ID
from tests.support import listeners, processes
from tests.support.api import Api, Refused
from tests.support.project import ROOT, Project, node_group
from tests.support.tools import require

pytestmark = pytest.mark.e2e

GROUP = node_group("cpu", 3)
HUB, WORKERS = "fed-hub", ("worker-0", "worker-1")
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
SECRET = "/api/v1/namespaces/kueue-system/secrets/multikueue-{}"
ROLE = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/multikueue-{HUB}"
EXPERIMENTS = "kumulus.io/experiment"
# As many as the workers have room for, so that all of them are on one when it is struck.
JOBS = 10
PATIENCE_S = 300.0


def declare(project: Project, *, federated: bool = True) -> None:
    """Write the stack's file."""
    config: dict[str, Any] = {
        "kumulus:hub": "hub",
        "kumulus:defaults": {"nodeGroups": [GROUP]},
        "kumulus:clusters": [{"name": "hub", "nodeGroups": []}, {"name": "worker", "count": len(WORKERS)}],
    }
    project.write_config({**config, "kumulus:federation": {"kind": "multikueue"}} if federated else config, stack="fed")


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A hub and two workers that are up."""
    require("kueue")
    made = Project(tmp_path_factory.mktemp("project"))
    try:
        declare(made)
        with listeners.none_amiss(made.home):
            made.up()
            yield made
    finally:
        made.close()


@dataclass
class Seen:
    """Which workers were seen to be what while a run was under way, by others than the run."""

    dead: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    answering: set[str] = field(default_factory=set)
    servers: dict[str, set[str]] = field(default_factory=lambda: {worker: set() for worker in WORKERS})


def written(project: Project, timeline: list[dict[str, Any]], **other: Any) -> list[str]:
    """The command of a run of Jobs of two pods, which fill the workers and last until after the timeline."""
    work = {
        "name": "work",
        "jobs": JOBS,
        "workers": 2,
        "requests": {"cpu": "2", "memory": "1Gi"},
        "duration": "45s",
        "priority": 100,
    }
    file = project.directory / "experiment.yaml"
    wanted = {"name": "fed", "workloads": [work], "timeline": timeline, "until": "completed", "timeout": "8m", **other}
    file.write_text(yaml.safe_dump(wanted))
    where = ["--results", str(project.directory / "results")]
    return [sys.executable, str(ROOT / "kumulus"), "experiment", "run", str(file), "-s", "fed", *where]


@contextmanager
def run(project: Project, line: list[str]) -> Iterator[subprocess.Popen[str]]:
    with (
        (project.directory / "log").open("w") as log,
        subprocess.Popen(
            line, cwd=project.directory, env=project.environment, stdout=log, stderr=log, text=True
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def said(project: Project) -> str:
    return (project.directory / "log").read_text()


def held(project: Project, worker: str) -> str:
    """The kubeconfig of a worker that the hub has."""
    return base64.b64decode(project.api(HUB).get(SECRET.format(worker))["data"]["kubeconfig"]).decode()


def server(project: Project, worker: str) -> str:
    """Where the hub's Secret says that a worker is."""
    found: str = json.loads(held(project, worker))["clusters"][0]["cluster"]["server"]
    return found


def look(project: Project, seen: Seen, worker: str) -> None:
    if not [name for name in project.processes() if name.startswith(f"fed-{worker}/")]:
        seen.dead.add(worker)
    found = project.api(HUB).get(f"{KUEUE}/multikueueclusters/{worker}")
    if any(each["type"] == "Active" and each["status"] != "True" for each in found["status"]["conditions"]):
        seen.cut.add(worker)
        with suppress(OSError, HTTPException, Refused):
            project.api(f"fed-{worker}").list("/api/v1/namespaces")
            seen.answering.add(worker)
    seen.servers[worker].add(server(project, worker))


def report_of(project: Project, line: list[str]) -> tuple[dict[str, Any], Seen]:
    """Run an experiment to its end, and look at the workers all the while."""
    seen, give_up = Seen(), time.monotonic() + PATIENCE_S
    with run(project, line) as process:
        while process.poll() is None:
            for worker in WORKERS:
                look(project, seen, worker)
            assert time.monotonic() < give_up, said(project)
            time.sleep(0.5)
        assert process.returncode == 0, said(project)
    runs = json.loads((project.directory / "results" / "manifest.json").read_text())["runs"]
    path = project.directory / "results" / runs[-1]["path"]
    found: dict[str, Any] = json.loads(path.read_text())
    assert {"clusters-1.svg", "clusters-1.png"} <= {each.name for each in path.parent.iterdir()}
    return found["results"]["tests"][0]["details"], seen


def nothing_lost(details: dict[str, Any]) -> None:
    measures, clusters = details["measures"], details["clusters"]
    names = ("jobs.total", "jobs.dispatched", "jobs.completed", "jobs.lost", "jobs.runTwice", "pods.succeeded")
    assert [measures[name] for name in names] == [JOBS, JOBS, JOBS, 0, 0, 2 * JOBS], clusters
    assert {len(where) for where in clusters["jobs"].values()} == {1}
    assert sum(each["jobs"] for each in clusters["workers"].values()) == JOBS
    assert set(clusters["workers"]) == set(WORKERS)
    # Kueue notes on the hub where a Job is once it has made it there: on a busy machine its pods may run by then.
    assert measures["jobTimeToDispatch.min"] > 0
    # What was not heard in time, as on a busy machine, is given by its bounds.
    bounds = {name: (value, value) for name, value in measures.items()} | details.get("notMeasured", {})
    assert 0 < bounds["jobTimeToNodes.p50"][1] <= bounds["jobTimeToRun.p50"][1]
    assert measures["allocation.cpu"] > 0.5


def left_as_it_was(project: Project) -> None:
    for name in (HUB, *(f"fed-{worker}" for worker in WORKERS)):
        assert not project.api(name).metadata("/api/v1/namespaces", labelSelector=EXPERIMENTS), name
        classes = project.api(name).metadata("/apis/scheduling.k8s.io/v1/priorityclasses")
        assert not [each["name"] for each in classes if each["name"].startswith("experiment-")], name


def test_workers_killed_and_cut_off_amid_a_run_come_back_and_no_job_is_lost_or_run_twice(fed: Project) -> None:
    nodes, own = fed.node_uids("fed-worker-0"), server(fed, "worker-1")
    # What takes long, a killed one's start, comes last: it keeps none of the others from its time.
    timeline = [
        {"after": "scheduled", "at": "3s", "partition": "worker-1"},
        {"after": "scheduled", "at": "4s", "kill": "worker-0"},
        {"after": "scheduled", "at": "15s", "restore": "worker-1"},
        {"after": "scheduled", "at": "16s", "restore": "worker-0"},
    ]
    details, seen = report_of(fed, written(fed, timeline))
    assert seen.dead == {"worker-0"}, "nothing struck it, or the other was not only cut off"
    assert seen.cut == {*WORKERS}
    assert "worker-1" in seen.answering, "it is cut off from the hub, and from nobody else"
    (proxy,) = seen.servers["worker-1"] - {own}
    assert proxy.startswith("https://127.0.0.1:")
    assert server(fed, "worker-1") == own
    happened = [each["what"] for each in details["timeline"]]
    killed = next(each for each in happened if each.startswith("worker-0 is killed: "))
    assert "etcd" in killed
    assert any(each.startswith("worker-0 is back") for each in happened)
    cut = next(each for each in happened if each.startswith("worker-1 is cut off"))
    assert not cut.startswith("worker-1 is cut off: 0 "), "the hub had no connection by the proxy"
    for worker in WORKERS:
        assert f"the hub does not reach {worker}" in happened
        assert f"the hub reaches {worker}" in happened
    assert details["clusters"]["workers"]["worker-0"]["completed"], "it had nothing to do, and nothing to lose"
    nothing_lost(details)
    assert fed.node_uids("fed-worker-0") == nodes
    left_as_it_was(fed)


def test_what_a_killed_run_has_done_to_workers_the_next_command_on_the_hub_undoes(fed: Project) -> None:
    own = server(fed, "worker-1")
    timeline = [{"at": "2s", "kill": "worker-0"}, {"at": "2s", "partition": "worker-1"}]
    with run(fed, written(fed, timeline)) as process:
        processes.await_amid(
            process,
            lambda: (
                not [name for name in fed.processes() if name.startswith("fed-worker-0/")]
                and server(fed, "worker-1") != own
            ),
            PATIENCE_S,
            0.1,
            fed.directory / "log",
        )
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert server(fed, "worker-1") != own
    answer = fed.kumulus("fault", "list", "-s", "fed")
    assert answer.returncode == 0, answer.stderr
    assert "fed-worker-0 started" in answer.stderr
    assert f"the hub reaches {own} again" in answer.stderr
    assert server(fed, "worker-1") == own
    for worker in WORKERS:
        answer = fed.kumulus("fault", "list", "-s", "fed", "--cluster", worker)
        assert answer.returncode == 0, answer.stderr
        assert "namespace experiment-fed-" in answer.stderr
    left_as_it_was(fed)
    assert processes.components(fed.home).keys() >= {
        f"fed-worker-0/{name}" for name in ("etcd", "kube-apiserver", "kueue")
    }


def test_a_worker_that_there_is_not_is_refused_with_the_place_before_anything_is_made(fed: Project) -> None:
    line = written(fed, [{"at": "2s", "kill": "worker-7"}])
    with run(fed, line) as process:
        assert process.wait(60) == 1
    assert "timeline[0].kill: worker-7 is no worker of the federation; did you mean worker-" in said(fed)
    with run(fed, [*line, "--cluster", "worker-0"]) as process:
        assert process.wait(60) == 1
    assert "timeline[0].kill: fed/worker-0 is no hub of a federation" in said(fed)
    left_as_it_was(fed)


def test_a_hub_may_do_nothing_else_in_a_worker(fed: Project) -> None:
    data = fed.api("fed-worker-0").get(f"/api/v1/namespaces/kueue-system/secrets/multikueue-{HUB}")["data"]
    theirs = Api(held(fed, "worker-0"))
    try:
        assert theirs.list("/apis/batch/v1/namespaces/default/jobs") is not None
        for path in ("/api/v1/nodes", "/api/v1/namespaces/default/pods", "/api/v1/namespaces/kube-system/secrets"):
            with pytest.raises(Refused, match="403"):
                theirs.list(path)
    finally:
        theirs.close()
    assert data["token"] not in fed.backend_file().read_text()


def test_what_is_taken_away_or_changed_is_drift_and_put_right(fed: Project) -> None:
    hub, worker = fed.api(HUB), fed.api("fed-worker-1")
    assert hub.get(f"{KUEUE}/clusterqueues/default")["metadata"]["labels"][STACK_ID]
    hub.delete(SECRET.format("worker-1"))
    rules = worker.get(ROLE)["rules"]
    worker.merge(ROLE, {"rules": rules[:1]})
    steps = {each.name: each for each in fed.foresee("--refresh").steps}
    assert steps["federation-hub"].op == steps["federation-worker-1"].op == "update"
    assert "federation-worker-0" not in steps
    # A worker that is lost meanwhile comes back.
    running = fed.processes()
    processes.kill(pid for name, pids in running.items() if name.startswith("fed-worker-0/") for pid in pids)
    fed.up("--refresh")
    assert fed.processes().keys() == running.keys()
    assert worker.get(ROLE)["rules"] == rules
    assert held(fed, "worker-1")
    assert not fed.foresee("--refresh").steps


def test_without_its_section_nothing_of_it_is_left(fed: Project) -> None:
    clusters = (HUB, *(f"fed-{worker}" for worker in WORKERS))
    identities = {name: fed.identity(name) for name in clusters}
    declare(fed, federated=False)
    fed.up()
    assert not [name for name in fed.processes() if name.endswith("/kueue")]
    for name in clusters:
        api = fed.api(name)
        kinds = api.metadata("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        assert not [each["name"] for each in kinds if each["name"].endswith("kueue.x-k8s.io")]
        roles = api.metadata("/apis/rbac.authorization.k8s.io/v1/clusterroles")
        assert not [each["name"] for each in roles if each["name"].startswith("multikueue-")]
    assert {name: fed.identity(name) for name in identities} == identities
