"""Experiments on a real control plane: what is created, measured, reported, and left behind."""

import asyncio
import json
import math
from asyncio.subprocess import PIPE
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus import Experiment
from kumulus.extras.journal import book
from kumulus.extras.journal.errors import Busy
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.plan.pods import TOLERATIONS
from kumulus.extras.lab.report.files import report_at
from kumulus.extras.lab.report.model import Report, Test
from kumulus.extras.lab.run.bench import RepetitionOutcome
from kumulus.extras.lab.run.repetition import Repetition
from kumulus.extras.schedulers import children
from kumulus.kube import Unreachable
from kumulus.model.lifecycles import DELAY_ANNOTATION
from tests.integration.conftest import Plane, Pools, remove_namespaces
from tests.support import processes, runs
from tests.support.api import Object
from tests.support.faultproxy import FaultProxy, Harm

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
REQUESTS = {"cpu": "1", "nvidia.com/gpu": "8"}


class Lab:
    """Runs experiments on the control plane, on a pool of eight nodes in two zones."""

    def __init__(self, plane: Plane, pools: list[str], directory: Path) -> None:
        self.plane, self.pools, self.directory = plane, pools, directory
        self.stop = asyncio.Event()
        self.said: list[str] = []
        self.on_sample: Callable[[RepetitionOutcome], None] = lambda _: None
        self.kubeconfig: Path | None = None
        # As users have it: a busy machine keeps an answer back for seconds. Tests of a silent server want less.
        self.patience = 60.0

    async def run(self, **fields: Any) -> Report:
        file = self.directory / "experiment.yaml"
        file.write_text(yaml.safe_dump({"name": "test", "settle": "1s", "timeout": "90s", **fields}))
        # The cluster's processes are found beside its own kubeconfig, whatever way its API is reached.
        report, directory = await runs.run(
            self.plane.observed.kubeconfig,
            file,
            through=self.kubeconfig,
            patience=self.patience,
            stop=self.stop,
            on_sample=self._sampled,
            say=self.said.append,
        )
        assert report_at(directory / "report.json") == report
        return report

    def _sampled(self, outcome: RepetitionOutcome) -> None:
        self.on_sample(outcome)

    def workload(self, **fields: Any) -> dict[str, Any]:
        return {"name": "work", "requests": REQUESTS, "nodeSelector": {"lab": "here"}, "duration": "5m", **fields}

    def left(self) -> list[str]:
        """Namespaces of experiments that are still there."""
        found = self.plane.api.list("/api/v1/namespaces", labelSelector="kumulus.io/experiment")
        return [each["metadata"]["name"] for each in found]


@pytest.fixture
async def lab(plane: Plane, pools: Pools, tmp_path: Path) -> Lab:
    names = []
    for zone in ("z1", "z2"):
        labels = {"lab": "here", "topology.kubernetes.io/zone": zone, "nvidia.com/gpu.product": "test-gpu"}
        inputs = pools.inputs(4, labels=labels)
        await pools.create(inputs)
        names.append(str(inputs["name"]))
    return Lab(plane, names, tmp_path)


def only(report: Report) -> Test:
    assert len(report.results.tests) == 1
    return report.results.tests[0]


async def test_a_workload_is_scheduled_measured_and_gone(lab: Lab) -> None:
    fields = {
        "workloads": [lab.workload(jobs=2, workers=4)],
        "repetitions": 2,
        "until": "running",
        "expect": [
            {"measure": "allocation.gpu", "atLeast": "100%"},
            {"measure": "timeToSchedule.p99", "atMost": "60s"},
            {"workload": "work", "nodes": [f"{pool}-{n}" for pool in lab.pools for n in range(4)]},
        ],
    }
    report = await lab.run(**fields)
    assert [test.details.ended for test in report.results.tests] == ["all pods are running"] * 2
    assert [each.holds for test in report.results.tests for each in test.thresholds] == [True] * 6
    assert report.results.status == "success"
    assert (report.metadata.cluster.nodes, report.metadata.cluster.gpus) == (8, {"test-gpu z1": 32, "test-gpu z2": 32})
    assert report.metadata.scheduler.settings["kube-api-qps"] == "5000"
    measures = report.results.tests[0].details.measures
    assert (measures["jobs.admitted"], measures["gpus.allocated"], measures["pods.scheduled"]) == (2, 64, 8)
    assert measures["bindings.counted"] == measures["pods.scheduled"], "the API server counts what we see"
    assert measures["events.written"] >= 8, "kube-scheduler says of each pod that it is Scheduled"
    assert report.results.tests[0].details.bindings[0] == [0, 0, 0], "it is asked first when the clock starts"
    assert 0 <= measures["timeToSchedule.min"] <= measures["timeToRun.min"]
    assert measures["timeToSchedule.max"] > 0
    assert measures["cpu.controlPlane"] > 0
    assert lab.left() == []


