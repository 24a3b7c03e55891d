"""The command `experiment run` on a real control plane: ended by Ctrl-C, on a full disk, twice with the same seed."""

import json
import signal
import subprocess
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli.errors import UserError
from kumulus.extras.lab.commands.show import why
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.measure.over_time import CostMeter
from kumulus.extras.lab.report.files import report_at
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.run import ending, repetition
from kumulus.extras.snapshots import kwok as snapshot
from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import PODS, Plane, Pools, pod
from tests.support import disk, runs
from tests.support.api import Object

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
NAMESPACES = "/api/v1/namespaces"
OF_A_RUN: dict[str, Any] = {"labelSelector": "kumulus.io/experiment=endless"}
LABELS = {
    "lab": "priced",
    "node.kubernetes.io/instance-type": "m5.xlarge",
    "topology.kubernetes.io/region": "us-east-1",
}
PRICE = 0.192
Create = Callable[[str, Object], Object]


@contextmanager
def endless(plane: Plane, results: Path, **fields: Any) -> Iterator[subprocess.Popen[str]]:
    """The command, on a workload that does not end by itself; under way, with its namespace made."""
    file = results.parent / "endless.yaml"
    late = {"name": "work", "arrival": {"after": "5m"}}
    file.write_text(yaml.safe_dump({"name": "endless", "workloads": [late], "settle": "5m", **fields}))
    kubeconfig = ["--kubeconfig", plane.observed.kubeconfig, "--results", str(results)]
    line = [str(ROOT / "kumulus"), "experiment", "run", str(file), *kubeconfig]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            plane.api.until(NAMESPACES, bool, **OF_A_RUN)
            yield process
        finally:
            process.kill()


