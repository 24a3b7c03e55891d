"""What a run is not to be trusted for is said of the runs that it concerns."""

import json
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.lab.file.load import LoadedExperiment, loaded_from
from kumulus.extras.lab.plan.plan import make
from kumulus.extras.lab.report.fidelity import concerning
from kumulus.extras.lab.report.junit import junit
from kumulus.extras.lab.report.making import speed_of
from kumulus.extras.lab.report.text import lines
from tests.support.reports import report

PROBE = {"readinessProbe": {"tcpSocket": {"port": 80}}}


def said(folder: Path, container: dict[str, Any], spec: dict[str, Any]) -> str:
    """What is said of a run of one pod."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x", **container}], **spec}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod}
    (folder / "pod.yaml").write_text(json.dumps(manifest))
    workload = {"name": "w", "manifest": "pod.yaml"}
    loaded = loaded_from({"name": "x", "workloads": [workload]}, folder, "x", "")
    return "\n".join(concerning(loaded.experiment, make(loaded, {})))


@pytest.mark.parametrize(
    ("container", "spec", "words"),
    [
        (PROBE, {}, "counts on a probe to fail"),
        ({"envFrom": [{"configMapRef": {"name": "c"}}]}, {}, "missing ConfigMaps"),
        ({}, {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "missing ConfigMaps"),
        ({}, {"nodeName": "n"}, "bound without a scheduler"),
        ({}, {"containers": [{"name": name, "image": "x"} for name in "ab"]}, "pods of several containers"),
        ({}, {"restartPolicy": "OnFailure"}, "recover by a restart"),
    ],
)
def test_a_run_names_what_concerns_it(
    container: dict[str, Any], spec: dict[str, Any], words: str, tmp_path: Path
) -> None:
    assert said(tmp_path, {}, {}) == ""
    sidecar = {"name": "s", "image": "x", "restartPolicy": "Always"}
    emulated = {
        "readinessGates": [{"conditionType": "a/b"}],
        "activeDeadlineSeconds": 3,
        "initContainers": [sidecar],
    }
    assert said(tmp_path, {}, emulated) == "", "these are emulated as a kubelet has them"
    assert words in said(tmp_path, container, spec)


@pytest.mark.parametrize(("speed", "words"), [(2, "×2"), (20, "×10"), (1000, "×168")])
def test_a_replay_that_is_faster_than_was_exact_is_warned_about(speed: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("arrival,gpus,duration\n1,1,60\n")
    columns = {name: name for name in ("arrival", "gpus", "duration")}

    def played(*speeds: int) -> LoadedExperiment:
        traces = [{"file": "jobs.csv", "columns": {**columns, "size": ""}, "speed": speed} for speed in speeds]
        workloads = [
            {"name": f"w{number}", "requests": {"cpu": "1"}, "arrival": {"trace": trace}}
            for number, trace in enumerate(traces)
        ]
        return loaded_from({"name": "x", "workloads": workloads}, tmp_path, "x", "")

    def of(speed: int) -> list[str]:
        return concerning(played(speed).experiment, make(played(speed), {}))

    assert of(1) == []
    assert [speed_of(played(*each).experiment) for each in ((speed,), (speed, speed), (speed, 3))] == [speed, speed, 1]
    (line,) = of(speed)
    assert line.startswith(f"speed {speed}: a replay at {words}, with jobs of ")


def test_what_a_faster_replay_cost_and_waited_is_said_in_the_traces_own_time_too() -> None:
    made = report(measures=[{"cost.total": 0.5, "gpuHours.used": 2.0, "timeToSchedule.p99": 0.25, "makespan": 9.0}])
    plain = list(lines(made))
    assert not any("trace's time" in line for line in plain)
    made.results.tests[0].details.speed = 180.0
    [said] = set(lines(made)) - set(plain)
    assert said.split("× ")[0].strip() == "in the trace's time"
    assert said.endswith("× 180: about cost.total $90.00, gpuHours.used 360 GPU-h, timeToSchedule.p99 45.00 s")


def test_the_text_and_junit_say_what_a_run_is_not_to_be_trusted_for_and_what_is_assumed() -> None:
    made = report(fidelity=["not where it is"], measures=[{"pods.assumed": 3.0}])
    assert "not where it is" in list(lines(made))
    assert any(line.startswith("  assumed             3 pods of Jobs succeeded at once") for line in lines(made))
    assert '<property name="fidelity" value="not where it is" />' in junit(made)
    assert '<property name="pods.assumed" value="3" />' in junit(made)
    assert "assumed" not in "\n".join(lines(report(measures=[{"pods.assumed": 0.0}])))