async def test_a_program_of_ones_own_has_the_report_of_its_experiment(lab: Lab) -> None:
    workload = lab.workload(jobs=1, workers=2)
    experiment = Experiment({"name": "own", "settle": "2s", "timeout": "90s", "workloads": [workload]})
    results = lab.directory / "results"
    report = await asyncio.to_thread(experiment.run, lab.plane.observed.kubeconfig, results=results, stack="mine")
    assert report["results"]["status"] == "success"
    assert report["metadata"]["cluster"]["name"] == "mine"
    [written] = results.glob("own/*/report.json")
    assert json.loads(written.read_text()) == report
    assert written.with_name("junit.xml").exists()
    assert lab.left() == []


async def test_pods_of_others_take_up_room_until_they_go(lab: Lab) -> None:
    pods = "/api/v1/namespaces/default/pods"
    container = {"name": "c", "image": "none", "resources": {"limits": REQUESTS}}
    spec = {"containers": [container], "nodeSelector": {"lab": "here"}, "tolerations": TOLERATIONS}
    others = [f"of-others-{number}" for number in range(2)]
    for name in others:
        lab.plane.api.create(pods, {"metadata": {"name": name}, "spec": spec})
    lab.plane.api.until(pods, lambda found: all(found[name]["spec"].get("nodeName") for name in others))
    shares = []

    def go(outcome: RepetitionOutcome) -> None:
        shares.append(outcome.records.allocation.share())
        while others:
            lab.plane.api.delete(f"{pods}/{others.pop()}?gracePeriodSeconds=0")

    lab.on_sample = go
    test = only(await lab.run(workloads=[lab.workload(jobs=8, workers=1)], until="running"))
    assert test.details.ended == "all pods are running"
    assert shares[0] >= 0.25
    measures = test.details.measures
    assert (measures["gpus.allocated"], measures["allocation.gpu"], measures["allocation.gpuEnd"]) == (64, 1, 1)


async def test_zone_affinity_admits_jobs_in_part_while_gpus_are_free(lab: Lab) -> None:
    # Two jobs of three fill three nodes of each zone; the third finds one node in each, and may use one of them only.
    first = lab.workload(name="first", jobs=2, workers=3, affinity={"required": "zone"})
    third = lab.workload(name="third", workers=3, affinity={"required": "zone"}, arrival={"after": "2s"})
    report = await lab.run(workloads=[first, third], expect=[{"measure": "jobs.partlyAdmitted", "equals": 0}])
    test = only(report)
    assert test.status == "failure"
    assert test.details.measures["jobs.partlyAdmitted"] >= 1
    assert test.details.measures["gpus.freeWhilePending"] >= 8
    assert test.details.ended.endswith("pods fit nowhere")
    assert any("pod affinity" in reason for reason in test.details.pending_by_reason), test.details.pending_by_reason


async def test_the_timeline_happens_and_is_undone(lab: Lab) -> None:
    before = {name for pool in lab.pools for name in _nodes(lab, pool)}
    timeline = [
        {"scheduler": "stop"},
        {"resize": {"pool": lab.pools[0], "replicas": 6}},
        {"resize": {"pool": lab.pools[1], "replicas": 1}},
        {"after": "created", "at": "1s", "scheduler": "start"},
    ]
    report = await lab.run(workloads=[lab.workload(jobs=7, workers=1)], timeline=timeline, until="running")
    test = only(report)
    assert test.status == "success", test.details.ended
    assert [moment.what for moment in test.details.timeline] == [
        "scheduler stopped",
        f"{lab.pools[0]}: 4 → 6 nodes",
        f"{lab.pools[1]}: 4 → 1 nodes",
        "scheduler started",
    ]
    measures = test.details.measures
    assert (measures["pods.ran"], measures["gpus.allocated"]) == (7, 56)
    assert measures["timeToSchedule.min"] > 0.9, "no pod had a node while the scheduler was off"
    assert {name for pool in lab.pools for name in _nodes(lab, pool)} == before
    assert len(lab.plane.processes()["kube-scheduler"]) == 1


