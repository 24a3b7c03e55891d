"""What commands list, for programs: one JSON value on the standard output, with the figures that people are shown."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli.main import main
from kumulus.cli.registry import arguments, offered, parser_of, subcommands
from kumulus.extras.capture.commands.fit import plain
from kumulus.extras.capture.fit import FitAnswer, FitChange
from kumulus.extras.capture.probe import Probe, ProbeVerdict
from kumulus.extras.lab.report.files import RunDirectory
from kumulus.extras.snapshots import file as snapshots
from tests.support.reports import report
from tests.unit.extras.watch.test_topology import CLUSTER, root, write

__all__ = ["root"]
CONTAINER = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w"}, "spec": {"containers": [CONTAINER]}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}, "status": {"capacity": {"cpu": "4"}}}


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main(arguments) == 0
    return json.loads(capsys.readouterr().out)


LISTING = {
    *("ls", "price", "topology", "watch", "doctor", "plan", "fit", "advise", "capture", "cluster up"),
    *("fault list", "fault kinds", "snapshot list", "experiment list", "experiment compare", "experiment why"),
}


@pytest.mark.parametrize("line", sorted(LISTING))
def test_every_command_that_lists_has_a_form_for_programs(line: str) -> None:
    name, _, action = line.partition(" ")
    parser = parser_of(name, offered()[name].command)[1]
    if action:
        parser = subcommands(parser)[action]
    assert "--json" in {option for each in arguments(parser) for option in each.option_strings}


def test_the_pools_of_a_topology(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, CLUSTER)
    found = told(capsys, "topology", "-s", "dev", "--json")
    assert (found["stack"], sum(each["nodes"] for each in found["pools"])) == ("dev", 28)
    assert sum(each["gpus"] for each in found["pools"]) == 200
    assert (found["nodes"], found["nodesWithoutPrice"]) == (28, 28)


def test_runs_that_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for each in (report(), report("20261121-160000-def456", scheduler="volcano", seed=2)):
        RunDirectory(tmp_path, "fill", each.metadata.run_id).prepare({})
        RunDirectory(tmp_path, "fill", each.metadata.run_id).write(each)
    runs = ("20261121-15", "latest", "--results", str(tmp_path))
    page = str(tmp_path / "page.html")
    found = told(capsys, "experiment", "compare", *runs, "--json", "--page", page)
    assert [each["scheduler"] for each in found["runs"]] == ["default", "volcano"]
    assert found["runs"][0]["repetitions"][0]["timeToSchedule.p99"] == 1.25
    assert found["unfair"][0].startswith("seeds differ")
    assert {each["verdict"] for each in found["changes"]} <= {"better", "worse", "alike", "not decided"}


def test_snapshots(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, CLUSTER)
    folder = root / ".kumulus" / "snapshots" / "dev"
    assert told(capsys, "snapshot", "list", "-s", "dev", "--json") == []
    assert main(["snapshot", "list", "-s", "dve", "--json"]) == 1
    assert "there is no stacks/Pulumi.dve.yaml (did you mean dev?)" in capsys.readouterr().err
    snapshots.write(
        folder / "full.snapshot", snapshots.SnapshotSummary("dev", "uid", "2026-11-22T12:00:00Z"), [(b"/a", b"1")]
    )
    (folder / "gone.snapshot").write_text("cut off")
    full, gone = sorted(told(capsys, "snapshot", "list", "-s", "dev", "--json"), key=lambda each: str(each["name"]))
    assert (full["name"], full["objects"], full["taken"]) == ("full", 1, "2026-11-22T12:00:00Z")
    assert gone["damaged"]


def test_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump(NODE))
    arguments = ("--from", str(tmp_path / "nodes.yaml"), "--to", str(tmp_path / "captured"))
    found = told(capsys, "capture", *arguments, "--json")
    assert (found["to"], found["groups"], found["objects"]["Node"]) == (str(tmp_path / "captured"), 1, 1)


def test_an_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(POD))
    where = ("--types", "m5.xlarge", "--zones", "us-east-1a")
    found = told(capsys, "advise", str(tmp_path / "pod.yaml"), *where, "--json")
    assert (found["pods"], found["nodes"], found["nodeGroups"][0]["name"]) == (1, 1, "m5-xlarge")
    assert found["hourly"] >= found["lowerBound"] > 0
    assert main(["advise", str(tmp_path / "pod.yaml"), *where, "--json", "--verify"]) == 1


def test_whether_a_workload_fits() -> None:
    answer = FitAnswer(
        ProbeVerdict(3, Counter({"n0": 2}), "too many"), Counter({"h100": 2}), [FitChange("1 more node", 1)]
    )
    assert plain("dev", Probe("w", "default", {}, {}, 3), answer) == {
        "workload": "w",
        "cluster": "dev",
        "pods": 3,
        "fitted": 2,
        "byGroup": {"h100": 2},
        "limit": "too many",
        "changes": ["1 more node"],
        "tried": [],
        "untolerated": {},
    }
