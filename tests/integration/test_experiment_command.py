"""The command `experiment run` on a real control plane: ended by Ctrl-C, on a full disk, twice with the same seed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.report.read import report_at
from tests.integration.conftest import Plane
from tests.support import disk
from tests.support.api import Object

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
NAMESPACES = "/api/v1/namespaces"
OF_A_RUN: dict[str, Any] = {"labelSelector": "kumulus.io/experiment=endless"}


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
    assert "ending: the partial report is written" in err
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
