"""A sweep of live runs: each on a cluster of its own, which is gone after it, also when the sweep was killed."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kumulus.extras.lab.report.files import report_at
from kumulus.extras.lab.sweep.store import Store
from tests.support import processes
from tests.support.project import PACKAGES_LISTED_ONCE
from tests.support.sweeps import command, place, starts, written

pytestmark = pytest.mark.e2e
PATIENCE_S = 500.0
EXPERIMENT = {
    "workloads": [{"name": "work", "jobs": 3, "workers": 2, "requests": {"nvidia.com/gpu": "1"}, "duration": "5s"}],
    "until": "completed",
}
MEASURES = ["makespan", "timeToSchedule.p50"]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    yield written(tmp_path, EXPERIMENT, live=True, matrix={"seed": "1-2"}, measures=MEASURES)
    for process in components(tmp_path):
        process.kill()


def environment(file: Path) -> dict[str, str]:
    pulumi = {"PULUMI_HOME": str(file.parent / "pulumi"), "PULUMI_CONFIG_PASSPHRASE": ""}
    return {**os.environ, **PACKAGES_LISTED_ONCE, **pulumi}


def store(file: Path) -> Store:
    return Store(place(file))


def components(directory: Path) -> list[psutil.Process]:
    """The processes of clusters below a directory."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or [""]
        if words[0].startswith(f"{directory}/") and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


# A file that is there once the sweep is so far.
CLUSTER_IS_MADE = "clusters/*/.pulumi-state/.pulumi/locks/**/*.json"
WORKLOAD_RUNS = "runs"


def kill(file: Path, moment: str) -> str:
    """Begin a sweep, or go on with it, and kill it at a moment; returns what it has said."""
    log = file.with_name("log")
    with log.open("w") as out:
        killed = subprocess.Popen(
            command(file, "--jobs", "1"), env=environment(file), stdout=out, stderr=out, start_new_session=True
        )
    try:
        processes.await_amid(killed, lambda: list(place(file).glob(moment)), PATIENCE_S, log=log)
    finally:
        if killed.poll() is None:
            os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    return log.read_text()


@pytest.mark.timeout(1200)
def test_each_run_has_a_cluster_of_its_own_and_a_killed_sweep_is_gone_on_with(file: Path) -> None:
    kill(file, CLUSTER_IS_MADE)
    (begun,) = starts(place(file))
    taken_down = f"taking down the cluster of {begun}, which an earlier sweep had left"
    assert taken_down in kill(file, WORKLOAD_RUNS)
    assert starts(place(file)) == [begun] * 2
    assert store(file).get(begun) is None
    assert components(file.parent), "the killed sweep has left a cluster"

    done = subprocess.run(
        command(file, "--jobs", "2"),
        env=environment(file),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert taken_down in done.stdout + done.stderr
    assert Counter(starts(place(file))) == {begun: 3, **dict.fromkeys(set(starts(place(file))) - {begun}, 1)}
    results = [result for cell in sorted(set(starts(place(file)))) if (result := store(file).get(cell))]
    assert {result.seed for result in results} == {1, 2}
    for result in results:
        assert result.status == "success"
        (measures,) = result.runs
        assert {measures["pods.created"], measures["pods.scheduled"]} == {6.0}
        report = report_at(place(file) / result.report / "report.json")
        assert report.results.status == "success"
    assert components(file.parent) == []
    assert not list((place(file) / "clusters").iterdir())
