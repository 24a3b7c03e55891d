"""Which runs are one line of a picture, and which files a run keeps, by which others are told apart."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.commands import run as experiment_run
from kumulus.extras.lab.file.load import Loaded, load
from kumulus.extras.lab.report import by_demand, spreads
from kumulus.extras.lab.report.model import Inputs, PolicyUsed, Report
from kumulus.model.errors import SpecError
from tests.support.reports import report


def placed(files: dict[str, str] | None = None, ties: str = "", **fields: Any) -> Report:
    made = report(measures=[{"slowdown.p50": 2.0}], **fields)
    made.metadata.inputs = Inputs(files=files or {}, workloads="")
    made.results.tests[0].details.policy = PolicyUsed(
        policy="FGD" if ties else "",
        ties=ties,
        allocated_percent={"100": 95.0},
        fragmented_percent_of_all_gpus={"100": 5.0},
        fragmented_percent_of_idle_gpus={},
    )
    return made


def lines(*reports: Report) -> list[tuple[str, int]]:
    """Names of the lines of a measure, with the number of their runs."""
    [values] = spreads.by_measure(reports).values()
    found = [(name, len(each)) for name, each in values.items()]
    assert [f"{name} (n = {count})" for name, count in found] == list(by_demand._groups(reports))
    return found


def test_runs_that_differ_by_seed_alone_are_one_line() -> None:
    one = placed({"experiment.yaml": "1", "a.yaml": "2"}, seed=1, settings={"clientQPS": "9", "config": "/x"})
    two = placed({"experiment.yaml": "3", "a.yaml": "2"}, seed=2, settings={"clientQPS": "9", "config": "/y"})
    assert lines(one, two) == [("fill · default", 2)]


@pytest.mark.parametrize(
    ("one", "two", "names"),
    [
        ({"files": {"a.yaml": "12"}}, {"files": {"b.yaml": "12"}}, ("a.yaml", "b.yaml")),
        ({"files": {"p.py": "0123456789"}}, {"files": {"p.py": "9876543210"}}, ("p.py 01234567", "p.py 98765432")),
        ({}, {"files": {"b.yaml": "1"}}, ("", "b.yaml")),
        ({"stack": "small"}, {"stack": "large"}, ("stack small", "stack large")),
        ({"settings": {"version": "1"}}, {"settings": {"version": "2"}}, ("version 1", "version 2")),
    ],
)
def test_runs_that_differ_by_more_are_lines_that_say_so(
    one: dict[str, Any], two: dict[str, Any], names: tuple[str, str]
) -> None:
    assert lines(placed(**one), placed(**two)) == [
        (f"fill · default · {name}" if name else "fill · default", 1) for name in names
    ]


def test_runs_of_a_policy_differ_by_ties_and_by_the_scheduler_beneath() -> None:
    runs = [placed(ties="name"), placed(ties="random")]
    assert list(spreads.by_measure(runs)["slowdown.p50"]) == ["fill · FGD · ties name", "fill · FGD · ties random"]
    assert list(by_demand._groups(runs)) == [f"fill · FGD, ties by {ties} (n = 1)" for ties in ("name", "random")]


def arguments(**wanted: Any) -> Namespace:
    names = ("repetitions", "seed", "policy", "ties", "scheduler", "scheduler_config", "scheduler_binary", "why")
    return Namespace(**{**dict.fromkeys(names), **wanted})


def experiment(folder: Path, **fields: Any) -> Loaded:
    (folder / "e.yaml").write_text(yaml.safe_dump({"name": "e", "workloads": [{"name": "w"}], **fields}))
    return load(folder / "e.yaml")


def test_the_files_of_the_command_line_are_among_a_runs_inputs(tmp_path: Path) -> None:
    config = "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1\n"
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(f"# {name}\n{config}")
    (tmp_path / "own.py").write_text("# own.py\n")
    loaded = experiment(tmp_path, scheduler={"name": "kube-scheduler", "config": "a.yaml"})
    assert loaded.inputs.keys() == {"experiment.yaml", "a.yaml"}
    found = experiment_run.overridden_by(
        loaded, arguments(scheduler_config=tmp_path / "b.yaml", policy=str(tmp_path / "own.py"))
    )
    assert {name: text for name, text in found.inputs.items() if name != "experiment.yaml"} == {
        "b.yaml": f"# b.yaml\n{config}",
        "own.py": "# own.py\n",
    }
    assert experiment_run.overridden_by(loaded, arguments(seed=3)).inputs == loaded.inputs
    with pytest.raises(SpecError, match=r"the command line\n.*nowhere\.py"):
        experiment_run.overridden_by(loaded, arguments(policy=str(tmp_path / "nowhere.py")))


def test_a_policy_of_the_file_is_among_a_runs_inputs(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("# mine\n")
    assert experiment(tmp_path, policy="own.py").inputs["own.py"] == "# mine\n"
    assert "own.py" not in experiment_run.overridden_by(load(tmp_path / "e.yaml"), arguments(policy="FGD")).inputs
    (tmp_path / "own.py").unlink()
    with pytest.raises(SpecError, match="there is no file"):
        load(tmp_path / "e.yaml")
