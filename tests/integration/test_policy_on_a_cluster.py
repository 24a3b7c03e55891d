"""A policy beside the real kube-scheduler: the same places as without a cluster, and what becomes of one that fails."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.extender.ledger import machines_of
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.offline.measuring import run as run_offline
from kumulus.extras.lab.plan.stream import pods_recorded
from kumulus.extras.lab.policies.load import policy
from kumulus.extras.lab.report.model import PolicyUsed, Report, Test
from kumulus.extras.lab.run.bench import RepetitionOutcome
from kumulus.extras.lab.run.ending import Ending
from kumulus.kube import Client, load_kubeconfig
from tests.integration.conftest import Plane, Pools
from tests.support import runs, stranger
from tests.support.stranger import Question

pytestmark = pytest.mark.integration
HEADING = "name,arrival,cpu,memory,gpus,gpuMilli"
COLUMNS = {"name": "name", "cpu": "cpu", "memory": "memory", "gpus": "gpus", "gpuMilli": "gpuMilli"}
SHARES = (500, 300, 1000, 250, 1000, 700)


class Lab:
    """Plays a small trace on six nodes of eight GPUs in all."""

    def __init__(self, plane: Plane, directory: Path) -> None:
        self.plane, self.directory = plane, directory
        self.sampled: Any = lambda _: None

    def file(self, trace: dict[str, Any] | None = None, kind: str = "Pod", **fields: Any) -> Path:
        # No GPU's share and no CPU is asked for by so many that a node of another test would do.
        rows = "".join(f"t{n},{n},{100 + 20 * (n % 5)}m,64Mi,1,{SHARES[n % 6]}\n" for n in range(30))
        (self.directory / "tasks.csv").write_text(f"{HEADING}\n{rows}c0,30,200m,64Mi,0,0\n")
        played = {"file": "tasks.csv", "columns": COLUMNS, "stay": True, "shuffle": "seed", **(trace or {})}
        workload = {"name": "tasks", "kind": kind, "nodeSelector": {"lab": "policy"}, "arrival": {"trace": played}}
        # The nodes are kept on for a long time: a busy machine is no failure here.
        given = {"name": "placed", "settle": "1s", "timeout": "180s", "seed": 5, "workloads": [workload], **fields}
        path = self.directory / "experiment.yaml"
        path.write_text(yaml.safe_dump(given))
        return path

    async def run(self, file: Path) -> tuple[Report, list[str]]:
        said: list[str] = []
        report, _ = await runs.run(self.plane.observed.kubeconfig, file, on_sample=self.sampled, say=said.append)
        return report, said


@pytest.fixture
async def lab(plane: Plane, pools: Pools, tmp_path: Path) -> Lab:
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2", "kumulus.io/gpu-milli": "2000"}
    inputs = pools.inputs(4, labels={"lab": "policy", "nvidia.com/gpu.product": "test-gpu"}, capacity=capacity)
    await pools.create(inputs)
    return Lab(plane, tmp_path)


def only(report: Report) -> tuple[Test, PolicyUsed]:
    assert len(report.results.tests) == 1, report.results.error
    test = report.results.tests[0]
    assert test.details.policy is not None
    return test, test.details.policy


async def offline(lab: Lab, file: Path, name: str) -> Any:
    loaded = load(file)
    async with Client(load_kubeconfig(Path(lab.plane.observed.kubeconfig)), patience=60.0) as client:
        machines = await machines_of(client, loaded.experiment.productLabel)
    chosen = [machine for machine in machines if machine.model == "test-gpu"]
    assert len(chosen) == 4
    return run_offline(chosen, pods_recorded(loaded), policy(name, lab.directory, 60), seed=5)


@pytest.mark.parametrize("name", ["FGD", "Random"])
async def test_kube_scheduler_places_a_stream_as_a_run_without_a_cluster_does(lab: Lab, name: str) -> None:
    file = lab.file(policy=name)
    report, _ = await lab.run(file)
    test, used = only(report)
    alone = await offline(lab, file, name)
    assert test.status == "success", test.details.ended
    assert (used.failed, used.elsewhere, used.ties) == (0, 0, "name")
    measures = test.details.measures
    assert measures["pods.scheduled"] + measures["pods.pending"] == alone.pods == 31
    assert measures["pods.pending"] > 0, "30 pods ask for more than 8 GPUs"
    # Nodes that another test has left take part in the order that the seed draws.
    if len(lab.plane.api.list("/api/v1/nodes")) == 4:
        assert measures["pods.scheduled"] == alone.placed
        assert used.allocated_percent == alone.curves["allocated_percent"]
        assert used.fragmented_percent_of_all_gpus == alone.curves["fragmented_percent_of_all_gpus"]
    assert report.metadata.scheduler.name == "kube-scheduler"
    # The cluster's own is a program of the same name, which has nothing to place.
    spent = test.details.series
    assert spent["cpu second kube-scheduler"][-1] == pytest.approx(measures["cpu.scheduler"], abs=1e-4)
    assert spent["cpu kube-scheduler"][-1] > 0


async def test_with_random_ties_kube_scheduler_draws_and_no_gpu_is_given_twice(lab: Lab) -> None:
    report, _ = await lab.run(lab.file(policy="BestFit", policyTies="random"))
    test, used = only(report)
    assert test.status == "success", test.details.ended
    assert (used.failed, used.elsewhere, used.ties) == (0, 0, "random")
    assert test.details.measures["pods.scheduled"] > 8
    assert max(used.allocated_percent.values()) <= 100


def scoring(strategy: str) -> str:
    """A kube-scheduler that has one opinion: how much of a node may be in use."""
    arguments = {"scoringStrategy": {"type": strategy, "resources": [{"name": "cpu", "weight": 1}]}}
    profile = {
        "schedulerName": "second-scheduler",
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit", "weight": 1}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": arguments}],
    }
    api = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return yaml.safe_dump({**api, "profiles": [profile]})


@pytest.mark.parametrize(("strategy", "on"), [("MostAllocated", 1), ("LeastAllocated", 3)])
async def test_kube_scheduler_s_own_scores_choose_among_nodes_with_room(lab: Lab, strategy: str, on: int) -> None:
    (lab.directory / "scheduler.yaml").write_text(scoring(strategy))
    places: dict[str, str] = {}
    lab.sampled = lambda outcome: places.update({each.job: each.node for each in outcome.records.pods.values()})
    scheduler = {"name": "kube-scheduler", "config": "scheduler.yaml"}
    report, _ = await lab.run(lab.file({"limit": 3, "shuffle": None}, policy="KubeScheduler", scheduler=scheduler))
    test, used = only(report)
    assert test.status == "success", test.details.ended
    assert (used.failed, used.elsewhere, used.asked >= 3) == (0, 0, True)
    # Half a GPU, a third of one and a whole one: there is room for all of them on one node.
    assert (len(places), len(set(places.values()))) == (3, on), places


async def test_what_kube_scheduler_does_not_see_of_gpus_is_accounted_for(lab: Lab) -> None:
    report, _ = await lab.run(lab.file(policy="KubeScheduler"))
    test, used = only(report)
    assert test.status == "success", test.details.ended
    assert (used.failed, used.elsewhere, used.ties) == (0, 0, "random")
    measures = test.details.measures
    assert measures["pods.scheduled"] + measures["pods.pending"] == 31
    assert measures["pods.pending"] > 0, "30 pods ask for more than 8 GPUs"
    assert 80 < max(used.allocated_percent.values()) <= 100


async def test_without_a_policy_the_nodes_count_parts_of_gpus(lab: Lab) -> None:
    places: dict[str, str] = {}
    lab.sampled = lambda outcome: places.update({each.job: each.node for each in outcome.records.pods.values()})
    report, _ = await lab.run(lab.file({"milliGpus": True, "shuffle": None, "speed": 10}))
    test, used = only(report)
    assert test.status == "success", test.details.ended
    assert (used.policy, used.asked, used.failed) == ("", 0, 0)
    measures = test.details.measures
    assert measures["pods.pending"] > 0, "30 pods ask for more than 8 GPUs"
    share = {f"tasks-{number + 1}": SHARES[number % 6] for number in range(30)}
    given: Counter[str] = Counter()
    for job, node in places.items():
        given[node] += share.get(job, 0) if node else 0
    assert max(given.values()) <= 2000, given
    assert measures["policy.allocated"] == pytest.approx(sum(given.values()) / 8000, abs=0.15)
    # What kube-scheduler put together that does not go together on two GPUs, counted by hand.
    assert measures["policy.split"] == used.split
    assert used.split <= measures["pods.scheduled"]


async def test_jobs_that_stay_keep_their_gpus(lab: Lab) -> None:
    report, _ = await lab.run(lab.file({"milliGpus": True}, kind="Job"))
    test, _ = only(report)
    assert test.status == "success", test.details.ended
    measures = test.details.measures
    assert measures["pods.pending"] > 0, "30 pods ask for more than 8 GPUs"
    assert measures["pods.scheduled"] + measures["pods.pending"] == 31


BAD = """
import time
import numpy as np