def interrupted(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What a command says that Ctrl-C ends."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert "Traceback" not in out + err
    return out, err


def test_ctrl_c_ends_the_command_with_a_partial_report(plane: Plane, tmp_path: Path) -> None:
    with endless(plane, tmp_path / "results") as process:
        out, err = interrupted(process)
    assert "endless: partial; interrupted" in out
    assert "ending: the report has what was measured so far" in err
    (directory,) = (tmp_path / "results" / "endless").iterdir()
    assert report_at(directory / "report.json").results.error == "interrupted"
    plots = {"repetition-1.svg", "repetition-1.png"}
    assert {file.name for file in directory.iterdir()} >= {"junit.xml", "inputs", *plots}
    assert plane.api.list(NAMESPACES, **OF_A_RUN) == []


def test_a_disk_that_fills_up_leaves_the_first_report_and_what_was_measured_is_shown(
    plane: Plane, tmp_path: Path
) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    with disk.small(place, 1):
        with endless(plane, place / "results") as process:
            disk.fill(place)
            out, err = interrupted(process)
        (directory,) = (place / "results" / "endless").iterdir()
        assert report_at(directory / "report.json").results.error == "has not come to its end"
    remedy = "make room, or write --results DIRECTORY on another disk"
    assert f"error: {directory}/report.json cannot be written: No space left on device; {remedy}" in err
    assert "endless: partial; interrupted" in out
    assert "jobs.admitted" in out
    assert plane.api.list(NAMESPACES, **OF_A_RUN) == []


async def test_a_run_of_which_a_quota_admits_no_pod_is_an_error_with_the_quotas_words(
    plane: Plane, pools: Pools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A run waits so long for pods that do not come.
    monkeypatch.setattr(ending, "_LEAST_PATIENCE", 8.0)
    await pools.create(pools.inputs(1))
    file, quota = tmp_path / "refused.yaml", "kubectl create quota none --hard=pods=0 -n $KUMULUS_NAMESPACE"
    work = {"name": "work", "jobs": 1, "workers": 2, "arrival": {"after": "5s"}}
    timeline = [{"at": "0s", "run": {"command": quota}}]
    file.write_text(yaml.safe_dump({"name": "refused", "workloads": [work], "timeline": timeline, "settle": "1s"}))
    report, _ = await runs.run(plane.observed.kubeconfig, file)
    assert report.results.status == "partial"
    said = str(report.results.error)
    assert "2 pods are missing: " in said
    quota_says = "exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0"
    assert quota_says in said
    with pytest.raises(UserError, match=r"nothing is known of a pod or job work.*" + quota_says):
        why(Namespace(run="latest", results=tmp_path / "results", repetition=None, pod="work", json=False))


def test_the_same_seed_creates_the_same_to_the_byte(plane: Plane, tmp_path: Path) -> None:
    spread = {"lognormal": {"median": "10m", "sigma": 0.5}}
    drawn = {"name": "work", "jobs": 6, "workers": 2, "arrival": {"poisson": 8}, "duration": spread}
    fields = {"workloads": [drawn], "until": "completed"}

    def created(results: str, seed: int) -> tuple[list[bytes], dict[str, bytes], str]:
        with endless(plane, tmp_path / results, seed=seed, **fields) as process:
            path = "/apis/batch/v1/jobs"
            jobs = plane.api.until(path, lambda found: len(found) == 6, labelSelector="kumulus.io/workload=work")
            interrupted(process)
        (directory,) = (tmp_path / results / "endless").iterdir()
        inputs = {file.name: file.read_bytes() for file in (directory / "inputs").iterdir()}
        digest = report_at(directory / "report.json").metadata.inputs.workloads
        return [_as_asked_for(jobs[name]) for name in sorted(jobs)], inputs, digest

    one, again, other = created("one", 7), created("again", 7), created("other", 8)
    assert one == again
    assert len(one[0]) == 6
    assert not set(one[0]) & set(other[0]), "each has a duration of its own"


def _as_asked_for(job: Object) -> bytes:
    """A Job without what the API server has put into it: names of this one run."""
    text = json.dumps({"metadata": {key: job["metadata"][key] for key in ("name", "labels")}, "spec": job["spec"]})
    return text.replace(job["metadata"]["uid"], "uid").encode()


class Noted(CostMeter):
    """A meter that notes each node event and its time as well, for a sum that knows nothing of the meter's."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.events: list[tuple[float, str, str]] = []
        self.read = 0.0
        super().__init__(lambda: self._noted(now))
        meters.append(self)

    def _noted(self, now: Callable[[], float]) -> float:
        self.read = now()
        return self.read

    def begin(self) -> None:
        super().begin()
        self.events.append((self.read, "begin", ""))

    def end(self) -> None:
        super().end()
        self.events.append((self.read, "end", ""))

    def put(self, name: str, hourly: float | None, *amounts: Any) -> None:
        super().put(name, hourly, *amounts)
        if hourly is not None:
            self.events.append((self.read, "put", name))

    def take(self, name: str) -> None:
        super().take(name)
        self.events.append((self.read, "take", name))


meters: list[Noted] = []


def independent(events: list[tuple[float, str, str]]) -> float:
    """The cost by lifetimes: from when a node was first there, but not before the beginning, to when it was gone."""
    began = max(at for at, what, _ in events if what == "begin")
    ended = next(at for at, what, _ in events if what == "end")
    total = 0.0
    for name in {name for _, what, name in events if what == "put"}:
        there: float | None = None
        # An update is told as a node that goes and comes at one moment.
        for at, what, whose in sorted(events, key=lambda event: event[0]):
            if whose == name and what == "put" and there is None:
                there = at
            elif whose == name and what == "take" and there is not None:
                total += max(0.0, min(at, ended) - max(there, began)) * PRICE
                there = None
        if there is not None:
            total += max(0.0, ended - max(there, began)) * PRICE
    return total / 3600


async def test_the_cost_of_a_run_is_the_sum_over_its_nodes_lifetimes(
    plane: Plane, pools: Pools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grows, shrinks = pools.inputs(4, labels=LABELS), pools.inputs(4, labels=LABELS)
    await pools.create(grows)
    await pools.create(shrinks)
    bare = pools.inputs(2, labels={"lab": "unpriced"})
    await pools.create(bare)
    monkeypatch.setattr(repetition, "CostMeter", Noted)
    meters.clear()
    file = tmp_path / "experiment.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "name": "cost",
                "settle": "1s",
                "timeout": "90s",
                "workloads": [
                    {
                        "name": "work",
                        "jobs": 4,
                        "workers": 1,
                        "requests": {"cpu": "1"},
                        "nodeSelector": {"lab": "priced"},
                        "duration": "5m",
                    }
                ],
                "timeline": [
                    {"after": "created", "at": "1s", "resize": {"pool": str(grows["name"]), "replicas": 7}},
                    {"after": "created", "at": "3s", "resize": {"pool": str(shrinks["name"]), "replicas": 2}},
                ],
                "expect": [
                    {"measure": "cost.total", "atMost": 1},
                    {"measure": "cost.perHourPeak", "equals": 11 * PRICE},
                    {"measure": "cost.wastedShare", "atLeast": "10%"},
                ],
            }
        )
    )
    report, _ = await runs.run(plane.observed.kubeconfig, file)
    [test] = report.results.tests
    assert test.status == "success", (test.details.ended, test.thresholds)
    measures = test.details.measures
    [meter] = meters
    assert measures["cost.total"] > 0
    assert measures["cost.total"] == pytest.approx(independent(meter.events), rel=0.001)
    assert measures["cost.perHourEnd"] == pytest.approx(9 * PRICE)
    assert measures["cost.unpricedNodes"] >= 2
    assert max(test.details.series["cost per hour"]) == pytest.approx(11 * PRICE, abs=1e-3)


async def run(plane: Plane, directory: Path, snapshots: Path | None, said: list[str]) -> Report:
    workload = {"name": "work", "kind": "Pod", "jobs": 3, "requests": {"cpu": "1"}, "nodeSelector": {"lab": "full"}}
    experiment = {"name": "full", "from": {"snapshot": "full"}, "repetitions": 2, "settle": "1s", "timeout": "120s"}
    file = directory / "experiment.yaml"
    file.write_text(yaml.safe_dump(experiment | {"workloads": [workload]}))
    return (await runs.run(plane.observed.kubeconfig, file, say=said.append, snapshots=snapshots))[0]


async def test_what_was_there_then_is_there_in_every_repetition(
    plane: Plane, pools: Pools, workloads: Create, tmp_path: Path
) -> None:
    inputs = pools.inputs(2, labels={"lab": "full"}, capacity={"cpu": "3", "memory": "16Gi", "pods": "110"})
    name = inputs["name"]
    await pools.create(inputs)
    # Of the six CPUs the four that are taken leave room for two of the three pods that come.
    for number in range(4):
        workloads(PODS, pod(f"{name}-{number}", name, cpu="1"))
    there = plane.api.until(
        PODS, lambda found: sum(bool(each["spec"].get("nodeName")) for each in found.values()) >= 4,
        labelSelector=f"test={name}",
    )  # fmt: skip
    assert len(there) == 4
    identity = plane.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    snapshot.save(Layout(plane.directory), "test", identity, tmp_path / "snapshots" / "full.snapshot")
    for gone in list(there)[:2]:
        plane.api.delete(f"{PODS}/{gone}?gracePeriodSeconds=0")
    workloads(PODS, pod(f"{name}-later", name, cpu="1"))

    said: list[str] = []
    report = await run(plane, tmp_path, tmp_path / "snapshots", said)
    assert report.results.status == "success", report.results.error
    found = [test.details.measures for test in report.results.tests]
    assert [each["pods.scheduled"] for each in found] == [2, 2], "as full as then, both times"
    assert [each["pods.pending"] for each in found] == [1, 1]
    assert sum("begins from the snapshot full" in line for line in said) == 2
    now = {
        each["metadata"]["name"]: each["metadata"]["uid"] for each in plane.api.list(PODS, labelSelector=f"test={name}")
    }
    assert now == {each: found["metadata"]["uid"] for each, found in there.items()}


async def test_a_snapshot_that_is_not_there_is_told_with_those_that_are(plane: Plane, tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    folder.mkdir()
    with pytest.raises(LabError, match=r"no snapshot full; make it: kumulus snapshot save full"):
        await run(plane, tmp_path, folder, [])
    (folder / "other.snapshot").write_text("")
    with pytest.raises(LabError, match=r"no snapshot full; there are other"):
        await run(plane, tmp_path, folder, [])
    (folder / "full.snapshot").write_text("nothing")
    with pytest.raises(LabError, match=r"from: snapshot full: .* is no snapshot"):
        await run(plane, tmp_path, folder, [])
    with pytest.raises(LabError, match="on a stack"):
        await run(plane, tmp_path, None, [])