async def test_a_pool_can_be_resized_again(lab: Lab) -> None:
    pool, before, sizes = lab.pools[0], _nodes(lab, lab.pools[0]), [7, 5, 2, 3]
    timeline = [{"resize": {"pool": pool, "replicas": size}} for size in sizes]
    # As many jobs as there are nodes in the end, and one more that finds none.
    report = await lab.run(workloads=[lab.workload(jobs=sizes[-1] + 5, workers=1)], timeline=timeline, until="running")
    details = only(report).details
    said = [f"{pool}: {was} → {size} nodes" for was, size in pairwise([4, *sizes])]
    assert [moment.what for moment in details.timeline] == said
    assert details.ended.endswith("1 pod fits nowhere"), details.ended
    assert details.measures["gpus.allocated"] == 8 * (sizes[-1] + 4)
    assert _nodes(lab, pool) == before


def _nodes(lab: Lab, pool: str) -> list[str]:
    found = lab.plane.api.list("/api/v1/nodes", labelSelector=f"kumulus.io/pool={pool}")
    return [each["metadata"]["name"] for each in found]


async def test_a_fault_takes_pods_and_its_end_gives_their_nodes_back(lab: Lab) -> None:
    gone = {"name": "lost", "kubelet": "gone", "target": {"names": [f"{lab.pools[0]}-[0-3]"]}}
    timeline = [{"after": "scheduled", "at": "1s", "fault": gone}, {"after": "scheduled", "at": "3s", "clear": "lost"}]
    report = await lab.run(workloads=[lab.workload(jobs=8, workers=1)], timeline=timeline, until="running")
    details = only(report).details
    assert details.ended == "all pods are running", details
    measures = details.measures
    assert 1 <= measures["pods.disrupted"] <= 4
    assert measures["pods.created"] == 8 + measures["pods.disrupted"], "each has one in its place"
    assert measures["gpus.allocated"] == 64
    assert len(_nodes(lab, lab.pools[0])) == 4


async def test_nodes_that_were_cordoned_before_a_fault_are_no_success_and_are_named_at_the_end(lab: Lab) -> None:
    early, later = names = [f"{lab.pools[0]}-{number}" for number in range(2)]
    fault = {"name": "struck", "kubelet": "notReady", "target": {"names": names}}

    def cordon(outcome: RepetitionOutcome) -> None:
        if outcome.records.counts["bound"] < 8:
            return
        node = later if outcome.records.faulted.faults else early
        lab.plane.api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})

    lab.on_sample = cordon
    nodes = {"nodes": {"fault": "struck"}, "within": "3s"}
    report = await lab.run(
        workloads=[lab.workload(jobs=8, workers=1), lab.workload(name="none", jobs=1, requests={"cpu": "1000"})],
        timeline=[{"at": "3s", "fault": fault}],
        expect=[
            {**nodes, "cordoned": True},
            {"workload": "work", "onFaultedNodes": 2, "within": "1s"},
            {"workload": "none", "onFaultedNodes": 0, "within": "1s"},
        ],
    )
    assert [(each.holds, each.found) for each in only(report).thresholds] == [
        (False, f"1 of 2 nodes was cordoned before the fault began; to undo: kubectl uncordon {early}"),
        (True, "2; 2 pods had been on those of struck"),
        (False, "no pod of none was on the nodes of struck when the fault began, so nothing was tried"),
    ]
    left = f"2 nodes are cordoned, and not before the run; to undo: kubectl uncordon {early} {later}"
    assert [line for line in lab.said if "cordoned" in line] == [left]