def score(pod, nodes, study):
    if pod.gpu_milli == 700:
        {body}
    return np.zeros(len(nodes))
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("time.sleep(3600)", "took longer than 1 s"),
        ("return 'nonsense'", "answered no number"),
    ],
)
async def test_a_policy_that_fails_leaves_its_pods_pending_and_the_run_goes_on(lab: Lab, body: str, said: str) -> None:
    (lab.directory / "mine.py").write_text(BAD.format(body=body))
    report, _ = await lab.run(lab.file(policy="mine.py", policyTimeout="1s", onPolicyError="skip"))
    test, used = only(report)
    assert test.status == "success", test.details.ended
    # Those for which there was no room any more were not asked for; kube-scheduler may try one again.
    assert used.failed > 0
    assert said in used.failure
    measures = test.details.measures
    assert measures["pods.created"] == 31 == measures["pods.scheduled"] + measures["pods.pending"], "none is lost"
    assert measures["pods.pending"] >= 5
    assert measures["pods.scheduled"] > 5


async def test_a_policy_that_fails_ends_the_run_where_the_file_says_so(lab: Lab) -> None:
    (lab.directory / "mine.py").write_text(BAD.format(body="raise ValueError('my own mistake')"))
    report, _ = await lab.run(lab.file(policy="mine.py"))
    test, used = only(report)
    assert (test.status, report.results.status) == ("partial", "partial")
    assert "my own mistake" in used.failure
    assert "line 7, in score" in used.failure
    assert "Traceback" not in report.results.error, "the traceback is shown once"
    assert "the policy failed" in report.results.error
    left = lab.plane.api.list("/api/v1/namespaces", labelSelector="kumulus.io/experiment")
    assert left == [] or all(each["status"]["phase"] == "Terminating" for each in left)


