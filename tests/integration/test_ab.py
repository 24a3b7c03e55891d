"""`experiment ab` on a real control plane: its pairs, the gate against one of its runs, and Ctrl-C."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.report.files import report_at
from tests.integration.conftest import Plane, Pools

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
NAMESPACES = "/api/v1/namespaces"
MEASURE = "timeToSchedule.p99"


def file(directory: Path, name: str, **fields: Any) -> Path:
    path = directory / f"{name}.yaml"
    small = {"name": "work", "kind": "Pod", "jobs": 5, "requests": {"cpu": "10m"}}
    path.write_text(yaml.safe_dump({"name": name, "seed": 3, "workloads": [small], "settle": "1s", **fields}))
    return path


def ran(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)


def line(plane: Plane, results: Path, *arguments: str) -> list[str]:
    where = ["--kubeconfig", plane.observed.kubeconfig, "--results", str(results)]
    return [str(ROOT / "kumulus"), "experiment", *arguments, *where]


async def test_pairs_run_with_a_seed_of_each_and_their_runs_can_be_compared(
    plane: Plane, pools: Pools, tmp_path: Path
) -> None:
    await pools.create(pools.inputs(2))
    results = tmp_path / "results"
    command = line(plane, results, "ab", str(file(tmp_path, "few")), "--b", "kube-scheduler", "--until", "2")
    done = await asyncio.to_thread(ran, command)
    assert done.returncode == 3, done.stderr
    assert "not decided after 2 pairs of runs: kube-scheduler may be better or worse than few.yaml" in done.stdout
    [made] = (results / "few").glob("ab-*")
    runs = json.loads((made / "ab.json").read_text())["runs"]
    reports = [[report_at(results / "few" / run / "report.json") for run in pair] for pair in runs]
    assert [[each.metadata.seed for each in pair] for pair in reports] == [[3, 3], [4, 4]]
    assert [[each.metadata.scheduler.name for each in pair] for pair in reports] == [["default", "kube-scheduler"]] * 2
    assert all(each.results.tests[0].details.measures["pods.scheduled"] == 5 for pair in reports for each in pair)
    assert plane.api.list(NAMESPACES, labelSelector="kumulus.io/experiment=few") == []

    limits = ["--fail-if", f"{MEASURE}:+10%", "--fail-if", f"{MEASURE}:+1m"]
    compare = [str(ROOT / "kumulus"), "experiment", "compare", *runs[0], *limits, "--results", str(results)]
    gate = await asyncio.to_thread(ran, compare)
    one, two = (each.results.tests[0].details.measures[MEASURE] for each in reports[0])
    assert gate.returncode == (1 if two > 1.1 * one else 0), gate.stderr
    assert f"kept: {MEASURE} at most 1m more" in gate.stdout


def test_ctrl_c_ends_it_without_a_verdict_and_leaves_nothing(plane: Plane, tmp_path: Path) -> None:
    late = {"name": "work", "arrival": {"after": "5m"}}
    endless = file(tmp_path, "waiting", workloads=[late], settle="5m")
    command = line(plane, tmp_path / "results", "ab", str(endless), "--b", "kube-scheduler")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            plane.api.until(NAMESPACES, bool, labelSelector="kumulus.io/experiment=waiting")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 1, err
    assert "incomplete after 0 pairs of runs" in out
    assert "was cut off: interrupted" in out
    assert "Traceback" not in out + err
    assert plane.api.list(NAMESPACES, labelSelector="kumulus.io/experiment=waiting") == []