async def test_jobs_complete_as_a_trace_has_them(lab: Lab) -> None:
    (lab.directory / "trace.csv").write_text("arrival,size,duration\n100,2,1\n101,1,2\n")
    workload = {"name": "work", "requests": REQUESTS, "nodeSelector": {"lab": "here"}}
    report = await lab.run(
        workloads=[{**workload, "arrival": {"trace": {"file": "trace.csv"}}}], until="completed", timeout="60s"
    )
    measures = only(report).details.measures
    assert (measures["pods.succeeded"], measures["jobs.total"], measures["gpus.allocated"]) == (3, 2, 0)
    # The second job comes a second after the first and runs for two; KWOK counts from a pod's start in whole seconds.
    assert measures["makespan"] >= 2


async def test_the_users_of_a_trace_are_measured_with_the_gpu_hours_they_had(lab: Lab) -> None:
    (lab.directory / "trace.csv").write_text("arrival,duration,vc\n0,1,physics\n0,2,biology\n1,1,physics\n")
    workload = {"name": "work", "requests": REQUESTS, "nodeSelector": {"lab": "here"}}
    trace = {"file": "trace.csv", "columns": {"user": "vc"}}
    report = await lab.run(workloads=[{**workload, "arrival": {"trace": trace}}], until="completed", timeout="60s")
    details = only(report).details
    assert details.users is not None
    users = details.users.users
    assert {name: (user.pods, user.scheduled) for name, user in users.items()} == {"biology": (1, 1), "physics": (2, 2)}
    # What a client did not hear in time, as it stood still on a busy machine, is known only between bounds.
    untimed = details.measures["pods.untimed"]
    assert untimed or all("p99" in user.waited and "p50" in user.slowdown for user in users.values())
    assert all(user.waited.get("p99", 0) >= 0 and user.slowdown.get("p50", 1) >= 1 for user in users.values())
    assert sum(user.share for user in users.values()) == pytest.approx(1, abs=1e-5)
    measures, had = details.measures, sum(user.hours for user in users.values())
    bounds = {name: (value, value) for name, value in measures.items()} | details.not_measured
    used, idle = (_amounts(bounds[f"gpuHours.{each}"]) for each in ("used", "idle"))
    assert untimed or used[0] == used[1]
    assert 0.8 * used[0] <= had <= 1.2 * used[1]
    there = measures["gpus.capacity"] * measures["duration"] / 3600
    assert 0.8 * (used[0] + idle[0]) <= there <= 1.2 * (used[1] + idle[1])
    assert 0 < measures.get("fairness.jain", 1) <= 1


def _amounts(bounds: tuple[float, float | None]) -> tuple[float, float]:
    least, most = bounds
    return least, math.inf if most is None else most


async def test_a_second_scheduler_places_the_pods_and_ends_with_the_run(lab: Lab) -> None:
    timeline = [{"scheduler": "stop"}, {"after": "created", "at": "1s", "scheduler": "start"}]
    report = await lab.run(
        workloads=[lab.workload(jobs=8)], scheduler={"name": "kube-scheduler"}, timeline=timeline, timeout="60s"
    )
    measures = only(report).details.measures
    assert report.results.error == ""
    assert (report.metadata.scheduler.name, measures["pods.scheduled"]) == ("kube-scheduler", 8)
    assert measures["timeToSchedule.min"] > 0.9, "the cluster's own scheduler has left the pods alone"
    assert measures["cpu.scheduler"] > 0
    assert report.metadata.scheduler.settings["version"].endswith(lab.plane.wanted.kubernetes_version.lstrip("v"))
    (directory,) = (lab.directory / "results" / "test").iterdir()
    assert children.running(directory / "scheduler") == {}


async def test_of_a_scheduler_that_cannot_start_nothing_is_left_to_put_back(lab: Lab) -> None:
    with pytest.raises(LabError, match="kube-scheduler has ended with exit code 0"):
        await lab.run(workloads=[lab.workload()], scheduler={"name": "kube-scheduler", "binary": "/bin/true"})
    cluster = lab.plane.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    assert book.unrestored(cluster) == []