async def test_another_user_cannot_ask_the_policy(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: dict[str, Any] = {}

    def somebody_else(file: Path, port: int) -> None:
        tried["mode"] = oct(file.stat().st_mode & 0o777)
        tried["read"] = stranger.can_read(file)
        tried["answers"] = stranger.ask(
            [Question(port, path, "http", "POST") for path in ("/", "/filter", f"/{'x' * 43}/filter")]
        )

    asking: list[asyncio.Future[None]] = []

    def look(_: RepetitionOutcome) -> None:
        files = list((lab.directory / "results").glob("*/*/scheduler/with-policy.yaml"))
        if asking or not files:
            return
        [file] = files
        url = yaml.safe_load(file.read_text())["extenders"][0]["urlPrefix"]
        port = int(url.split(":")[2].split("/")[0])
        asking.append(asyncio.ensure_future(asyncio.to_thread(somebody_else, file, port)))

    reason = Ending.reason
    # The run, in which pods are pending, goes on until the stranger has asked.
    monkeypatch.setattr(Ending, "reason", lambda run, now: reason(run, now) if asking and asking[0].done() else "")
    lab.sampled = look
    report, _ = await lab.run(lab.file(policy="FGD"))
    assert only(report)[0].status == "success"
    await asking[0]
    assert tried["mode"] == "0o600"
    assert not tried["read"]
    assert [answer.status for answer in tried["answers"]] == [404, 404, 404]
