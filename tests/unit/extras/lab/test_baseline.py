"""A committed baseline: expectations within something of it, and how it is written."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli.main import main
from kumulus.extras.lab.commands import run as experiment_run
from kumulus.extras.lab.file.load import LoadedExperiment, load, overridden
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.verdicts import ExpectationVerdict, verdicts
from kumulus.extras.lab.report import github, spreads
from kumulus.extras.lab.report.compare import line_of
from kumulus.extras.lab.report.files import RunDirectory, report_at
from kumulus.extras.lab.report.model import Inputs, PolicyUsed, Report
from kumulus.model.errors import SpecError
from tests.support.reports import report

P99, SHARE, GPUS, PODS = "timeToSchedule.p99", "fragmentation.end", "allocation.gpu", "pods.created"
MEASURES = {P99: 1.0, SHARE: 0.10, GPUS: 0.9, PODS: 100.0}
EXPECTED = [
    {"measure": P99, "within": "10% of baseline"},
    {"measure": SHARE, "within": "1pt of baseline", "atMost": "50%"},
    {"measure": GPUS, "within": "2% of baseline"},
    {"measure": PODS, "within": "0 of baseline"},
]


def written(directory: Path, made: Any = None, **fields: Any) -> Path:
    """An experiment file with a baseline of three repetitions, whose medians are `MEASURES`."""
    factors = (0.5, 1.0, 1.2)
    made = made or report(measures=[{name: value * each for name, value in MEASURES.items()} for each in factors])
    (directory / "base.json").write_text(made if isinstance(made, str) else made.lean().model_dump_json())
    file = directory / "e.yaml"
    raw = {"name": "fill", "workloads": [{"name": "w"}], "baseline": "base.json", "expect": EXPECTED, **fields}
    file.write_text(yaml.safe_dump({name: value for name, value in raw.items() if value is not None}))
    return file


def judged(loaded: LoadedExperiment, **changed: float) -> dict[str, ExpectationVerdict]:
    """The verdicts by what is expected, of the baseline's own values but for some."""
    values = {name: changed.get(name.partition(".")[0], value) for name, value in MEASURES.items()}
    return {each.what: each for each in verdicts(loaded.experiment.expect, values, ExperimentRecords(Allocation()))}


def test_what_is_within_something_of_the_baseline_holds_and_better_is_never_too_far(tmp_path: Path) -> None:
    loaded = load(written(tmp_path))
    assert all(each.holds for each in judged(loaded).values())
    assert all(each.holds for each in judged(loaded, timeToSchedule=0.01, fragmentation=0.0, allocation=1.0).values())
    assert all(each.holds for each in judged(loaded, timeToSchedule=1.1, fragmentation=0.11, allocation=0.882).values())
    found = judged(loaded, timeToSchedule=1.11, fragmentation=0.111, allocation=0.881)
    assert [what for what, each in found.items() if not each.holds] == [
        f"{P99} within 10% of baseline", f"{SHARE} within 1pt of baseline", f"{GPUS} within 2% of baseline",
    ]  # fmt: skip
    assert found[f"{P99} within 10% of baseline"].found == "1.11 s, 1.00 s in the baseline"
    # Neither more nor less of it is better.
    for pods, holds in ((99, False), (100, True), (101, False)):
        assert judged(loaded, pods=pods)[f"{PODS} within 0 of baseline"].holds is holds


def test_a_measure_that_was_not_taken_is_not_within_anything(tmp_path: Path) -> None:
    loaded = load(written(tmp_path))
    [found] = verdicts(loaded.experiment.expect[:1], {}, ExperimentRecords(Allocation()))
    assert (found.holds, found.found) == (False, "not measured, 1.00 s in the baseline")


def test_what_overrides_an_experiment_keeps_its_baseline(tmp_path: Path) -> None:
    loaded = load(written(tmp_path))
    other = overridden(loaded, loaded.experiment.model_copy(update={"seed": 3}), "the command line")
    assert not judged(other, timeToSchedule=2.0)[f"{P99} within 10% of baseline"].holds
    assert other.baseline == loaded.baseline


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"baseline": None}, r"expect\[0\].within: has no baseline; write baseline: FILE at the top"),
        ({"expect": []}, "baseline: has no effect: no expectation is within something of it"),
        ({"expect": [{"measure": P99, "within": "10%"}]}, 'within: is "10%"; write 10% of baseline or 2s of baseline'),
        ({"expect": [{"measure": P99, "within": "1pt of baseline"}]}, "write 10% of baseline or 2s of baseline"),
        ({"expect": [{"measure": "slowdown.p50", "within": "10% of baseline"}]}, "slowdown.p50 is not in the baseline"),
        ({"name": "other"}, 'base.json is of the experiment "fill"; write it anew: kumulus experiment baseline'),
        ({"made": "{}"}, "base.json is no report of an experiment: metadata: Field required"),
        ({"made": report(status="partial")}, "base.json is of a run that was cut off"),
        ({"baseline": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_a_mistake_about_a_baseline_is_said_with_its_place(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load(written(tmp_path, **fields))


def test_a_run_is_written_as_a_baseline_small_enough_to_be_committed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = report(measures=[MEASURES] * 3)
    for test in made.results.tests:
        test.details.series["bound"] = [float(n) for n in range(50_000)]
    directory = RunDirectory(tmp_path, "fill", made.metadata.run_id)
    directory.prepare({})
    directory.write(made)
    file = tmp_path / "base.json"
    assert main(["experiment", "baseline", "latest", str(file), "--results", str(tmp_path)]) == 0
    assert f"wrote {file}, of 3 repetitions of {made.metadata.run_id}" in capsys.readouterr().out
    assert file.stat().st_size < 10_000
    kept = report_at(file)
    assert kept.metadata == made.metadata
    assert [test.details.measures for test in kept.results.tests] == [MEASURES] * 3
    made.results.status = "partial"
    directory.write(made)
    assert main(["experiment", "baseline", "latest", str(file), "--results", str(tmp_path)]) == 1
    assert "was cut off\n  Take one that came to its end" in capsys.readouterr().err


def test_a_new_baseline_begins_no_new_line_of_a_trend(tmp_path: Path) -> None:
    lines = []
    for digest in ("0" * 64, "1" * 64):
        made = report()
        made.metadata.inputs.files["baseline.json"] = digest
        lines.append(line_of(made, None, "fill"))
    assert lines[0] == lines[1]


def test_a_missed_expectation_is_shown_at_its_line(tmp_path: Path) -> None:
    text = written(tmp_path).read_text()
    numbers = github.lines_of(text)
    lines = text.splitlines()
    assert [lines[line - 1].strip("- ") for line in numbers.values()] == [
        f"measure: {P99}", "atMost: 50%", "atMost: 50%", f"measure: {GPUS}", f"measure: {PODS}",
    ]  # fmt: skip


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
    assert [f"{name} (n = {count})" for name, count in found] == list(spreads._groups(reports))
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
    assert list(spreads._groups(runs)) == [f"fill · FGD, ties by {ties} (n = 1)" for ties in ("name", "random")]


def arguments(**wanted: Any) -> Namespace:
    names = ("repetitions", "seed", "policy", "ties", "scheduler", "scheduler_config", "scheduler_binary", "why")
    return Namespace(**{**dict.fromkeys(names), **wanted})


def experiment(folder: Path, **fields: Any) -> LoadedExperiment:
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