async def test_a_scheduler_that_ends_by_itself_ends_the_run_and_the_report_is_kept(lab: Lab) -> None:
    def kill(_: RepetitionOutcome) -> None:
        processes.kill(lab.plane.processes().get("kube-scheduler", []))

    lab.on_sample = kill
    report = await lab.run(workloads=[lab.workload(jobs=20, workers=1)])
    await lab.plane.repair()
    assert report.results.status == "partial"
    assert report.results.error.startswith("the scheduler has ended by itself")
    assert only(report).details.measures["jobs.total"] == 20
    assert lab.left() == []


async def test_a_job_with_more_completions_than_pods_at_a_time_is_run_to_its_end(lab: Lab) -> None:
    spec = {"nodeSelector": {"lab": "here"}, "tolerations": TOLERATIONS, "restartPolicy": "Never"}
    template = {
        "metadata": {"annotations": {DELAY_ANNOTATION: "1s"}},
        "spec": {**spec, "containers": [{"name": "main", "image": "none"}]},
    }
    job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "waves"}}
    job["spec"] = {"parallelism": 2, "completions": 5, "template": template}
    (lab.directory / "job.yaml").write_text(yaml.safe_dump(job))
    report = await lab.run(workloads=[{"name": "work", "manifest": "job.yaml"}], until="completed")
    details = only(report).details
    assert (details.ended, details.measures["pods.succeeded"]) == ("all pods are completed", 5)


async def test_a_client_that_is_stopped_knows_what_it_did_not_hear_and_waits_for_it(lab: Lab) -> None:
    """The cluster goes on meanwhile. A run that is steady for a second would be over as soon as the client goes on."""
    work = {**lab.workload(jobs=3, workers=100), "requests": {"cpu": "10m"}}
    file = lab.directory / "stopped.yaml"
    file.write_text(yaml.safe_dump({"name": "stopped", "workloads": [work], "until": "steady", "settle": "1s"}))
    results = lab.directory / "results"
    words = ["experiment", "run", str(file), "--kubeconfig", lab.plane.observed.kubeconfig, "--results", str(results)]
    client = await asyncio.create_subprocess_exec(str(ROOT / "kumulus"), *words, stdout=PIPE, stderr=PIPE)

    def bound(found: Mapping[str, Object]) -> bool:
        return any(pod["spec"].get("nodeName") for pod in found.values())

    try:
        await asyncio.to_thread(lab.plane.api.until, "/api/v1/pods", bound, labelSelector="kumulus.io/workload=work")
        with processes.stopped(client.pid):
            await asyncio.sleep(3)
        out, err = await asyncio.wait_for(client.communicate(), 120)
    finally:
        if client.returncode is None:
            client.kill()
    assert client.returncode == 0, err.decode()
    [path] = results.glob("stopped/*/report.json")
    details = only(report_at(path)).details
    assert details.measures["client.stall"] > 2.5
    assert details.measures["pods.scheduled"] == 300, details.ended
    assert details.measures["pods.untimed"] > 50
    # Which of them the unheard pods make unknown depends on how many there are.
    times = [f"timeToSchedule.{each}" for each in ("p50", "p90", "p99")]
    least, most = next(details.not_measured[each] for each in times if each in details.not_measured)
    assert most is not None
    assert most - least > 0.1
    assert f"not heard           the client stood still for {details.measures['client.stall']:.2f} s" in out.decode()


async def test_a_preempted_job_has_waited_and_taken_as_long_as_it_did_and_lost_what_it_had_done(lab: Lab) -> None:
    one_node = {**lab.workload(), "nodeSelector": {"kubernetes.io/hostname": f"{lab.pools[0]}-0"}, "duration": "4s"}
    low = {**one_node, "name": "low"}
    high = {**one_node, "name": "high", "priority": 1000, "arrival": {"after": "3s"}}
    details = only(await lab.run(workloads=[low, high], until="completed")).details
    measures = details.measures
    assert (measures["pods.preempted"], measures["pods.succeeded"], measures["pods.failed"]) == (1, 2, 0)
    assert measures["work.lostPreempted"] == measures["work.lost"] > 8 * 0.5, details
    assert measures["jobTimeToSchedule.max"] > 4, "low waits until high is over"
    assert measures["slowdown.max"] > 1.5
    assert measures["timeToSchedule.p50"] < measures["jobTimeToSchedule.max"]


async def test_a_silent_api_server_ends_the_run_and_the_next_run_removes_what_is_left(lab: Lab) -> None:
    with FaultProxy(lab.plane.directory) as proxy:
        lab.kubeconfig, lab.patience = proxy.kubeconfig(lab.directory / "kubeconfig.yaml"), 3
        lab.on_sample = lambda _: proxy.refuse()
        report = await lab.run(workloads=[lab.workload(arrival={"after": "30s"})])
    assert report.results.status == "partial"
    assert "is not reachable" in report.results.error
    assert "not everything could be removed, the next command will" in lab.said[-1]
    (left,) = lab.left()

    lab.kubeconfig, lab.patience, lab.on_sample, lab.said = None, 60, lambda _: None, []
    await lab.run(workloads=[lab.workload()])
    assert "did not come to its end" in lab.said[0]
    assert f"put back: namespace {left} removed" in lab.said[0]
    assert lab.left() == []


async def test_that_nothing_was_heard_of_a_silent_api_server_is_no_result(lab: Lab) -> None:
    """Its watches stay open for minutes, so that all seems settled after seconds."""
    with FaultProxy(lab.plane.directory) as proxy:
        lab.kubeconfig, lab.patience = proxy.kubeconfig(lab.directory / "kubeconfig.yaml"), 3
        lab.on_sample = lambda outcome: proxy.harm(Harm(("cut",))) if outcome.records.pending_by_reason() else None
        report = await lab.run(workloads=[lab.workload(requests={"cpu": "1000"})])
    assert report.results.status == "partial"
    assert "is not reachable" in report.results.error
    lab.kubeconfig, lab.patience, lab.on_sample = None, 60, lambda _: None
    await lab.run(workloads=[lab.workload()])
    assert lab.left() == []


async def test_a_run_that_may_live_on_another_machine_is_neither_joined_nor_removed(lab: Lab) -> None:
    owner = {"kumulus.io/experiment-process": "another-machine another-boot 4026531836 1 4711"}
    labels = {"kumulus.io/experiment": "elsewhere"}
    body = {"metadata": {"name": "experiment-elsewhere", "labels": labels, "annotations": owner}}
    lab.plane.api.create("/api/v1/namespaces", body)
    with pytest.raises(Busy, match=r"an experiment may run on this cluster .namespace experiment-elsewhere"):
        await lab.run(workloads=[lab.workload()])
    assert lab.left() == ["experiment-elsewhere"]
    remove_namespaces(lab.plane, "experiment-elsewhere")


async def test_a_server_that_gives_no_answer_while_a_run_is_removed_is_asked_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = Repetition._remove
    cut_off: list[Repetition] = []

    async def cut_off_once(repetition: Repetition) -> None:
        monkeypatch.undo()
        proxy.refuse()
        try:
            await remove(repetition)
        except Unreachable:
            cut_off.append(repetition)
            raise
        finally:
            proxy.accept()

    with FaultProxy(lab.plane.directory) as proxy:
        lab.kubeconfig, lab.patience = proxy.kubeconfig(lab.directory / "kubeconfig.yaml"), 3
        monkeypatch.setattr(Repetition, "_remove", cut_off_once)
        report = await lab.run(workloads=[lab.workload()])
    assert report.results.status == "success"
    assert len(cut_off) == 1
    # How many pods are left is progress, of which a slow machine has more.
    assert [line for line in lab.said if "removing its pods" not in line] == []
    assert lab.left() == []


async def test_what_the_cluster_does_not_know_is_told_before_anything_is_created(lab: Lab) -> None:
    report = await lab.run(workloads=[lab.workload(kind="JobSet", workers=1000)])
    note = "note: the workload asks for 8,000 nvidia.com/gpu at once, the cluster has "
    assert any(each.startswith(note) for each in lab.said), lab.said
    assert report.results.error.startswith("the cluster knows no JobSet of jobset.x-k8s.io/v1alpha2; its controller")
    assert lab.left() == []


async def test_what_the_api_server_refuses_is_told_in_its_words(lab: Lab) -> None:
    report = await lab.run(workloads=[lab.workload(priority="no-such-class", kind="Pod", duration=None)])
    assert "Pod work-1 is refused: " in report.results.error
    assert "no-such-class" in report.results.error
    assert report.results.status == "partial"
    assert lab.left() == []
